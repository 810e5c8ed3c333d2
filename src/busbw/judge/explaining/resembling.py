"""Slow results that equal what another network gives, as somebody published it: it names the cause."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from busbw.judge.explaining.matching import conditions
from busbw.judge.explaining.outcome import Judged
from busbw.judge.explaining.references import Reference
from busbw.judge.explaining.series import Detour

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


def suspect(judged: Judged, references: Sequence[Reference]) -> Suspect | None:
    """Return the way that a slow result took by the log, or that it resembles; None where it resembles none."""
    series = judged.series
    if series.took_detour is not None:
        way = _DETOURS[series.took_detour]
        return Suspect(way=way, words=f"{_WORDS[way]}, as NCCL's log or its settings say")
    likely = judged.likely
    if likely is None or likely.regime == "latency":
        return None
    like = next((each for each in references if _resembles(judged, each)), None)
    if like is not None:
        other: Way = "loopback" if like.network == "loopback" else "fallback"
        return Suspect(way=other, words=f"{_WORDS[other]} ({like.best_Bps / 1e9:g} GB/s as published)")
    is_far = judged.sample.busbw_Bps < _TCP_SHARE * likely.busbw_Bps
    if likely.regime == "bandwidth" and (series.nodes or 1) > 1 and is_far:
        return Suspect(way="fallback", words=_WORDS["fallback"])
    return None


def _resembles(judged: Judged, reference: Reference) -> bool:
    """Whether a reference differs from this size in its network alone, and equals it."""
    series, sample = judged.series, judged.sample
    if reference.network in (None, "fabric", series.network) or reference.collective != series.collective:
        return False
    held = conditions(reference, series, sample, None)
    # NVLS is off wherever NCCL sends through NICs; size does not matter to a rate so far below.
    others = [each for each in held if each.name not in ("network", "NVLS", "size") and each.outcome != "matches"]
    ratio = sample.busbw_Bps / reference.best_Bps
    is_equal = abs(ratio - 1) <= _EQUAL if reference.network == "loopback" else 1 / _TIMES <= ratio <= _TIMES
    return not others and is_equal
