"""Where a launcher puts ranks on the platform's cores, against where its GPUs are."""

from collections.abc import Iterator

from busbw.base.cpus import format_cpu_list
from busbw.base.errors import InputError
from busbw.env.rules.situations import Situation
from busbw.env.rules.subject import SettingsSubject, place_of, report
from busbw.model.finding import Finding
from busbw.model.platform import Platform
from busbw.model.settings import LaunchCommand
from busbw.model.topology import BoundRank, RankMasks
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.ranks.masks import masks_of

_OF_MPIRUN = ("--bind-to", "--map-by", "--rank-by")
_OF_SRUN = ("--cpu-bind",)
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
        binding = _binding(launch) if launch is not None else None
        if launch is None or binding is None or _reorders(situation, platform.gpu.count):
            continue
        moved = _moved(situation)
        if (binding, moved) not in worked_out and len(worked_out) < _MOST_BINDINGS:
            worked_out[binding, moved] = _masks(platform, binding, moved=moved)
        yield from _launch(launch, platform, binding, worked_out.get((binding, moved)), moved=moved)


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
    wrong = _wrong_everywhere(masks) if masks is not None else ()
    if not wrong:
        return
    yield report(
        "ENV120",
        at=place_of(launch),
        evidence=f"{platform.id}: GPUs 0-{platform.gpu.count - 1} are on NUMA nodes {_nodes(masks)}; {_first(wrong)}",
        confidence="likely",
        effect=(
            "NCCL_IGNORE_CPU_AFFINITY=1 lets NCCL move its own threads; the program's stay there"
            if moved
            else "NCCL keeps its threads there too"
        ),
        fix=f"busbw topo masks --platform {platform.id}" + ("" if moved else ", or NCCL_IGNORE_CPU_AFFINITY=1"),
        binding=binding if len(binding) <= 60 else f"{binding[:57]}...",
        ranks=f"{'rank' if len(wrong) == 1 else 'ranks'} {format_cpu_list(tuple(each.rank for each in wrong))}",
        gpus="its GPU" if len(wrong) == 1 else "their GPUs",
    )


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
    # Where it is not said what to bind to, versions differ too much to call anything wrong.
    return " ".join(found) if any(name in ("--bind-to", "--cpu-bind") for name in found) else None


def _masks(platform: Platform, binding: str, *, moved: bool) -> RankMasks | None:
    try:
        topology = topology_of_platform(platform)
        return masks_of(topology, sockets=platform.cpu.sockets, binding=binding, ranks=None, ignores_affinity=moved)
    except InputError:
        return None


def _wrong_everywhere(masks: RankMasks) -> tuple[BoundRank, ...]:
    """Return the ranks that every launcher that can be told puts elsewhere, as the first one puts them."""
    readable = [reading for reading in masks.readings if reading.cannot_tell is None and reading.ranks]
    if not readable:
        return ()
    wrong = [{each.rank for each in reading.ranks if each.fit == "wrong"} for reading in readable]
    everywhere = set.intersection(*wrong)
    return tuple(each for each in readable[0].ranks if each.rank in everywhere)


def _nodes(masks: RankMasks | None) -> str:
    return ",".join(str(place.numa) for place in masks.ranks) if masks is not None else ""


def _first(wrong: tuple[BoundRank, ...]) -> str:
    each = wrong[0]
    return f"rank {each.rank} would run on CPUs {format_cpu_list(each.cpus or ())}"
