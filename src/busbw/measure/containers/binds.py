"""What a container sees of its host: what the program needs, what the user asked for, and what of it is missing."""

from busbw.base.errors import InputError
from busbw.facts.containers import FabricName, container_facts, fabric_need
from busbw.measure.containers.place import ContainerPlace
from busbw.model.container import Bind, Container
from busbw.model.plan import Program

NCCL_CONF = "/etc/nccl.conf"
# Where launchers keep the sockets and shared memory of PMIx, and srun its spool.
_TEMPORARY = "/tmp"  # noqa: S108 - bound, not written
_SLURM_SPOOL = "/var/spool/slurmd"


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
        found.append(Bind(source=_SLURM_SPOOL, read_only=False, optional=True, why="the sockets of Slurm's PMIx"))
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
