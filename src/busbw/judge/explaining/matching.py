"""Whether a published figure holds for one measured size: its conditions, one by one."""

from collections.abc import Iterator
from typing import Literal

from busbw.judge.explaining.series import Sample, Series
from busbw.model.budget import Condition
from busbw.model.platform import Published
from busbw.units import format_size

Outcome = Literal["matches", "differs", "unknown"]
# A figure that names no size is one of large messages.
_LARGE_BYTES = 256 * 2**20
# Sizes are rounded down to whole parts.
_SAME_SIZE = 0.01
_SEVERAL = "several nodes"
_AVERAGE = "avg busbw"
_UNITS_Bps = {"GB/s": 1e9, "Gb/s": 1e9 / 8}
_PAIRS = {"MPI bandwidth": "bandwidth", "MPI bi-directional bandwidth": "bibw"}
# Large, for a message between two processes.
_LARGE_MESSAGE_BYTES = 2**20
_ADDING = frozenset({"nvls", "nvlstree"})


def is_of(published: Published, series: Series) -> bool:
    """Whether a figure is of this collective at all, as a bus bandwidth, or that of pairs over MPI."""
    if published.unit not in _UNITS_Bps:
        return False
    if published.test == series.collective:
        return "busbw" in published.metric
    return _PAIRS.get(published.test) == series.collective


def value_Bps(published: Published) -> float:
    """Return a published bandwidth in bytes per second."""
    return published.value * _UNITS_Bps[published.unit]


def conditions(published: Published, series: Series, sample: Sample, algorithm: str | None) -> tuple[Condition, ...]:
    """Return the conditions of a figure, held against a size measured with `algorithm` (None: not known)."""
    return tuple(_conditions(published, series, sample, algorithm))


def _conditions(published: Published, series: Series, sample: Sample, algorithm: str | None) -> Iterator[Condition]:
    yield from _nodes(published, series)
    if published.gpus is not None:
        yield _compared("GPUs", published.gpus, series.ranks)
    yield from _size(published, sample)
    if published.algorithm is not None:
        yield _compared("algorithm", published.algorithm, algorithm)
    if published.nvls is not None:
        yield _switched("NVLS", asked=published.nvls, here=_uses_nvls(series, algorithm))
    if published.sharp is not None:
        yield _switched("SHARP", asked=published.sharp, here=_uses_sharp(series, algorithm))
    if published.network is not None:
        yield _network(published.network, series)


def _nodes(published: Published, series: Series) -> Iterator[Condition]:
    if published.nodes is not None:
        yield _compared("nodes", published.nodes, series.nodes)
    elif published.scope == _SEVERAL:
        several = None if series.nodes is None else series.nodes > 1
        outcome: Outcome = "unknown" if several is None else "matches" if several else "differs"
        here = None if series.nodes is None else str(series.nodes)
        yield _condition("nodes", "several", here, outcome)
    elif published.scope is not None:
        yield _condition("scope", published.scope, None, "unknown")


def _size(published: Published, sample: Sample) -> Iterator[Condition]:
    here = format_size(sample.size_bytes)
    if published.size_bytes is not None:
        same = abs(sample.size_bytes - published.size_bytes) <= _SAME_SIZE * published.size_bytes
        yield _condition("size", format_size(published.size_bytes), here, "matches" if same else "differs")
    elif published.metric == _AVERAGE:
        yield _condition("statistic", "average over several sizes", f"{here} alone", "differs")
    else:
        least_bytes = _LARGE_MESSAGE_BYTES if published.test in _PAIRS else _LARGE_BYTES
        large = sample.size_bytes >= least_bytes
        yield _condition("size", "large messages", here, "matches" if large else "differs")


def _uses_nvls(series: Series, algorithm: str | None) -> bool | None:
    if series.nvls is False or series.network == "loopback":
        return False
    return algorithm in _ADDING if algorithm is not None else None


def _uses_sharp(series: Series, algorithm: str | None) -> bool | None:
    if series.sharp is False:
        return False
    return algorithm == "collnet" if algorithm is not None else None


def _network(asked: str, series: Series) -> Condition:
    """Hold networks against each other: whoever says nothing means the one that the machine has for this."""
    words = {"fabric": "the platform's own", "fallback": "TCP in its place", "loopback": "loopback through the NICs"}
    here = series.network or "fabric"
    said = words[here] if series.network is not None else None
    return _condition("network", words[asked], said, "matches" if here == asked else "differs")


def _compared(name: str, asked: int | str, here: int | str | None) -> Condition:
    outcome: Outcome = "unknown" if here is None else "matches" if asked == here else "differs"
    return _condition(name, str(asked), None if here is None else str(here), outcome)


def _switched(name: str, *, asked: bool, here: bool | None) -> Condition:
    words = {True: "on", False: "off"}
    outcome: Outcome = "unknown" if here is None else "matches" if asked is here else "differs"
    return _condition(name, words[asked], None if here is None else words[here], outcome)


def _condition(name: str, asked: str, here: str | None, outcome: Outcome) -> Condition:
    return Condition(name=name, asked=asked, here=here, outcome=outcome)
