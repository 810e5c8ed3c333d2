"""How many ranks run on which host, who starts them, and where they are bound."""

from busbw.base.errors import InputError
from busbw.measure.backends.backend import Backend, Surroundings
from busbw.measure.launchers import registry
from busbw.measure.launchers.launcher import Launchers, RankLauncher
from busbw.measure.plan.hosts import Chosen, gpus_of_hosts, of_hosts, ranks_of_hosts
from busbw.model.launch import Allocation
from busbw.model.plan import Placement, Reach
from busbw.model.request import Request


def counts_of(
    request: Request, surroundings: Surroundings, backend: Backend, names: tuple[str, ...]
) -> tuple[int, ...]:
    """Return the ranks of each host. `names`: the collectives. Raises InputError."""
    is_asked = request.ranks is not None or request.ranks_per_node is not None
    usual = 0 if is_asked else backend.usual_ranks(request, surroundings, names)
    if surroundings.allocation is not None:
        of_each = gpus_of_hosts if backend.over == "nccl" else ranks_of_hosts
        counts = of_each(request, surroundings.allocation, usual)
    elif request.ranks_per_node is not None:
        raise InputError("there is one node: this host", where="--ranks-per-node", hint="--ranks, or --hosts")
    else:
        counts = (request.ranks if request.ranks is not None else usual,)
    backend.check_ranks(request, surroundings, names, counts)
    return counts


def check_joined(request: Request, backend: Backend) -> None:
    """Raise InputError for a launcher whose processes find each other in a way that the backend's cannot."""
    launcher = registry.find(request.launcher) if request.launcher is not None else None
    if launcher is not None and launcher.joining not in backend.joining:
        fitting = registry.names(lambda each: each.joining in backend.joining)
        raise InputError(
            f"{launcher.name} does not start {backend.name}",
            where=f"--launcher {launcher.name}",
            hint=f"one of: {', '.join(fitting)}",
        )


_BOUND = ("core", "numa", "masks")


def launcher_of(request: Request, surroundings: Surroundings, backend: Backend) -> Chosen:
    """Return who starts the ranks. Raises InputError where no launcher can, and for a binding that it cannot give."""
    check_joined(request, backend)
    chosen = _chosen(request, surroundings, backend)
    if request.binding in _BOUND and not chosen.launcher.binds:
        raise InputError(
            f"{chosen.launcher.name} gives ranks no CPUs of their own",
            where=f"--bind-to {request.binding}",
            hint="--launcher mpirun, or start busbw itself under taskset or numactl",
        )
    return chosen


def _chosen(request: Request, surroundings: Surroundings, backend: Backend) -> Chosen:
    if surroundings.allocation is None:
        return Chosen(_here(request, surroundings, backend))
    if surroundings.mpi is None:
        raise InputError(
            "these programs are built without MPI, and start on one host alone",
            where=next((one.program.path for one in surroundings.found.values()), None),
            hint="build them with MPI=1, and name their folder: --bin",
        )
    there = Launchers(slurm=surroundings.slurm, on_path=tuple(surroundings.launchers), settings=surroundings.settings)
    return of_hosts(request, surroundings.allocation, surroundings.mpi, there)


def _here(request: Request, surroundings: Surroundings, backend: Backend) -> RankLauncher:
    if request.launcher is not None:
        return registry.find(request.launcher)
    if surroundings.mpi is not None or backend.usual_launcher is None:
        return registry.usual()
    return registry.find(backend.usual_launcher)


def per_process(request: Request, ranks: int, launcher: RankLauncher) -> int:
    """Return how many of the ranks one process drives."""
    return ranks if launcher.joining == "one process" else request.gpus_per_process


def placement_of(
    request: Request, surroundings: Surroundings, backend: Backend, counts: tuple[int, ...], per_process: int
) -> Placement:
    """Return where the ranks run. Raises InputError for a binding that cannot be."""
    processes = max(counts) // per_process
    oversubscribed = processes > surroundings.host.cores
    allocation = surroundings.allocation
    binding = request.binding
    if binding is None:
        # NCCL moves its threads to the cores beside their GPU, unless somebody bound them elsewhere.
        on_gpus = backend.over == "nccl" or request.gpu_buffers
        binding = "none" if oversubscribed or on_gpus else "core"
    elif backend.is_ours and oversubscribed and binding not in ("none", "default") and not request.cpus:
        raise InputError(
            f"{processes} ranks cannot be bound to {surroundings.host.cores} cores", where=f"--bind-to {binding}"
        )
    return Placement(
        ranks=sum(counts),
        hosts=tuple(host.name for host in allocation.hosts) if allocation is not None else (surroundings.host.name,),
        ranks_of_hosts=counts if allocation is not None else (),
        binding=binding,
        masks=surroundings.masks,
        oversubscribed=oversubscribed,
    )


def reach_of(request: Request, allocation: Allocation | None) -> Reach | None:
    """Return how the launcher comes to other hosts; None where there are none."""
    if allocation is None:
        return None
    return Reach(interface=request.interface, remote_shell=request.remote_shell, options=request.launcher_options)
