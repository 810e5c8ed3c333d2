"""The command line that starts a program on a platform: settings, CPUs and launcher in one."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from busbw.api.recommendations import recommendation
from busbw.base.cpus import mask_bits, parse_cpu_list
from busbw.base.errors import InputError
from busbw.env.recommend.mpi import BINDING
from busbw.facts.containers import FabricName, why_unbound
from busbw.machine.capture import allocation as capture
from busbw.machine.capture import host, programs
from busbw.machine.named import platform
from busbw.measure.containers.inside import NCCL_CONF, SLURM_SPOOL
from busbw.measure.containers.place import ContainerPlace, Starter
from busbw.measure.launchers import registry
from busbw.measure.launchers.launcher import LaunchWords
from busbw.measure.plan.containing import in_container_elsewhere, pmi_of
from busbw.measure.plan.hosts import untried
from busbw.measure.plan.masks import process_masks
from busbw.model.launch import CpuSharing, LaunchLine, LaunchRequest, Slurm, Start
from busbw.model.machine import MpiFamily, MpiLibrary
from busbw.model.plan import Placement, Program
from busbw.model.platform import Platform
from busbw.model.recommendation import Recommendation
from busbw.model.request import Bind, Container, container_of

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
    "mvapich-plus": _Mpi("MVAPICH", "4.0", ("pmi2",)),
    "mvapich2": _Mpi("MVAPICH", "2.3.7", ("pmi2",)),
    "mvapich2-gdr": _Mpi("MVAPICH", "2.3.7", ("pmi2",)),
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
    _check_container(request, words)
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
    if not masks and placement.binding != "none" and request.runtime is None:
        # Bound all the same, to cores or NUMA nodes by the launcher's own words.
        mask_notes = ()
    start, mounts, container_notes = _contained(
        request, found, words, _start(request, found, placement, directory, words)
    )
    job = words.job(start, request)
    # Where that MPI's programs and libraries are is not known here: they are found on PATH there.
    found_there = tuple(each for each in job.prepend if each[1].startswith("/"))
    return LaunchLine(
        job=msgspec.structs.replace(job, prepend=found_there),
        launcher=request.launcher,
        recommendation=found,
        mounts=mounts,
        notes=(
            *untried(registry.known(request.launcher)),
            *host_notes,
            *_mpi_notes(request, found, words),
            *mask_notes,
            *container_notes,
            *_advice(found),
        ),
    )


# Options of `busbw launch` that one kind of launcher alone has words for.
_OF_PODS = {
    "--resource": "resources", "--namespace": "namespace", "--claim": "claim", "--host-network": "host_network",
}  # fmt: skip
# Options that pods have no use for: they are containers, and their CPUs are the cluster's to give.
_NOT_OF_PODS = {
    "--container": "runtime", "--mount": "mounts", "--container-option": "container_options", "--cpus": "cpus",
}  # fmt: skip
_OF_CONTAINERS = {"--image": "image", "--mount": "mounts", "--container-option": "container_options"}
_OF_BATCH = {"--time": "time_s", "--batch-option": "batch_options"}


def _check_options(request: LaunchRequest, words: LaunchWords) -> None:
    """Raise InputError for an option that the launcher would ignore."""
    of_pods = words.hosts_of == "pods"
    others = (_NOT_OF_PODS if of_pods else _OF_PODS) | ({} if request.launcher == "sbatch" else _OF_BATCH)
    given = [option for option, field in others.items() if getattr(request, field)]
    if not of_pods and request.name != "busbw":
        given.append("--name")
    if given:
        hint = "leave it out: pods are containers" if of_pods else "it is for pods: --launcher mpijob or kubernetes-job"
        raise InputError(
            f"{request.launcher} has nothing to do with {given[0]}",
            hint="it is for a batch job: --launcher sbatch" if given[0] in _OF_BATCH else hint,
        )
    if request.cpus is not None and request.binding is not None:
        raise InputError("--cpus and --bind-to both give processes their CPUs", hint="leave out one of them")


def _check_container(request: LaunchRequest, words: LaunchWords) -> None:
    """Raise InputError for what a container is told where there is none, and for launchers that start none."""
    if words.hosts_of == "pods":
        return
    given = [option for option, field in _OF_CONTAINERS.items() if getattr(request, field)]
    if request.runtime is None and given:
        runtimes = "pyxis, apptainer ..." if _starter(request, words) == "srun" else "apptainer, charliecloud ..."
        raise InputError(
            f"{given[0]} needs a runtime",
            hint=f"--container {runtimes} --image IMAGE; without a runtime it is for pods: --launcher mpijob",
        )
    if request.runtime is not None and _starter(request, words) is None:
        raise InputError(
            f"processes in a container are not started by {request.launcher}",
            where=f"--container {request.runtime}",
            hint="--launcher mpirun, srun or sbatch",
        )


def _starter(request: LaunchRequest, words: LaunchWords) -> Starter | None:
    """Return who starts a container's runtime; None: it is not known how."""
    if words.takes_words_of_srun:
        return "srun"
    launcher = registry.known(request.launcher)
    return launcher.of_containers if launcher is not None else None


_FABRICS: dict[str, FabricName] = {"InfiniBand": "InfiniBand", "RoCE": "RoCE", "EFA": "EFA", "Slingshot": "Slingshot"}


def _contained(
    request: LaunchRequest, found: Recommendation, words: LaunchWords, start: Start
) -> tuple[Start, tuple[Bind, ...], tuple[str, ...]]:
    """Return the start whose program runs in the container, where one is named, what is bound, and notes."""
    if request.runtime is None or start.mpi is None:
        return start, (), ()
    known = platform(found.platform).platform
    container = container_of(
        request.runtime, request.image, request.mounts, request.container_options, gpus=known.gpu.count > 0
    )
    starter = _starter(request, words)
    assert container is not None
    assert starter is not None
    place = ContainerPlace(
        pmi=pmi_of(start.mpi),
        gpu_vendor="nvidia" if known.gpu.gcn is None else "amd",
        fabric=_FABRICS.get(known.fabric.kind or ""),
        devices=tuple(f"/dev/cxi{number}" for number in range(known.nic.ports or 0)),
        user=host.user(),
    )
    made, wrapped = in_container_elsewhere(msgspec.structs.replace(start, forward=()), container, place, starter)
    return made, wrapped.binds, (*wrapped.notes, *_not_let_in(known), *_unseen(container, wrapped.binds))


def _not_let_in(known: Platform) -> Iterator[str]:
    """Yield what a container may need of a machine and is not given."""
    if not known.gpu.count and known.fabric.kind is None:
        yield f"GPUs and NICs of {known.id} are not known, and none are let in: --container-option says more"
    elif known.fabric.kind in ("TCPX", "TCPXO"):
        yield f"what {known.fabric.kind} needs of the host is not known here: --mount, --container-option"


def _unseen(container: Container, binds: tuple[Bind, ...]) -> Iterator[str]:
    """Yield what to know of paths that cannot be looked at on the nodes, and of settings that stay outside."""
    named = [bind.source for bind in container.binds]
    named += [container.image] if container.image.startswith("/") else []
    here = programs.present((*named, NCCL_CONF))
    missing = [path for path in named if path not in here]
    if missing:
        yield f"not on this host: {', '.join(missing)}. Every node must have it, or the container does not start"
    if SLURM_SPOOL in {bind.source for bind in binds} and SLURM_SPOOL not in named:
        yield (
            f"{SLURM_SPOOL} is Slurm's default; where SlurmdSpoolDir is another folder, "
            f"--mount FOLDER:FOLDER:rw --mount FOLDER:{SLURM_SPOOL}:rw"
        )
    if NCCL_CONF not in {bind.target or bind.source for bind in binds}:
        yield (
            f"{NCCL_CONF} of the nodes is not mounted: the settings are in this script; "
            f"--mount {NCCL_CONF} where it shall hold inside too"
        )


def _mpi_of_platform(request: LaunchRequest, words: LaunchWords) -> str | None:
    """Return the MPI whose own messages are to be fast: on machines with GPUs only one that is for their memory."""
    if request.platform is None or platform(request.platform).platform.kind != "cpu":
        return request.mpi if request.mpi == "mvapich2-gdr" else None
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
        options=(*(_of_srun(found, request) if words.takes_words_of_srun else ()), *request.options),
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
    """Return the CPUs of each process of a node where they are to be given, and notes on them, or why they are not."""
    is_asked = request.cpus is not None or request.binding == "masks"
    if not is_asked and (request.binding is not None or words.hosts_of == "pods" or found.platform == "generic"):
        return (), ()
    masks = process_masks(platform(found.platform).platform, request.ranks_per_node, request.cpus or "numa")
    unbound = why_unbound(request.runtime) if request.runtime is not None else None
    if unbound is None and not isinstance(masks, str):
        return masks, _said(request.cpus, masks)
    why = masks if isinstance(masks, str) else unbound
    if is_asked:
        where = f"--cpus {request.cpus}" if request.cpus is not None else "--bind-to masks"
        if isinstance(masks, str):
            raise InputError(f"cannot tell which CPUs each process should have: {why}", where=where)
        raise InputError(f"{request.runtime} does not keep them: {why}", where=where, hint="--container apptainer")
    return (), (f"processes are not bound: {why}",)


def _said(sharing: CpuSharing | None, masks: tuple[str, ...]) -> tuple[str, ...]:
    """Return the masks in words of srun, where they were asked for by name."""
    if sharing is None:
        return ()
    what = "an even share of the cores" if sharing == "even" else "the NUMA node of its GPU"
    bits = ",".join(f"{mask_bits(parse_cpu_list(cpus) or ()):x}" for cpus in masks)
    return (f"CPUs of each process, {what}: {bits}",)


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


def _of_srun(found: Recommendation, request: LaunchRequest) -> tuple[str, ...]:
    """Return the recommended words; those for containers are the runtime's to say, where there is one."""
    words = (each.option.removeprefix("srun ") for each in found.launch if each.option.startswith("srun --"))
    return tuple(word for word in words if request.runtime is None or not word.startswith("--container-"))


# What the printed line has already.
_ITS_OWN = ("srun --", "busbw ", "mpirun ", "mpiexec ", "mpirun_rsh ")


def _advice(found: Recommendation) -> tuple[str, ...]:
    said = (each for each in found.launch if not each.option.startswith(_ITS_OWN))
    return (
        *(f"{each.option}: {each.reason}" for each in said),
        *(f"cannot tell: {each}" for each in found.cannot_tell),
    )
