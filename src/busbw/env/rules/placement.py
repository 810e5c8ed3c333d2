"""What a launcher is asked for: where it puts ranks against where their GPUs are, shares of a node, its options."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from busbw.base.cpus import format_cpu_list
from busbw.base.errors import InputError
from busbw.env.reading.arguments import letters_of_option
from busbw.env.rules.situations import Situation, is_plain, slurm_options
from busbw.env.rules.subject import SettingsSubject, place_of, report, setting_text
from busbw.model.finding import FilePlace, Finding
from busbw.model.platform import Platform
from busbw.model.settings import LaunchCommand
from busbw.model.topology import BindingReading, RankMasks
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.ranks.binding import parse_masks
from busbw.topo.ranks.masks import masks_of
from busbw.topo.ranks.readings import INTEL_MPI, OTHER_MPIS

_DEFAULT = "default"
# Options, by their letters, and variables that say where ranks run or are meant to, and programs that do.
_PLACING = {
    "rf", "rankfile", "cpuset", "cpulist", "slotlist", "bindto", "bindtocore", "bindtosocket", "bycore", "bysocket",
    "cpusperproc", "cpusperrank", "rankby", "cpubind", "app", "appfile",
}  # fmt: skip
_PLACING_VARIABLES = ("binding_policy", "rmaps_base_mapping_policy", "default_binding_policy", "default_mapping_policy")
_PINNING = {"numactl", "taskset", "hwloc-bind", "torchrun", "bash", "sh", "env", "apptainer", "singularity", "docker"}
_OF_SEVERAL_HOSTS = {"hostfile", "machinefile", "H", "host", "f", "hosts"}
_PPR = re.compile(r"ppr:(\d{1,4}):node(?::.*)?", re.ASCII)
_OF_MPIRUN = ("--bind-to", "--map-by", "--rank-by")
_OF_SRUN = ("--cpu-bind",)
# Modules that bring an MPI, by what sites call them: openmpi/4.1.5, OpenMPI/5.0.3-GCC-13, openmpi4/4.1.1, mpi/openmpi.
_MODULE = re.compile(
    r"\s*(?:module\s+(?:-\S+\s+)*(?:load|add|swap|switch)|ml(?:\s+(?:load|add|swap))?)\s+([^#;&|]+)", re.ASCII
)
_OPEN_MPI = re.compile(r"open-?mpi(?:[/@-]?v?(\d))?", re.ASCII)
_OPEN_MPIS: dict[str | None, tuple[str, ...]] = {"4": ("Open MPI 4.1",), "5": ("Open MPI 5.0",)}
_INTEL = re.compile(r"(?:^|[/-])i(?:ntel)?-?mpi|oneapi-mpi", re.ASCII)
_OTHER_MPI = re.compile(r"mpich|mvapich|spectrum-mpi|(?:^|/)mpt(?:$|/)", re.ASCII)
# Working one out takes milliseconds; a script has a handful.
_MOST_BINDINGS = 32


def placement(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield bindings that put ranks where their GPUs are not."""
    platform = subject.context.platform
    if platform is None or platform.gpu.count < 2:
        return
    worked_out: dict[tuple[str, bool], RankMasks | None] = {}
    for situation in subject.situations:
        launch = situation.launch
        if launch is None or is_plain(launch) or _reorders(situation, platform.gpu.count):
            continue
        binding = _binding(launch)
        own = _mpi(subject, situation, launch) if launch.kind == "mpirun" else None
        # Options that bind are Open MPI's here.
        is_open_mpi = launch.family == "Open MPI" and binding is not None
        if (own == () and not is_open_mpi) or (own == (INTEL_MPI,) and binding is not None):
            continue
        if binding is None and _is_left_to_default(subject, situation, launch, platform.gpu.count):
            binding = _DEFAULT if own == (INTEL_MPI,) else _mapping(launch) or _DEFAULT
        if binding is None:
            continue
        moved = _moved(situation)
        if (binding, moved) not in worked_out and len(worked_out) < _MOST_BINDINGS:
            worked_out[binding, moved] = _masks(platform, binding, moved=moved)
        yield from _launch(launch, platform, binding, _under(worked_out.get((binding, moved)), own), moved=moved)


def _mpi(subject: SettingsSubject, situation: Situation, launch: LaunchCommand) -> tuple[str, ...] | None:
    """Return the MPI of an mpirun, as bindings are told of; None: any of Open MPI, (): one that is not known here.

    Options of Hydra are those of MPICH and of Intel MPI, and variables of the latter tell them apart.
    """
    if launch.family == "Open MPI":
        own = _mpi_of_module(subject.reading.lines[: launch.line - 1])
        return None if own == (INTEL_MPI,) else own
    if launch.family == "Intel MPI" or any(name.startswith("I_MPI_") for name in situation.settings):
        return (INTEL_MPI,)
    own = _mpi_of_module(subject.reading.lines[: launch.line - 1])
    return () if launch.family == "MPICH" and own != (INTEL_MPI,) else own


def _mpi_of_module(lines: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the MPI whose module is loaded last, as bindings are told of; None: no such module, (): another kind."""
    for line in reversed(lines):
        loaded = _MODULE.match(line)
        for word in reversed(loaded[1].lower().split()) if loaded is not None else ():
            if (found := _OPEN_MPI.search(word)) is not None:
                return _OPEN_MPIS.get(found[1], (*_OPEN_MPIS["4"], *_OPEN_MPIS["5"]))
            if "hpcx" in word or "hpc-x" in word:
                return ("HPC-X 2",)
            if _INTEL.search(word) is not None:
                return (INTEL_MPI,)
            if _OTHER_MPI.search(word) is not None:
                return ()
    return None


def _under(masks: RankMasks | None, own: tuple[str, ...] | None) -> RankMasks | None:
    """Return what is worked out for the MPI that is loaded; where that is not known, for all but those it suits."""
    if masks is None:
        return None
    others = [each for each in masks.readings if each.launcher in OTHER_MPIS]
    if own:
        readings = tuple(each for each in masks.readings if set(own) & set(each.launcher.split(", ")))
    else:
        readings = tuple(each for each in masks.readings if each not in others or _wrong(each))
    return replace(masks, readings=readings)


def _is_left_to_default(subject: SettingsSubject, situation: Situation, launch: LaunchCommand, gpus: int) -> bool:
    """Whether an mpirun starts a rank for each GPU and nothing says where: no option, no variable, no wrapper."""
    if launch.kind != "mpirun" or launch.computed or launch.program is None:
        return False
    own = launch.argv[: launch.program]
    words = {letters_of_option(word.partition("=")[0]) for word in own if word.startswith("-")}
    if words & _PLACING or any(
        name.endswith(_PLACING_VARIABLES) or name.startswith("I_MPI_PIN") for name in situation.settings
    ):
        return False
    program = launch.argv[launch.program].rpartition("/")[2]
    if program in _PINNING or program.endswith((".sh", ".py")) or "bind" in program or program.startswith("python"):
        return False
    return ranks_of_node(own, subject.nodes) == gpus


def ranks_of_node(own: tuple[str, ...], nodes: int | None) -> int | None:
    """Return how many ranks mpirun starts on a node, None where its options do not say."""
    found = _named(own)
    several = bool(found.keys() & _OF_SEVERAL_HOSTS)
    total = next((int(found[name]) for name in ("np", "n", "c") if _is_count(found.get(name))), None)
    here = _ranks_each(found)
    if here is not None:
        return here if total is None else min(here, total)
    count = 1 if nodes is None and not several else nodes
    return total // count if count and total is not None else None


def _named(own: tuple[str, ...]) -> dict[str, str]:
    """Return each option of a launch, without its dashes, and the word that it takes or that follows it."""
    found: dict[str, str] = {}
    for place, word in enumerate(own):
        name, equals, value = word.partition("=")
        if name.startswith("-"):
            following = own[place + 1] if place + 1 < len(own) else ""
            found[name.lstrip("-").replace("_", "-")] = value if equals else following
    return found


def _is_count(text: str | None) -> bool:
    return text is not None and text.isdecimal() and text.isascii() and len(text) < 8


def _ranks_each(found: dict[str, str]) -> int | None:
    if match := _PPR.fullmatch(found.get("map-by", "")):
        return int(match[1])
    names = ("N", "npernode", "ppn", "perhost", "ntasks-per-node")
    return next((int(found[name]) for name in names if _is_count(found.get(name))), None)


def _mapping(launch: LaunchCommand) -> str | None:
    """Return how a launch that names no binding maps ranks: Open MPI binds by that."""
    found = _named(launch.argv[: launch.program] if launch.program is not None else launch.argv)
    if (map_by := found.get("map-by")) is not None:
        return f"--map-by {map_by}" if map_by and "$" not in map_by else None
    each = next((found[name] for name in ("N", "npernode") if _is_count(found.get(name))), None)
    return f"--map-by ppr:{each}:node" if each is not None else None


def _reorders(situation: Situation, gpus: int) -> bool:
    """Whether ranks may take other GPUs than those of their number."""
    visible = situation.settings.get("CUDA_VISIBLE_DEVICES")
    return visible is not None and (visible.value or "").replace(" ", "") != ",".join(map(str, range(gpus)))


def _moved(situation: Situation) -> bool:
    """Whether NCCL goes by its GPU alone, and not by what it inherits."""
    ignoring = situation.settings.get("NCCL_IGNORE_CPU_AFFINITY")
    return ignoring is not None and ignoring.value == "1"


def _launch(
    launch: LaunchCommand, platform: Platform, binding: str, masks: RankMasks | None, *, moved: bool
) -> Iterator[Finding]:
    """Yield that every launcher that can be told puts some rank elsewhere, with the ranks of each."""
    readable = [reading for reading in masks.readings if reading.cannot_tell is None] if masks is not None else []
    wrong = [(reading, _wrong(reading)) for reading in readable]
    if not wrong or not all(ranks for _reading, ranks in wrong):
        return
    is_one = len({ranks for _reading, ranks in wrong}) == 1
    every = sorted({rank for _reading, ranks in wrong for rank in ranks})
    means = [f"{_said(ranks)} under {reading.launcher}" for reading, ranks in wrong]
    first = next(each for each in wrong[0][0].ranks if each.rank == wrong[0][1][0])
    yield report(
        "ENV120",
        at=place_of(launch),
        evidence=f"{platform.id}: GPUs 0-{platform.gpu.count - 1} are on NUMA nodes {_nodes(masks)}; "
        f"rank {first.rank} would run on {_cpus(frozenset(first.cpus or ()))} under {wrong[0][0].launcher}",
        confidence="likely",
        effect=(
            "NCCL_IGNORE_CPU_AFFINITY=1 lets NCCL move its own threads; the program's stay there"
            if moved
            else "NCCL keeps its threads there too"
        ),
        fix=f"busbw topo masks --platform {platform.id}" + ("" if moved else ", or NCCL_IGNORE_CPU_AFFINITY=1"),
        binding=binding if len(binding) <= 60 else f"{binding[:57]}...",
        ranks=_said(wrong[0][1]) if is_one and binding != _DEFAULT else ", ".join(means),
        gpus="its GPU" if len(every) == 1 else "their GPUs",
    )


def _wrong(reading: BindingReading) -> tuple[int, ...]:
    return tuple(each.rank for each in reading.ranks if each.fit == "wrong")


def _said(ranks: tuple[int, ...]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {format_cpu_list(ranks)}"


def _binding(launch: LaunchCommand) -> str | None:
    """Return the options of a launch that bind ranks, None where it has none or one cannot be read here."""
    options = _OF_MPIRUN if launch.kind == "mpirun" else _OF_SRUN if launch.kind == "srun" else ()
    own = launch.argv[: launch.program] if launch.program is not None else launch.argv
    found: list[str] = []
    for place, word in enumerate(own):
        name, equals, value = word.partition("=")
        name = "--" + name.lstrip("-").replace("_", "-") if name.startswith("-") else name
        if name not in options:
            continue
        taken = value if equals else own[place + 1] if place + 1 < len(own) else ""
        if not taken or "$" in taken:
            return None
        found += [name, taken]
    # Where it is not said what to bind to, it depends on whether this starts a rank for each GPU.
    return " ".join(found) if any(name in ("--bind-to", "--cpu-bind") for name in found) else None


def _masks(platform: Platform, binding: str, *, moved: bool) -> RankMasks | None:
    try:
        topology = topology_of_platform(platform)
        return masks_of(topology, sockets=platform.cpu.sockets, binding=binding, ranks=None, ignores_affinity=moved)
    except InputError:
        return None


def _nodes(masks: RankMasks | None) -> str:
    return ",".join(str(place.numa) for place in masks.ranks) if masks is not None else ""


_MASKS = re.compile(
    r"(?:--cpu-bind(?:=|\Z))?(?:(?:verbose|quiet|v|q),)?(?P<kind>mask_cpu|map_cpu):(?P<list>.+)", re.DOTALL
)
_MOST_TASKS = 512


def overlaps(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield masks of tasks that share some CPUs and differ in others, and CPUs that two tasks are given alone."""
    for launch in subject.reading.launches:
        own = launch.argv[: launch.program] if launch.program is not None else launch.argv
        found = next((match for word in own if (match := _MASKS.fullmatch(word.replace('"', ""))) is not None), None)
        if launch.kind == "srun" and found is not None and "$" not in found["list"]:
            yield from _overlap(
                place_of(launch), found.group().removeprefix("--cpu-bind="), found["kind"], found["list"]
            )
    for each in subject.reading.assignments:
        value = (each.value or "").strip()
        if each.name == "I_MPI_PIN_DOMAIN" and value.startswith("[") and value.endswith("]"):
            yield from _overlap(place_of(each), setting_text(each), "mask_cpu", value[1:-1])


def _overlap(at: FilePlace, written: str, kind: str, text: str) -> Iterator[Finding]:
    try:
        lists = [frozenset(cpus) for cpus in parse_masks(kind, text).lists[:_MOST_TASKS]]
    except InputError:
        return
    for second, cpus in enumerate(lists):
        for first in range(second):
            shared = cpus & lists[first]
            # Tasks of one NUMA node may well have all of it, each.
            if shared and (cpus != lists[first] or kind == "map_cpu"):
                yield report(
                    "ENV121",
                    at=at,
                    evidence=written if len(written) <= 80 else f"{written[:77]}...",
                    confidence="certain",
                    effect=f"both run on {_cpus(shared)}, beside one of the GPUs at most",
                    fix="busbw topo masks --platform ID",
                    first=str(first),
                    second=str(second),
                )
                return


def _cpus(cpus: frozenset[int]) -> str:
    return f"CPU{'s' if len(cpus) > 1 else ''} {format_cpu_list(tuple(sorted(cpus)))}"


# Where what a task asks for has to come from.
_CPUS = ("-c", "--cpus-per-task")
_TASKS = ("--ntasks-per-node", "--tasks-per-node")
_GPUS_OF_TASK = ("--gpus-per-task",)
_GPUS_OF_NODE = ("--gpus-per-node", "--gres")
_COUNT = re.compile(r"(?:gpu(?::[\w.-]+)?[:=])?(\d{1,5})(?:\(.*)?", re.ASCII)


def shares(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield CPUs and GPUs that a node does not have, and tasks with fewer CPUs than reach all of their GPUs."""
    platform = subject.context.platform
    if platform is None or subject.batch_system not in (None, "SBATCH"):
        return
    for launch in subject.reading.launches:
        if launch.kind == "srun" or (launch.kind == "other" and launch.argv[:1] in (("salloc",), ("sbatch",))):
            own = launch.argv[: launch.program] if launch.program is not None else launch.argv
            asked = subject.job_options | slurm_options(own[1:])
            yield from _share(launch, platform, asked, _gpus_of_program(launch))


def _share(
    launch: LaunchCommand, platform: Platform, asked: dict[str, str], program_gpus: int | None
) -> Iterator[Finding]:
    cpus, tasks = _count(asked, _CPUS), _count(asked, _TASKS)
    of_task, of_node = _count(asked, _GPUS_OF_TASK), _count(asked, _GPUS_OF_NODE)
    nodes, all_tasks = _count(asked, ("-N", "--nodes")), _count(asked, ("-n", "--ntasks"))
    all_gpus = _count(asked, ("-G", "--gpus"))
    if tasks is None and nodes and all_tasks and all_tasks % nodes == 0:
        tasks = all_tasks // nodes
    if of_node is None and nodes and all_gpus and all_gpus % nodes == 0:
        of_node = all_gpus // nodes
    tasks = 1 if tasks is None and all_tasks is None and nodes is not None else tasks
    threads = platform.cpu.threads or platform.cpu.cores
    if cpus is not None and threads is not None and cpus * (tasks or 1) > threads:
        yield _cannot(launch, f"--cpus-per-task={cpus}", f"{tasks or 1} x {cpus} CPUs; {platform.id} has {threads}")
        return
    gpus = of_node if of_node is not None else of_task * tasks if of_task is not None and tasks else None
    if gpus is not None and gpus > platform.gpu.count:
        yield _cannot(launch, f"{gpus} GPUs of a node", f"{platform.id} has {platform.gpu.count}")
        return
    each = of_task if of_task is not None else program_gpus
    if each is None and gpus is not None and tasks == 1:
        each = gpus
    yield from _reach(launch, platform, cpus, each)


def _reach(launch: LaunchCommand, platform: Platform, cpus: int | None, gpus: int | None) -> Iterator[Finding]:
    """Yield a task whose CPUs are too few to be beside all of its GPUs."""
    places = len({gpu.numa for gpu in platform.gpus if gpu.numa is not None}) or platform.cpu.sockets or 0
    threads = platform.cpu.threads or platform.cpu.cores
    if cpus is None or gpus is None or threads is None or places < 2 or platform.gpu.count < 2:
        return
    needed = -(-gpus * places // platform.gpu.count)
    each = threads // (platform.cpu.numa_nodes or max(places, platform.cpu.sockets or 1))
    if gpus < 2 or needed < 2 or cpus > each * (needed - 1):
        return
    one = each * places // platform.gpu.count
    yield report(
        "ENV122",
        at=place_of(launch),
        evidence=f"a task has {gpus} GPUs on {needed} NUMA nodes of {each} CPUs; {platform.id} has {threads} CPUs",
        confidence="likely",
        effect=f"the threads of {gpus} GPUs share {cpus} CPUs, and reach those of other NUMA nodes across the node",
        fix=f"--cpus-per-task={each * needed}, or a task for each GPU: --gpus-per-task=1 --cpus-per-task={one}",
        cpus=str(cpus),
        gpus=str(gpus),
    )


def _cannot(launch: LaunchCommand, option: str, evidence: str) -> Finding:
    return report(
        "ENV123",
        at=place_of(launch),
        evidence=evidence,
        confidence="likely",
        effect="Slurm refuses the job, or the step waits for what never comes",
        option=option,
    )


def _count(asked: dict[str, str], names: tuple[str, ...]) -> int | None:
    found = [_COUNT.fullmatch(asked[name]) for name in names if name in asked]
    return next((int(each[1]) for each in reversed(found) if each is not None), None)


def _gpus_of_program(launch: LaunchCommand) -> int | None:
    """Return the GPUs of each process of nccl-tests, None for other programs."""
    words = launch.argv[launch.program :] if launch.program is not None else ()
    if not words or not words[0].endswith("_perf"):
        return None
    found = re.search(r" (?:-g ?|--ngpus[ =])(\d{1,3})\b", " " + " ".join(words[1:]))
    return int(found[1]) if found is not None else 1
