"""What a container sees of its host, and whether a run can go on inside: this busbw, over an MPI of the launcher's."""

import msgspec

from busbw.base.errors import InputError
from busbw.base.value import Value
from busbw.facts.containers import FabricName, container_facts, fabric_need
from busbw.measure.containers.place import ContainerPlace
from busbw.model.machine import MpiFamily
from busbw.model.plan import Program
from busbw.model.request import Bind, Container

# MPI is asked what it is without being started: one process is not a job.
_PROGRAM = """
import json, busbw
found = {"busbw": busbw.__version__, "mpi": None}
try:
    import mpi4py
    mpi4py.rc.initialize = False
    from mpi4py import MPI
    found["mpi"] = MPI.Get_library_version()
except (ImportError, RuntimeError) as error:
    found["error"] = str(error)
print(json.dumps(found))
"""
# What the libraries say of themselves. MPICH, Intel MPI and MVAPICH share one way of finding each other, and one ABI.
_MARKS: tuple[tuple[str, MpiFamily], ...] = (
    ("Open MPI", "Open MPI"),
    ("Intel(R) MPI", "Intel MPI"),
    ("MVAPICH", "MVAPICH"),
    ("MPICH", "MPICH"),
)
_HYDRA: tuple[MpiFamily, ...] = ("MPICH", "Intel MPI", "MVAPICH")


class _Answer(Value, kw_only=True, frozen=True):
    """What the check prints."""

    busbw: str
    mpi: str | None = None
    error: str | None = None


def check(python: str) -> Program:
    """Return the program that says what is inside; it starts once, without a launcher, before the run."""
    return Program(argv=(python, "-P", "-c", _PROGRAM), env=())


def compare(output: str, exit_code: int, *, version: str, family: MpiFamily | None, image: str) -> None:
    """Raise InputError where ranks in the image would not be part of this run.

    `output`: what the check printed, its standard error behind it; `version`: busbw's own; `family`: of the MPI whose
    launcher starts the ranks, None where they use none.
    """
    found = _answer(output)
    if exit_code != 0 or found is None:
        said = _printable((output.strip().splitlines() or ["nothing"])[-1])
        raise InputError(
            f"busbw does not start in the image: {said}",
            where=image,
            hint=f"install it there: pip install busbw=={version}",
        )
    if found.busbw != version:
        raise InputError(
            f"the image has busbw {_printable(found.busbw)}, and {version} starts it",
            where=image,
            hint=f"install the same there: pip install busbw=={version}",
        )
    if family is not None:
        _compare_mpi(found, family, image)


def _compare_mpi(found: _Answer, family: MpiFamily, image: str) -> None:
    library = found.mpi
    if library is None:
        raise InputError(
            f"no MPI loads in the image: {_printable(found.error or 'no reason given')}",
            where=image,
            hint=f"install one of the launcher's family there: {family}",
        )
    inside = next((each for mark, each in _MARKS if mark in library), None)
    if inside != family and not (inside in _HYDRA and family in _HYDRA):
        shown = _printable((library.splitlines() or ["an MPI without a name"])[0].strip("\0 "))
        raise InputError(
            f"the image has {shown}, and the ranks are started by {family}: each of them would be a job of its own",
            where=image,
            hint=f"install {family} in the image, or start with the launcher of its MPI",
        )


def _answer(output: str) -> _Answer | None:
    """Return the line of the check among what the runtime printed; None where there is none."""
    for line in output.splitlines():
        if line.startswith('{"busbw": '):
            try:
                return msgspec.json.decode(line.encode(errors="replace"), type=_Answer)
            except msgspec.MsgspecError:
                return None
    return None


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:200])


NCCL_CONF = "/etc/nccl.conf"
# Where launchers keep the sockets and shared memory of PMIx, and srun its spool.
_TEMPORARY = "/tmp"  # noqa: S108 - bound, not written
SLURM_SPOOL = "/var/spool/slurmd"


def wanted(
    container: Container, program: Program, place: ContainerPlace, settings: tuple[tuple[str, str], ...] = ()
) -> tuple[Bind, ...]:
    """Return everything to be bound: the user's own first, then what the run needs and the write-ups advise.

    `settings`: what nccl.conf of the hosts sets, beside the program's variables. Raises InputError for two sources of
    one target.
    """
    values = {**dict(settings), **dict(program.env)}
    advised = (
        *_run_directory(place),
        *_launcher(container, place),
        *_settings_files(values),
        *(_fabric(place.fabric, place.devices) if place.fabric is not None else ()),
    )
    found: dict[str, Bind] = {}
    for bind in (*container.binds, *advised):
        target = bind.source if bind.target is None else bind.target
        other = found.setdefault(target, bind)
        if other.source != bind.source and bind in container.binds:
            raise InputError(f"{other.source} and {bind.source} are both to be {target}", hint="bind one of them")
    return tuple(found.values())


def missing(binds: tuple[Bind, ...], present: frozenset[str]) -> tuple[Bind, ...]:
    """Return those whose source is not among the paths that are present and which a run cannot do without."""
    return tuple(bind for bind in binds if bind.source not in present and not bind.optional)


def settled(binds: tuple[Bind, ...], present: frozenset[str], host: str | None = None) -> tuple[Bind, ...]:
    """Return the binds whose source is present. Raises InputError that names what is missing, why, and what to do."""
    absent = missing(binds, present)
    if absent:
        named = "; ".join(f"{bind.source} ({bind.why or 'asked for with --bind'})" for bind in absent)
        raise InputError(
            f"missing for the container: {named}",
            where=host,
            hint="put it there on every host, take out the setting that needs it, or bind another path to the same "
            "target with --bind SOURCE:TARGET",
        )
    return tuple(bind for bind in binds if bind.source in present)


def _run_directory(place: ContainerPlace) -> tuple[Bind, ...]:
    if place.directory is None:
        return ()
    return (Bind(source=place.directory, read_only=False, why="the run directory, which ranks write to"),)


def _launcher(container: Container, place: ContainerPlace) -> tuple[Bind, ...]:
    """Return the folders of sockets and shared memory through which ranks find their launcher and each other."""
    found: list[Bind] = []
    if container.runtime in ("podman", "docker") and place.starter != "processes":
        found.append(Bind(source=_TEMPORARY, read_only=False, why="the sockets of mpirun and of MPI"))
    if place.pmi == "pmix" and place.starter == "srun" and container.runtime != "pyxis":
        # pyxis has a hook for it. The folder is Slurm's default; a site may have another.
        found.append(Bind(source=SLURM_SPOOL, read_only=False, optional=True, why="the sockets of Slurm's PMIx"))
    return tuple(found)


def _settings_files(values: dict[str, str]) -> tuple[Bind, ...]:
    files = (
        Bind(source=values[variable.name], why=f"{variable.why}, {variable.name}")
        for variable in container_facts().file_variable
        if values.get(variable.name)
    )
    # Only where the host has one: its settings then hold inside too.
    return (Bind(source=NCCL_CONF, optional=True, why="the host's settings for NCCL"), *files)


def _fabric(fabric: FabricName, devices: tuple[str, ...]) -> tuple[Bind, ...]:
    need = fabric_need(fabric)
    nodes = tuple(
        path
        for pattern in need.devices
        for path in ((pattern,) if not pattern.endswith("*") else _matching(pattern, devices))
    )
    return (
        *(Bind(source=path, read_only=False, why=need.why) for path in nodes),
        *(Bind(source=each.source_path, target=each.target_path, why=each.why) for each in need.libraries),
    )


def _matching(pattern: str, devices: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(path for path in devices if path.startswith(pattern[:-1]))
    # Where no host has any, the first one is what is missing.
    return found or (pattern[:-1] + "0",)
