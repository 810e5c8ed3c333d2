"""Slow results that equal what another network gives, as somebody published it: it names the cause."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from busbw.judge.explaining.matching import conditions, is_of, value_Bps
from busbw.judge.explaining.outcome import Held
from busbw.judge.explaining.series import Detour, Sample, Series
from busbw.model.platform import Published

# Within this a result equals a figure of the platform's own loopback; of its fall-back network, whose speed depends on
# hosts and interfaces, within this many times.
_EQUAL = 0.15
_TIMES = 3.0
# Of what is expected between nodes: less is seldom reached by anything but TCP.
_TCP_SHARE = 0.15
Way = Literal["fallback", "loopback", "shm"]
_WORDS: dict[Way, str] = {
    "fallback": "TCP in place of the fabric",
    "loopback": "a node that sends to itself through its NICs",
    "shm": "the memory of the host in place of its links",
}
_DETOURS: dict[Detour, Way] = {"sockets": "fallback", "shm": "shm"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """The way that a slow result seems to have taken, and why."""

    way: Way
    words: str


def suspect(held: Held, published: Sequence[Published]) -> Suspect | None:
    """Return the way that a slow result took by the log, or that it resembles; None where it resembles none."""
    if held.series.took_detour is not None:
        way = _DETOURS[held.series.took_detour]
        return Suspect(way=way, words=f"{_WORDS[way]}, as NCCL's log or its settings say")
    if held.regime == "latency":
        return None
    like = _resembling(held.series, held.sample, published)
    if like is not None:
        other: Way = "loopback" if like.network == "loopback" else "fallback"
        return Suspect(way=other, words=f"{_WORDS[other]} ({like.value:g} {like.unit} as published)")
    least_Bps = min((aim.low_Bps for aim in held.targets if aim is not None), default=0.0)
    if held.regime == "bandwidth" and (held.series.nodes or 1) > 1 and held.sample.busbw_Bps < _TCP_SHARE * least_Bps:
        return Suspect(way="fallback", words=_WORDS["fallback"])
    return None


def _resembling(series: Series, sample: Sample, published: Sequence[Published]) -> Published | None:
    """Return a figure that differs from this size in its network alone, and equals it."""
    for figure in published:
        if figure.network in (None, "fabric", series.network) or not is_of(figure, series):
            continue
        held = conditions(figure, series, sample, None)
        # NVLS is off wherever NCCL sends through NICs; size does not matter to a rate so far below.
        others = [each for each in held if each.name not in ("network", "NVLS", "size") and each.outcome != "matches"]
        if not others and _equals(figure, sample):
            return figure
    return None


def _equals(figure: Published, sample: Sample) -> bool:
    ratio = sample.busbw_Bps / value_Bps(figure)
    if figure.network == "loopback":
        return abs(ratio - 1) <= _EQUAL
    return 1 / _TIMES <= ratio <= _TIMES
