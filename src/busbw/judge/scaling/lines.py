"""Which observations make one line of a figure, and what changes along it besides the size of the machine."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from busbw.base.errors import InputError
from busbw.base.text import listed
from busbw.base.units import format_size
from busbw.judge.scaling.places import by_place, several, workers
from busbw.model.scaling import Axis, Observation, ScalingPoint

# Of a whole figure, and why two of them cannot share one.
FIGURE_WHY = {
    "collective": "the bus bandwidths of two collectives count different traffic",
    "type": "elements of another type are added at another speed, and libraries choose by it",
    "op": "operations differ in what they cost",
    "form": "in place and out of place move through different memory",
}
# Of one line: here two of them would make a bend where there is none.
LINE_WHY = {
    "mode": "isolated times one call alone, stream many back to back",
    "statistic": "a mean and a median of the same samples differ",
    "ranks of a node": "fewer ranks of a node share its NICs and links",
    "pair": "two ranks alone share nothing",
}
# What to write for a condition of a figure.
OPTIONS = {"collective": "--collective", "type": "--dtype", "op": "--op", "form": "--form"}
OUT_OF_PLACE = "out of place"
_OPTION_VALUES = {"in place": "in"}
_ROUNDING = 0.01


def condition(observation: Observation, name: str) -> str | None:
    """Return what an observation says of a condition."""
    return dict(observation.conditions).get(name)


def _told(observation: Observation, name: str, value: str) -> Observation:
    if condition(observation, name) is not None:
        return observation
    return replace(observation, conditions=(*observation.conditions, (name, value)))


def selected(
    observations: Sequence[Observation], asked: Mapping[str, str]
) -> tuple[tuple[Observation, ...], tuple[str, ...]]:
    """Return the observations that fit what is asked for, and notes on what was left out.

    Raises InputError when none does, and when what is left cannot share a figure.
    """
    kept, notes = list(observations), []
    for name, why in FIGURE_WHY.items():
        wanted = asked.get(name)
        if wanted is not None:
            # What is not told is what is asked for.
            kept = [_told(each, name, wanted) for each in kept if condition(each, name) in (wanted, None)]
        values = sorted({value for each in kept if (value := condition(each, name)) is not None})
        if not kept:
            has = sorted({value for each in observations if (value := condition(each, name)) is not None})
            raise InputError(f"nothing here was measured with {name} {wanted}", hint=f"there is {listed(has, 8)}")
        if name == "form" and len(values) > 1 and OUT_OF_PLACE in values:
            kept = [each for each in kept if condition(each, name) in (OUT_OF_PLACE, None)]
            notes.append("out of place only; in place with --form in")
        elif len(values) > 1:
            raise InputError(
                f"{' and '.join(values[:8])} cannot stand in one figure: {why}",
                hint=f"choose: {OPTIONS[name]} {_OPTION_VALUES.get(values[0], values[0])}",
            )
    return tuple(kept), tuple(notes)


def sizes_of(
    observations: Sequence[Observation], asked: Sequence[int], axis: Axis
) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """Return the sizes to draw, and a note on how they were chosen: the largest that all places of all lines have.

    Raises InputError for a size that nothing was measured with, and where no size is common.
    """
    known = sorted({each.size_bytes for each in observations if each.size_bytes is not None}, reverse=True)
    if not known:
        return (None,), ("which size these results are of is not told",)
    chosen = []
    for size_bytes in asked:
        near = next((each for each in known if is_same_size(each, size_bytes)), None)
        if near is None:
            has = [format_size(each) for each in reversed(known)]
            raise InputError(f"nothing was measured with {format_size(size_bytes)}", hint=f"there is {listed(has, 8)}")
        chosen.append(near)
    if asked:
        return tuple(dict.fromkeys(chosen)), ()
    sizes_of_place: dict[tuple[object, ...], set[int]] = {}
    for each in observations:
        if each.size_bytes is not None:
            settings = dict(each.settings)
            key = (getattr(each, axis), settings.get("tool"), settings.get("series"))
            sizes_of_place.setdefault(key, set()).add(each.size_bytes)
    having = {
        size_bytes: sum(any(is_same_size(each, size_bytes) for each in sizes) for sizes in sizes_of_place.values())
        for size_bytes in known
    }
    common = [size_bytes for size_bytes, number in having.items() if number == len(sizes_of_place)]
    if not common:
        most = max(having, key=having.__getitem__)
        places = sorted({str(key[0]) for key in sizes_of_place}, key=int)
        raise InputError(
            f"no size was measured by all of these results, on {listed(places, 8)} {several(axis)}",
            hint=f"{having[most]} of {len(sizes_of_place)} have {format_size(most)}: --size {most}",
        )
    more = len(known) - sum(is_same_size(each, common[0]) for each in known)
    notes = ["the largest size that all have; another with --size"] if more else []
    return (common[0],), tuple(notes)


def is_same_size(one: int, other: int) -> bool:
    """Whether two sizes are one but for rounding: parts are whole multiples of 16 bytes for any number of ranks."""
    return abs(one - other) <= _ROUNDING * max(one, other)


# These always tell lines apart, as every variable does (`NCCL_...`); the others only where one place has two of them:
# NCCL itself goes from one algorithm to another with the number of nodes, and a tag may be the name of a single run.
_ALWAYS = ("series", "tool")
_WHERE_NEEDED = ("tag", "algorithm", "libraries", "conditions", "table")
# Columns that say which system a result is of, the table itself last; and in which arithmetic an application ran.
SYSTEM_NAMES = ("series", "system", "platform", "platform_id", "machine", "cluster", "provider", "table")
_ARITHMETIC = ("dtype", "type", "precision")
# Their values say by themselves what they are.
_PLAIN = (*SYSTEM_NAMES, *_ARITHMETIC, "tool", "tag", "algorithm", "libraries", "conditions")
UNTOLD = "not told"
# Repeats of one measurement differ by less than this factor.
_MOST_APART = 1.5


@dataclass(frozen=True, kw_only=True, slots=True)
class LineGroup:
    """The observations of one line, the settings that tell it from the others, and what changes along it."""

    settings: tuple[tuple[str, str], ...]
    observations: tuple[Observation, ...]

    @property
    def label(self) -> str:
        """Return the line's name in the legend; "" where there is one line."""
        return ", ".join(_label(name, value) for name, value in self.settings)


def _label(name: str, value: str) -> str:
    if value == UNTOLD:
        return f"{name} {value}"
    return value if name in _PLAIN else f"{name}={value}"


def setting(observation: Observation, name: str) -> str:
    """Return what an observation says of a setting."""
    return dict(observation.settings).get(name, UNTOLD)


def algorithm_of(observation: Observation) -> str:
    """Return the algorithm that the library said it used, or was told to use, or that the name of the line says."""
    used = setting(observation, "algorithm")
    if used != UNTOLD:
        return used
    asked = setting(observation, "NCCL_ALGO")
    if asked.isalpha():
        return asked
    named = {_BY_NAME.get(meaning_of(setting(observation, name)) or "") for name in _NAMES}
    return next((each for each in named if each is not None), UNTOLD) if _may_be_named(observation) else UNTOLD


# What a name of a line says of NCCL: the switches of the network add; settings were changed.
LineMeaning = Literal["sharp", "tuned"]
_NAMES = ("series", "tag")
_BY_NAME: dict[str, str] = {"sharp": "collnet"}
_SHARP = re.compile(r"(?<![a-z])sharp(?:v\d)?(?![a-z])", re.ASCII)
# SHARP of NVLink's switches stays within a node.
_OF_NVLINK = re.compile(r"nv(?:link|l|ls)?[ _-]?sharp", re.ASCII)
_WITHOUT = re.compile(
    r"(?:\b(?:no|non|not|without|off)|w/o)[\s_+-]*sharp|sharp[\s_=:-]*(?:off|0|no|none|disabled|false)(?![a-z0-9])",
    re.ASCII,
)
_TUNED = re.compile(r"(?<![a-z])(?:tuned|optimi[sz]ed)(?![a-z])", re.ASCII)
_UNTUNED = re.compile(r"(?:\b(?:not|un|non)|w/o)[\s_-]*(?:tuned|optimi[sz]ed)", re.ASCII)


def meaning_of(name: str) -> LineMeaning | None:
    """Return what the name of a line says of how NCCL ran, as in `NCCL+SHARP` and `NCCL-Tuned`; None: nothing."""
    text = name[:_LONGEST_NAME].lower()
    if _SHARP.search(text) and not _OF_NVLINK.search(text) and not _WITHOUT.search(text):
        return "sharp"
    return "tuned" if _TUNED.search(text) and not _UNTUNED.search(text) else None


_LONGEST_NAME = 200
_MEANS: dict[LineMeaning, str] = {
    "sharp": "by its name the switches of the network add (collnet), and its limit is that; --algorithm says otherwise",
    "tuned": "by its name with settings of its own, which are not told: its limit is that of NCCL without them",
}


def meanings(groups: Iterable[LineGroup]) -> tuple[str, ...]:
    """Return a note for each line whose name was taken to say how NCCL ran."""
    found = []
    for group in groups:
        said = [meaning for name, value in group.settings if name in _NAMES and (meaning := meaning_of(value))]
        if said and all(_may_be_named(each) for each in group.observations):
            found.append(f"{group.label}: {_MEANS[said[0]]}")
    return tuple(found)


def _may_be_named(observation: Observation) -> bool:
    """Whether nothing surer than a name tells which algorithm ran."""
    return all(setting(observation, name) == UNTOLD for name in ("algorithm", "NCCL_ALGO", "NCCL_COLLNET_ENABLE"))


def groups_of(observations: Sequence[Observation], axis: Axis, asked: Sequence[str] | None) -> tuple[LineGroup, ...]:
    """Return the lines, in the order in which they appear.

    `asked`: the settings that tell them apart; None: those that must. Raises InputError for a setting that there is
    not, and for a line that mixes what cannot be compared.
    """
    names = list(dict.fromkeys(name for each in observations for name, _ in each.settings))
    for name in asked or ():
        if name not in names:
            raise InputError(f"no result here has a setting {name!r}", hint=f"there is {listed(names, 8) or 'none'}")
    telling = tuple(asked) if asked is not None else _telling(observations, names, axis)
    found: dict[tuple[tuple[str, str], ...], list[Observation]] = {}
    for each in observations:
        found.setdefault(tuple((name, setting(each, name)) for name in telling), []).append(each)
    groups = tuple(LineGroup(settings=key, observations=tuple(members)) for key, members in found.items())
    for group in groups:
        _check(group, axis)
    return groups


def changes_along(group: LineGroup, axis: Axis, left_out: Collection[int] = ()) -> tuple[str, ...]:
    """Return a sentence for each setting that changes along a line: a drop may be this; nothing of `left_out`."""
    names = dict.fromkeys(name for each in group.observations for name, _ in each.settings)
    places = {at: here for at, here in by_place(group.observations, axis).items() if at not in left_out}
    found = []
    for name in names:
        values = {at: "/".join(sorted({setting(each, name) for each in here})) for at, here in places.items()}
        if len(set(values.values())) > 1:
            steps = [f"{value.rstrip('.')} from {at} on" for at, value in _steps(values)]
            found.append(f"{_heading(name)} along the line: {listed(steps)}")
    return tuple(found)


def far_apart(points: Sequence[ScalingPoint], label: str, axis: Axis) -> tuple[str, ...]:
    """Return a note for each point whose results differ too much for repeats of one measurement."""
    found = []
    for point in points:
        value = point.busbw_Bps or point.rate or point.time_s
        if value is None or value.basis != "launches" or not value.low or value.high is None:
            continue
        times = value.high / value.low
        if times > _MOST_APART:
            beginning = f"{label}: " if label else ""
            found.append(
                f"{beginning}{point.observations} results on {workers(point.at, axis)} lie {times:.3g} times apart: "
                "probably no repeats of one measurement; tell them apart by a column or a tag, and --series"
            )
    return tuple(found)


def _heading(name: str) -> str:
    return f"{name} change" if name in ("libraries", "conditions") else f"{name} changes"


def _steps(values: dict[int, str]) -> list[tuple[int, str]]:
    """Return the places where a value begins."""
    found: list[tuple[int, str]] = []
    for at, value in values.items():
        if not found or found[-1][1] != value:
            found.append((at, value))
    return found


def telling_of_work(observations: Sequence[Observation], axis: Axis, ignored: Sequence[str]) -> tuple[str, ...]:
    """Return the settings that tell the lines of an application apart: `series`, and what one point has two values of.

    The system and its arithmetic are asked before all others: a remark that goes with them tells nothing more.
    """
    names = list(dict.fromkeys(name for each in observations for name, _ in each.settings))
    first = [name for name in (*SYSTEM_NAMES, *_ARITHMETIC) if name in names]
    telling: list[str] = []
    for name in dict.fromkeys((*first, *names)):
        if name in ignored:
            continue
        if name == "series" or _meet(observations, telling, name, axis):
            telling.append(name)
    return tuple(telling)


def _telling(observations: Sequence[Observation], names: Sequence[str], axis: Axis) -> tuple[str, ...]:
    always = [name for name in names if name in _ALWAYS or name not in _WHERE_NEEDED]
    telling = [name for name in always if len({setting(each, name) for each in observations}) > 1]
    for name in _WHERE_NEEDED:
        if name in names and _meet(observations, telling, name, axis):
            telling.append(name)
    return tuple(telling)


def _meet(observations: Sequence[Observation], telling: Sequence[str], name: str, axis: Axis) -> bool:
    """Whether one place of what would be one line has two values of a setting."""
    here: dict[tuple[object, ...], set[str]] = {}
    for each in observations:
        key = (getattr(each, axis), each.size_bytes, *(setting(each, other) for other in telling))
        here.setdefault(key, set()).add(setting(each, name))
    return any(len(values) > 1 for values in here.values())


def _check(group: LineGroup, axis: Axis) -> None:
    """Raise InputError when a line would mix what cannot be compared."""
    for name, why in LINE_WHY.items():
        if name == "ranks of a node" and (axis != "nodes" or len({each.nodes for each in group.observations}) == 1):
            continue
        values = {value: each for each in group.observations if (value := condition(each, name)) is not None}
        if len(values) > 1:
            first, other = list(values)[:2]
            raise InputError(
                f"{name} {first} and {other} cannot stand on one line: {why}",
                where=f"{values[first].source}, {values[other].source}",
                hint="give the results of one of them",
            )
