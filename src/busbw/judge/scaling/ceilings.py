"""The limit of each place of a line, from the line rates of a platform."""

from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.limits.algorithms import algorithm_name
from busbw.limits.ceiling import ceiling
from busbw.limits.from_platform import rates_of_platform
from busbw.model.platform import Platform

# The switches between nodes add (SHARP): off unless somebody turns it on, and then the library says so.
_IN_NETWORK = "collnet"


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A platform, the name it was asked for by, and the algorithm to go by; None: that of each result."""

    platform: Platform
    name: str
    algorithm: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Height:
    """The limit at one place. `is_sure`: by the algorithm that was used, not by the highest there is."""

    busbw_Bps: float
    words: str
    is_sure: bool


def height_of(
    known: Known,
    collective: str,
    *,
    nodes: int,
    ranks_of_node: int | None,
    algorithm: str | None,
    in_network: bool = False,
) -> Height | None:
    """Return the limit on `nodes` nodes, None where it cannot be told.

    `algorithm`: what the library says it used; None: the highest, with SHARP only where it is on (`in_network`).
    Raises InputError for a collective without a bound, and for more ranks than a node has GPUs.
    """
    asked = known.algorithm or _known_algorithm(algorithm)
    gpus = ranks_of_node if known.platform.kind == "gpu" else None
    rates = rates_of_platform(known.platform, gpus=gpus, name=known.name)
    try:
        limit = ceiling(rates, nodes=nodes, collective=collective, algorithm=asked)
    except InputError:
        # An algorithm that there is not on so few nodes; what is wrong with the collective is wrong without it too.
        if asked is None:
            raise
        limit = ceiling(rates, nodes=nodes, collective=collective)
        asked = None
    told = [bound for bound in limit.bounds if bound.busbw_Bps is not None]
    bound = next((each for each in told if asked is not None or in_network or each.algorithm != _IN_NETWORK), None)
    if bound is None or bound.busbw_Bps is None:
        return None
    titles = {part.name: part.title for part in limit.parts}
    by = f"by {bound.algorithm}" if asked is not None else f"by {bound.algorithm}, the highest"
    over = f": {titles[bound.limited_by]}" if bound.limited_by is not None else ""
    return Height(busbw_Bps=bound.busbw_Bps, words=f"{by}{over}", is_sure=asked is not None)


def _known_algorithm(name: str | None) -> str | None:
    """Return our name of what a library calls its algorithm; None for several at once, and for none of ours."""
    for spelling in (name or "", (name or "").replace("_", "")):
        try:
            return algorithm_name(spelling)
        except InputError:
            continue
    return None
