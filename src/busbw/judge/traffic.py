"""What each exchange must move, whatever algorithm moves it; the derivations are in docs/method-judging.md.

Everything is a factor on the size S (bytes, counted as in busbw.base.collectives) for n ranks of one host. Copied bytes
count once (read and written), so an operation that only reads or only writes a byte counts half.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from busbw.model.measurement import Measurement


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """The least work of one exchange, the work of a usual algorithm, and the memory it goes through."""

    # Bytes copied by all ranks together when each byte that a rank receives is copied once, and why.
    copied: Callable[[int], float]
    copied_words: str
    # Why the bytes that pass from one rank to another are those of Collective.crossing.
    crossing_words: str
    # Bytes of all send and receive buffers: out of place, in place.
    held: Callable[[int], float]
    held_in_place: Callable[[int], float]
    # Bytes the busiest rank copies in the usual algorithm, with one copy into a shared segment and one out of it.
    usual: Callable[[int], float]
    usual_words: str
    # Bytes the busiest rank sends or receives in that algorithm, whichever is more.
    usual_sent: Callable[[int], float]
    # Whether the usual algorithm sends messages of S / n instead of S.
    parts: bool = False
    # The loopback stream that resembles it.
    stream: Literal["ring", "pairs"] = "ring"


def _others(n: int) -> float:
    return n - 1


def _others_share(n: int) -> float:
    return (n - 1) / n


def _one(_n: int) -> float:
    return 1.0


def _two(_n: int) -> float:
    return 2.0


def _all(n: int) -> float:
    return n


def _all_twice(n: int) -> float:
    return 2.0 * n


def _all_and_one(n: int) -> float:
    return n + 1


def _half(n: int) -> float:
    return n / 2


def _reduced(n: int) -> float:
    return (n + 1) / 2


def _twice_others_share(n: int) -> float:
    return 2 * (n - 1) / n


def _root_and_parts(n: int) -> float:
    return 1 + (n - 1) / n


# One step of a reduction through a shared segment: a copy in, a copy out, and two reads and a write to combine.
_REDUCING_STEP = 1 + 1 + 1.5

TRAFFIC: dict[str, Traffic] = {
    "all_gather": Traffic(
        copied=_others,
        copied_words="each of n ranks receives (n-1)/n S",
        crossing_words="each of n ranks receives (n-1)/n S",
        held=_all_and_one,
        held_in_place=_all,
        usual=_twice_others_share,
        usual_words="ring: n-1 steps, each S/n in and S/n out",
        usual_sent=_others_share,
        parts=True,
    ),
    "alltoall": Traffic(
        copied=_others,
        copied_words="each of n ranks receives (n-1)/n S",
        crossing_words="each of n ranks receives (n-1)/n S",
        held=_all_twice,
        held_in_place=_all,
        usual=_twice_others_share,
        usual_words="pairwise: n-1 steps, each S/n in and S/n out",
        usual_sent=_others_share,
        parts=True,
    ),
    "broadcast": Traffic(
        copied=_others,
        copied_words="n-1 ranks receive S",
        crossing_words="n-1 ranks receive S",
        held=_all,
        held_in_place=_all,
        usual=_two,
        usual_words="pipelined chain: a middle rank takes S out and puts S in",
        usual_sent=_one,
    ),
    "gather": Traffic(
        copied=_others_share,
        copied_words="the root receives S/n from n-1 ranks",
        crossing_words="the root receives S/n from n-1 ranks",
        held=_two,
        held_in_place=_root_and_parts,
        usual=_one,
        usual_words="linear: S/n in, then the root takes out (n-1)/n S alone",
        usual_sent=_others_share,
        parts=True,
    ),
    "scatter": Traffic(
        copied=_others_share,
        copied_words="n-1 ranks receive S/n",
        crossing_words="n-1 ranks receive S/n",
        held=_two,
        held_in_place=_root_and_parts,
        usual=_one,
        usual_words="linear: the root puts in (n-1)/n S alone, then S/n out",
        usual_sent=_others_share,
        parts=True,
    ),
    "sendrecv": Traffic(
        copied=_all,
        copied_words="each of n ranks receives S",
        crossing_words="each of n ranks receives S",
        held=_all_twice,
        held_in_place=_all,
        usual=_two,
        usual_words="each rank puts S in and takes S out",
        usual_sent=_one,
    ),
    "reduce_scatter": Traffic(
        copied=_reduced,
        copied_words="n S read and S written; a copy reads and writes",
        crossing_words="each of n ranks needs S/n of n-1 others",
        held=_all_and_one,
        held_in_place=_all,
        usual=lambda n: _REDUCING_STEP * (n - 1) / n,
        usual_words="ring: n-1 steps, each S/n in, S/n out, S/n combined (two reads, one write)",
        usual_sent=_others_share,
        parts=True,
    ),
    "all_reduce": Traffic(
        copied=_all,
        copied_words="n S read and n S written; a copy reads and writes",
        crossing_words="reduce_scatter and all_gather: (n-1) S each",
        held=_all_twice,
        held_in_place=_all,
        usual=lambda n: (_REDUCING_STEP + 2) * (n - 1) / n,
        usual_words="ring reduce_scatter and ring all_gather",
        usual_sent=_twice_others_share,
        parts=True,
    ),
    "reduce": Traffic(
        copied=_reduced,
        copied_words="n S read and S written; a copy reads and writes",
        crossing_words="n-1 ranks give S or a partial sum of it",
        held=_all_and_one,
        held_in_place=_all,
        usual=lambda _n: _REDUCING_STEP,
        usual_words="pipelined chain: a middle rank takes S out, combines it (two reads, one write) and puts S in",
        usual_sent=_one,
    ),
    "latency": Traffic(
        copied=_half,
        copied_words="n/2 pairs, one message of S at a time",
        crossing_words="n/2 pairs, one message of S at a time",
        held=_all_twice,
        held_in_place=_all_twice,
        usual=_two,
        usual_words="S in by the sender, then S out by the receiver",
        usual_sent=_one,
        stream="pairs",
    ),
    "bandwidth": Traffic(
        copied=_half,
        copied_words="n/2 pairs, S for each message",
        crossing_words="n/2 pairs, S for each message",
        held=_all,
        held_in_place=_all,
        usual=_one,
        usual_words="the sender puts S in while the receiver takes the message before out",
        usual_sent=_one,
        stream="pairs",
    ),
    "bibw": Traffic(
        copied=_all,
        copied_words="n/2 pairs, S each way for each message",
        crossing_words="n/2 pairs, S each way for each message",
        held=_all_twice,
        held_in_place=_all_twice,
        usual=_two,
        usual_words="each rank puts S in and takes S out",
        usual_sent=_one,
    ),
}
TRAFFIC["message_rate"] = TRAFFIC["bandwidth"]


def working_set_bytes(traffic: Traffic, measurement: Measurement) -> float:
    """Return the size of two equal buffers per rank that hold as much as the exchange's own buffers do."""
    held = traffic.held_in_place if measurement.in_place else traffic.held
    return held(measurement.ranks) * measurement.size_bytes / (2 * measurement.ranks)
