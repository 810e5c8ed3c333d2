"""What was recommended for a run and what became of it: lines for terminal and page."""

from collections.abc import Iterator, Sequence

from busbw.base.text import counted, listed
from busbw.model.record import NcclChoice
from busbw.model.run import Measurement
from busbw.model.settings import RecommendedLayer, RecommendedSetting, Setting, Standing

# In the order they are told.
_STANDINGS: tuple[tuple[Standing, str], ...] = (
    ("applied", "applied"),
    ("already", "already so"),
    ("kept", "kept as set here"),
    ("left_out", "not applied"),
)
_MOST_SEEN = 6


def layer_words(layer: RecommendedLayer) -> str:
    """Return the whole in a line: for what it is recommended, and how many settings became what."""
    nodes = counted(layer.nodes, "node")
    of_collective = f", {layer.collective}" if layer.collective is not None else ""
    counts = [f"{len(found)} {words}" for standing, words in _STANDINGS if (found := layer.standing(standing))]
    what = f"recommended for {layer.platform}, goal {layer.goal} ({nodes}{of_collective}, NCCL {layer.nccl})"
    return f"{what}: {', '.join(counts) or 'nothing is to be set'}"


def layer_rows(
    layer: RecommendedLayer, measurements: Sequence[Measurement] = ()
) -> tuple[tuple[str, str, str, str], ...]:
    """Return a row a setting, those that are applied first: standing, setting, what it is for, what was seen of it.

    `measurements`: of the run, as far as NCCL says there what it used.
    """
    choices = tuple(
        dict.fromkeys(choice for each in measurements if each.nccl is not None for choice in each.nccl.choices)
    )
    return tuple(
        (words, _setting(each.setting), _why(each), _seen(each, choices))
        for standing, words in _STANDINGS
        for each in layer.standing(standing)
    )


def layer_lines(layer: RecommendedLayer, measurements: Sequence[Measurement] = ()) -> Iterator[str]:
    """Yield the same as lines of text, and what belongs to the settings and was not applied."""
    yield layer_words(layer)
    for words, setting, why, seen in layer_rows(layer, measurements):
        yield f"  {words}: {setting}  {why}" + (f"; seen: {seen}" if seen else "")
    for each in layer.advice:
        yield f"  beside the settings: {each}"


def _setting(setting: Setting) -> str:
    return f'{setting.name} = "{setting.value}"' if setting.value is not None else f"{setting.name} unset"


def _why(each: RecommendedSetting) -> str:
    if each.standing == "left_out":
        return each.why or ""
    if each.standing == "kept" and each.over is not None:
        value = f'"{each.over.value}"' if each.over.value is not None else "unset"
        return f"{value} of {each.over.source} stays"
    first = (each.setting.reason or "").partition(". ")[0].rstrip(".")
    return f"{first} (check first)" if each.need == "check_first" else first


def _seen(each: RecommendedSetting, choices: Sequence[NcclChoice]) -> str:
    """Return what NCCL says it used of that which a setting is about; "" where it does not say."""
    if each.standing not in ("applied", "already"):
        return ""
    if each.topic == "channels":
        counts = sorted({choice.channels for choice in choices if choice.channels is not None})
        if not counts:
            return ""
        return f"{counts[0]} channels" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} channels"
    if each.topic in ("algorithm", "sharp"):
        used = (" ".join(filter(None, (choice.algorithm, choice.protocol))).lower() for choice in choices)
        return listed(dict.fromkeys(word for word in used if word), _MOST_SEEN)
    return ""
