"""The command line that starts a program on a platform: settings, CPUs and launcher in one."""

from dataclasses import dataclass

import msgspec

from busbw.api.recommendations import recommendation
from busbw.base.errors import InputError
from busbw.env.recommend.mpi import BINDING
from busbw.machine.capture import allocation as capture
from busbw.machine.named import platform
from busbw.measure.launchers import registry
from busbw.measure.launchers.launcher import LaunchWords
from busbw.measure.plan.hosts import untried
from busbw.measure.plan.masks import rank_masks
from busbw.model.launch import LaunchLine, LaunchRequest, Slurm, Start
from busbw.model.machine import MpiFamily, MpiLibrary
from busbw.model.plan import Placement, Program
from busbw.model.platform import Platform
from busbw.model.recommendation import Recommendation
from busbw.topo.ranks.masks import cpus_beside_gpus

# Long enough for any benchmark; the command itself has no limit.
_UNLIMITED_S = 86_400.0
_PLACEHOLDER = "HOST"


@dataclass(frozen=True, slots=True)
class _Mpi:
    """An MPI by name, its mpirun the one on PATH there."""

    family: MpiFamily
    version: str
    # What its ranks can be introduced to each other by, the best first.
    slurm_types: tuple[str, ...]
    library: str = "libmpi.so"


_MPIS = {
    "open-mpi-4": _Mpi("Open MPI", "4.1", ("pmix",)),
    "open-mpi-5": _Mpi("Open MPI", "5.0", ("pmix",)),
    "hpcx": _Mpi("Open MPI", "4.1", ("pmix",)),
    "mpich": _Mpi("MPICH", "4.0", ("pmi2",)),
    "intel-mpi": _Mpi("Intel MPI", "2021", ("pmi2",)),
    "mvapich": _Mpi("MVAPICH", "4.0", ("pmi2",)),
    "mvapich2": _Mpi("MVAPICH", "2.3.7", ("pmi2",)),
    "cray-mpich": _Mpi("MPICH", "8.1", ("cray_shasta", "pmi2"), "/opt/cray/pe/lib64/libmpi_cray.so"),
}
MPIS = tuple(_MPIS)
_CRAY = "cray-mpich"
_USUAL = "open-mpi-4"


def launch_line(request: LaunchRequest, directory: str) -> LaunchLine:
    """Return the job that starts a program; its files belong into `directory`, the same on every host.

    Raises InputError for what is not known, and for what the launcher cannot do.
    """
    words = registry.words(request.launcher)
    if request.mpi is not None and request.mpi not in _MPIS:
        raise InputError(f"{request.mpi[:40]!r} is no MPI that is known", hint="one of: " + ", ".join(MPIS))
    _check_options(request, words)
    if not request.program:
        raise InputError("no program is named", hint="busbw launch --platform ID -- PROGRAM ARGUMENTS")
    found = recommendation(
        request.platform,
        nodes=request.nodes,
        collective=request.collective,
        size_bytes=request.size_bytes,
        goal=request.goal,
        follow=request.follow,
        nccl=request.nccl,
        mpi=_mpi_of_platform(request, words),
    )
    # The launcher binds.
    kept = tuple(each for each in found.settings if each.name not in BINDING)
    found = msgspec.structs.replace(found, settings=kept)
    hosts, host_notes = _hosts(request, words)
    masks, mask_notes = _masks(request, found, words)
    placement = _placement(request, found, hosts, masks, words)
    job = words.job(_start(request, found, placement, directory, words), request)
    # Where that MPI's programs and libraries are is not known here: they are found on PATH there.
    found_there = tuple(each for each in job.prepend if each[1].startswith("/"))
    return LaunchLine(
        job=msgspec.structs.replace(job, prepend=found_there),
        launcher=request.launcher,
        recommendation=found,
        notes=(
            *untried(registry.known(request.launcher)),
            *host_notes,
            *_mpi_notes(request, found, words),
            *mask_notes,
            *_advice(found),
        ),
    )


# Options of `busbw launch` that one kind of launcher alone has words for.
_OF_PODS = {
    "--image": "image", "--resource": "resources", "--namespace": "namespace", "--claim": "claim",
    "--host-network": "host_network",
}  # fmt: skip
_OF_BATCH = {"--time": "time_s", "--batch-option": "batch_options"}


def _check_options(request: LaunchRequest, words: LaunchWords) -> None:
    """Raise InputError for an option that the launcher would ignore."""
    others = ({} if words.hosts_of == "pods" else _OF_PODS) | ({} if request.launcher == "sbatch" else _OF_BATCH)
    given = [option for option, field in others.items() if getattr(request, field)]
    if words.hosts_of != "pods" and request.name != "busbw":
        given.append("--name")
    if not given:
        return
    of_srun = (
        "--launcher-option=--container-image=IMAGE where the cluster has pyxis, or put the container before PROGRAM"
    )
    of_pods = "it is for pods: --launcher mpijob or kubernetes-job"
    hint = of_srun if given[0] == "--image" and words.takes_words_of_srun else of_pods
    raise InputError(
        f"{request.launcher} has nothing to do with {given[0]}",
        hint="it is for a batch job: --launcher sbatch" if given[0] in _OF_BATCH else hint,
    )


def _mpi_of_platform(request: LaunchRequest, words: LaunchWords) -> str | None:
    """Return the MPI whose own messages are to be fast: on machines without GPUs the one of the job."""
    if request.platform is None or platform(request.platform).platform.kind != "cpu":
        return None
    if request.mpi is not None or words.usual_mpi != _USUAL:
        return request.mpi or words.usual_mpi
    return _CRAY if _takes_cray(platform(request.platform).platform, words) else words.usual_mpi


def _takes_cray(of: Platform, words: LaunchWords) -> bool:
    return words.takes_words_of_srun and of.fabric.kind == "Slingshot"


def _usual_mpi(found: Recommendation, words: LaunchWords) -> str:
    """Return the MPI where nobody says: on Slingshot that of HPE Cray, which Slurm introduces by its own plug-in."""
    return _CRAY if words.takes_words_of_srun and _is_slingshot(found) else words.usual_mpi


def _is_slingshot(found: Recommendation) -> bool:
    return found.platform != "generic" and platform(found.platform).platform.fabric.kind == "Slingshot"


def _mpi_notes(request: LaunchRequest, found: Recommendation, words: LaunchWords) -> tuple[str, ...]:
    if request.mpi is not None or _usual_mpi(found, words) == words.usual_mpi:
        return ()
    return (f"the MPI is taken to be Cray MPICH, as on {found.platform}: --mpi names another",)


def _start(
    request: LaunchRequest, found: Recommendation, placement: Placement, directory: str, words: LaunchWords
) -> Start:
    mpi = _MPIS[request.mpi or _usual_mpi(found, words)]
    gpus = _gpus(found)
    return Start(
        program=Program(argv=request.program, env=tuple(found.env().items())),
        placement=placement,
        directory=directory,
        mpi=MpiLibrary(family=mpi.family, version=mpi.version, mpirun="mpirun", library=mpi.library, origin="site"),
        slurm=Slurm(srun="srun", version=None, mpi_types=mpi.slurm_types),
        launcher_program=request.launcher,
        hosts_are_named=request.hosts is not None or words.hosts_of != "batch system",
        forward=("LD_LIBRARY_PATH",),
        unset=tuple(each.name for each in found.settings if each.value is None),
        gpus_per_host=gpus or None,
        interface=request.interface,
        options=(*(_of_srun(found) if words.takes_words_of_srun else ()), *request.options),
        measuring_s=_UNLIMITED_S,
        stall_s=_UNLIMITED_S,
    )


def _hosts(request: LaunchRequest, words: LaunchWords) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the hosts, and a note where their names have to be put in by hand."""
    if request.nodes < 1:
        raise InputError("a job has at least one node", where=f"--nodes {request.nodes}")
    if request.hosts is not None:
        names = tuple(host.name for host in capture.hosts(request.hosts).hosts)
        if len(names) != request.nodes:
            raise InputError(f"{len(names)} hosts are named for {request.nodes} nodes", hint=f"--nodes {len(names)}")
        return names, ()
    names = tuple(f"{_PLACEHOLDER}{number}" for number in range(1, request.nodes + 1))
    if words.hosts_of == "pods":
        return tuple(f"{request.name}-worker-{number}" for number in range(request.nodes)), ()
    if words.hosts_of != "nobody" or request.nodes == 1:
        return names, ()
    return names, (f"put the names of your hosts for {names[0]} to {names[-1]} into the host file, or name --hosts",)


def _gpus(found: Recommendation) -> int:
    return platform(found.platform).platform.gpu.count if found.platform != "generic" else 0


def _masks(
    request: LaunchRequest, found: Recommendation, words: LaunchWords
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the CPUs of each process of a node where they are to be given, and a note where they cannot be."""
    if request.binding not in (None, "masks") or (words.hosts_of == "pods" and request.binding is None):
        return (), ()
    each = request.ranks_per_node
    try:
        masks = rank_masks(found.platform)
    except InputError:
        beside = cpus_beside_gpus(platform(found.platform).platform) if found.platform != "generic" else ()
        if beside and each in (None, len(beside)):
            return beside, ()
        if request.binding == "masks":
            raise
        return (), ()
    node = next((form.taskset for form in masks.forms if form.cpus == "node"), ())
    if node and each in (None, len(node)):
        return node, ()
    why = (
        "; ".join(masks.missing)
        or f"{len(node)} GPUs have CPUs of their own, and {each} processes a node are asked for"
    )
    if request.binding == "masks":
        raise InputError(f"cannot tell which CPUs each process should have: {why}", where="--bind-to masks")
    return (), (f"processes are not bound: {why}",)


def _usual_binding(found: Recommendation, words: LaunchWords, each: int, cores: int) -> str:
    """Return how ranks are bound where neither a user nor a GPU decides: to cores where there is one for each."""
    is_cpu = found.platform != "generic" and platform(found.platform).platform.kind == "cpu"
    if not is_cpu or words.hosts_of == "pods" or not cores:
        return "none"
    return "core" if each == cores else "numa" if each < cores else "none"


def _placement(
    request: LaunchRequest,
    found: Recommendation,
    hosts: tuple[str, ...],
    masks: tuple[str, ...],
    words: LaunchWords,
) -> Placement:
    cores = 0 if found.platform == "generic" else platform(found.platform).platform.cpu.cores or 0
    each = request.ranks_per_node or _gpus(found) or cores
    if each < 1:
        raise InputError("cannot tell how many processes a node should have", hint="--ranks-per-node N")
    several = len(hosts) > 1 or request.hosts is not None
    return Placement(
        ranks=each * len(hosts),
        hosts=hosts,
        ranks_of_hosts=(each,) * len(hosts) if several else (),
        binding="masks" if masks else request.binding or _usual_binding(found, words, each, cores),
        masks=masks,
        oversubscribed=False,
    )


def _of_srun(found: Recommendation) -> tuple[str, ...]:
    return tuple(each.option.removeprefix("srun ") for each in found.launch if each.option.startswith("srun --"))


# What the printed line has already.
_ITS_OWN = ("srun --", "busbw ", "mpirun ", "mpiexec ", "mpirun_rsh ")


def _advice(found: Recommendation) -> tuple[str, ...]:
    said = (each for each in found.launch if not each.option.startswith(_ITS_OWN))
    return (
        *(f"{each.option}: {each.reason}" for each in said),
        *(f"cannot tell: {each}" for each in found.cannot_tell),
    )
