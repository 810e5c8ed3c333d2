"""What of all that was read belongs into one figure: one collective, one type, one form, one size."""

from collections.abc import Mapping, Sequence

from busbw.errors import InputError
from busbw.judge.phrases import listed
from busbw.judge.scaling.places import by_place, several
from busbw.model.scaling import Axis, Observation
from busbw.units import format_size

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


def condition(observation: Observation, name: str) -> str | None:
    """Return what an observation says of a condition."""
    return dict(observation.conditions).get(name)


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
            kept = [each for each in kept if condition(each, name) in (wanted, None)]
        values = sorted({value for each in kept if (value := condition(each, name)) is not None})
        if not kept or (wanted is not None and not values and name == "collective"):
            has = sorted({value for each in observations if (value := condition(each, name)) is not None})
            raise InputError(f"nothing here was measured with {name} {wanted}", hint=f"there is {listed(has, 8)}")
        if name == "form" and len(values) > 1 and OUT_OF_PLACE in values:
            kept = [each for each in kept if condition(each, name) in (OUT_OF_PLACE, None)]
            notes.append("out of place only; in place with --form in")
        elif len(values) > 1:
            raise InputError(
                f"{listed(values, 8)} cannot stand in one figure: {why}", hint=f"choose: {OPTIONS[name]} {values[0]}"
            )
    return tuple(kept), tuple(notes)


def sizes_of(
    observations: Sequence[Observation], asked: Sequence[int], axis: Axis
) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """Return the sizes to draw, and a note on how they were chosen: the largest that every place has.

    Raises InputError for a size that nothing was measured with, and where no size is common.
    """
    known = {each.size_bytes for each in observations if each.size_bytes is not None}
    if not known:
        return (None,), ("which size these results are of is not told",)
    for size_bytes in asked:
        if size_bytes not in known:
            has = [format_size(each) for each in sorted(known)]
            raise InputError(f"nothing was measured with {format_size(size_bytes)}", hint=f"there is {listed(has, 8)}")
    if asked:
        return tuple(dict.fromkeys(asked)), ()
    places = by_place(observations, axis)
    shared = set.intersection(*({each.size_bytes for each in group} for group in places.values()))
    common = [size_bytes for size_bytes in shared if size_bytes is not None]
    if not common:
        raise InputError(
            f"no size was measured on each of {listed([str(at) for at in places], 8)} {several(axis)}",
            hint="choose one that most have: --size 1G",
        )
    notes = (f"the largest size that all have of {len(known)}; another with --size",) if len(known) > 1 else ()
    return (max(common),), notes
