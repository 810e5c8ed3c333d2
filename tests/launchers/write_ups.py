"""The starts that the five write-ups' command lines are for: a platform, a goal, a placement."""

from collections.abc import Callable

import msgspec

from busbw.api.recommendations import recommendation
from busbw.measure.launchers import mpirun, srun
from busbw.measure.plan.masks import rank_masks
from busbw.model.launch import Slurm, Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job, Placement, Program
from busbw.model.recommendation import Recommendation

DIRECTORY = "/runs/x"
HPC_X = MpiLibrary(
    family="Open MPI",
    version="4.1.7",
    mpirun="/opt/hpcx/ompi/bin/mpirun",
    library="/opt/hpcx/ompi/lib/libmpi.so.40",
    origin="site",
)
CRAY = MpiLibrary(
    family="MPICH",
    version="8.1.32",
    mpirun="srun",
    library="/opt/cray/pe/mpich/8.1.32/ofi/gnu/12.3/lib/libmpi_gnu_123.so",
    origin="site",
)
SLURM = Slurm(srun="srun", version="23.11.10", mpi_types=("none", "pmi2", "cray_shasta"))
ALL_REDUCE = "/opt/nccl-tests/build/all_reduce_perf"
AZURE_WORDS = (ALL_REDUCE, "-b1K", "-f2", "-g1", "-e", "4G")


def masks_of(platform: str, cpus: str) -> tuple[str, ...]:
    """Return the CPUs of each rank: of its whole NUMA node ("node"), or an even part of it ("share")."""
    return next(form.taskset for form in rank_masks(platform).forms if form.cpus == cpus)


def placed(hosts: tuple[str, ...], per_host: int, binding: str, masks: tuple[str, ...] = ()) -> Placement:
    return Placement(
        ranks=per_host * len(hosts),
        hosts=hosts,
        ranks_of_hosts=(per_host,) * len(hosts) if len(hosts) > 1 else (),
        binding=binding,
        masks=masks,
        oversubscribed=False,
    )


def starting(found: Recommendation, argv: tuple[str, ...], placement: Placement, **changes: object) -> Start:
    """Return the start of a program with the recommended settings."""
    values: dict[str, object] = {
        "program": Program(argv=argv, env=tuple(found.env().items())),
        "placement": placement,
        "directory": DIRECTORY,
        "mpi": HPC_X,
        "measuring_s": 600.0,
        "stall_s": 60.0,
    }
    return Start(**(values | changes))  # type: ignore[arg-type]


def advised(found: Recommendation) -> tuple[str, ...]:
    return tuple(each.option.removeprefix("srun ") for each in found.launch if each.option.startswith("srun "))


def _azure(goal: str, nodes: int, *, collective: str | None = None) -> Start:
    found = recommendation("azure-nd-h100-v5", nodes=nodes, goal=goal, collective=collective, nccl="2.26.5")
    hosts = tuple(f"node{number}" for number in range(nodes))
    placement = placed(hosts, 8, "masks", masks_of(found.platform, "node"))
    return starting(found, AZURE_WORDS, placement, forward=("LD_LIBRARY_PATH",))


def _pinning(*, bound: bool) -> Start:
    found = recommendation("azure-nd-h100-v5", nodes=2, nccl="2.25.1", collective="all_reduce")
    argv = (ALL_REDUCE, "-b", "4", "-e", "8G", "-g", "1", "-c", "0", "-f", "2", "-R", "1")
    hosts = ("node0", "node1")
    forward = ("LD_LIBRARY_PATH",)
    if bound:
        placement = placed(hosts, 8, "masks", masks_of(found.platform, "node"))
        return starting(found, argv, placement, forward=forward)
    # What they compare with: HPC-X binds to cores where nothing is said, and NCCL is told nothing of the topology.
    without = ("NCCL_TOPO_FILE", "NCCL_IGNORE_CPU_AFFINITY")
    env = tuple((name, value) for name, value in found.env().items() if name not in without)
    return starting(found, argv, placed(hosts, 8, "core"), forward=forward, program=Program(argv=argv, env=env))


def _oracle(platform: str) -> Start:
    argv = ("/home/opc/nccl-tests/build/all_reduce_perf", "-b1G", "-e10G", "-i9663676416", "-n", "50")
    found = recommendation(platform, nodes=2, follow="oci-article")
    return starting(found, argv, placed(("node0", "node1"), 8, "masks", masks_of(platform, "node")))


def _isambard(argv: tuple[str, ...], **changes: object) -> Start:
    found = recommendation("isambard-ai-phase2", nodes=2, nccl="2.27.7")
    words = (*argv, "-b", "32KB", "-e", "8GB", "-f", "2", "-g", "4")
    values: dict[str, object] = {
        "mpi": CRAY,
        "slurm": SLURM,
        "per_process": 4,
        "gpus_per_host": 4,
        "options": advised(found),
    }
    # No map of this machine's CPUs is published.
    return starting(found, words, placed(("nid001024", "nid001025"), 4, "none"), **(values | changes))


def _isambard_without_plugin() -> Start:
    start = _isambard(("/home/me/nccl-tests/build/all_reduce_perf",))
    return msgspec.structs.replace(start, program=Program(argv=start.program.argv, env=()))


def _isambard_with_plugin() -> Start:
    start = _isambard(
        ("/home/me/nccl-tests/build/all_reduce_perf",),
        prepend=(("LD_LIBRARY_PATH", "/home/me/aws-ofi-nccl/build/lib"),),
    )
    return msgspec.structs.replace(start, options=("--cpus-per-task=72", *start.options))


def _isambard_in_container() -> Start:
    """Return the start of a program that is already wrapped; the image brings the environment."""
    start = _isambard(
        (
            *("singularity", "exec", "--nv"),
            *("--bind", "/opt/cray/libfabric/1.22.0:/host/opt/cray/libfabric/1.22.0:ro"),
            *("--bind", "/usr/lib64:/host/usr/lib64:ro"),
            *("--bind", "/home/me/nccl_build:/opt/slingshot"),
            *("/home/me/sif-images/pytorch.sif", "/opt/slingshot/nccl-tests/all_reduce_perf"),
        )
    )
    return msgspec.structs.replace(
        start,
        program=Program(argv=start.program.argv, env=()),
        options=("--cpus-per-task=72", "--mpi=pmi2", *start.options),
    )


def _grok() -> Start:
    found = recommendation("azure-nd-h100-v5", nodes=2, goal="training", nccl="2.26.5")
    mounts = (
        *(word.partition("=")[2] for word in advised(found) if word.startswith("--container-mounts=")),
        *("/stage/results", "/stage/index_mapping", "/stage/cfg:/cfg", "/stage/configure.sh:/gsw/configure.sh"),
    )
    options = (
        "--container-image=/images/grok.sqsh",
        f"--container-mounts={','.join(mounts)}",
        *(word for word in advised(found) if word.startswith("--container-env=")),
        "--container-writable",
        "--no-container-mount-home",
    )
    return starting(
        found,
        ("bash", "-c", "source /gsw/configure.sh && launch"),
        placed(("node0", "node1"), 8, "masks", masks_of(found.platform, "share")),
        mpi=None,
        slurm=msgspec.structs.replace(SLURM, has_pyxis=True),
        options=options,
    )


# As the page calls them: how the job is made, and for how many processes.
LINES: dict[str, tuple[Callable[[], Job], int]] = {
    "One node over NVLink, NDv5": (lambda: mpirun.job(_azure("nvlink-check", 1)), 8),
    "One node, InfiniBand only, NDv5": (lambda: mpirun.job(_azure("nic-check", 1)), 8),
    "Several nodes, NDv5": (lambda: mpirun.job(_azure("bandwidth", 4)), 32),
    "Several nodes with SHARP, NDv5": (lambda: mpirun.job(_azure("sharp", 4, collective="all_reduce")), 32),
    "CPU pinning, NDv5: the default": (lambda: mpirun.job(_pinning(bound=False)), 16),
    "CPU pinning, NDv5: with the topology file": (lambda: mpirun.job(_pinning(bound=True)), 16),
    "OCI BM.GPU4.8": (lambda: mpirun.job(_oracle("oci-bm-gpu4-8")), 16),
    "OCI BM.GPU.B4.8": (lambda: mpirun.job(_oracle("oci-bm-gpu-b4-8")), 16),
    "Isambard-AI without the plug-in": (lambda: srun.job(_isambard_without_plugin()), 2),
    "Isambard-AI with the plug-in": (lambda: srun.job(_isambard_with_plugin()), 2),
    "Isambard-AI in a container": (lambda: srun.job(_isambard_in_container()), 2),
    "Training Grok-1, NDv5": (lambda: srun.job(_grok()), 16),
}
