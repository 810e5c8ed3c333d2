"""What of all that was read belongs into one figure: one collective, one type, one form, one size."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from busbw.base.errors import InputError
from busbw.base.units import format_size
from busbw.judge.phrases import listed
from busbw.judge.scaling.places import several
from busbw.model.scaling import Axis, Observation

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
