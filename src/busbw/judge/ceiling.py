"""What the machine could do at best: a measured rate, and the least that an exchange must move at it."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Literal

from busbw.base.collectives import COLLECTIVES
from busbw.base.units import format_size
from busbw.model.finding import Ceiling
from busbw.model.plan import Plan
from busbw.model.run import Measurement, Rates

# "memory": between ranks of one host; "loopback": TCP that did not leave it; "unknown": several hosts, or an interface
# that leaves the host, or the links between GPUs.
Path = Literal["memory", "loopback", "unknown"]

# Share of the bytes that must have crossed interfaces before the exchange counts as going over them. The bytes due are
# the least an exchange can send, so TCP gives 1.00 or more (measured: 1.002 to 1.004). Other programs' traffic is
# counted too, and was seen at 0.58 on a busy host.
CROSSED_SHARE = 0.9


def path_of(plan: Plan, measurement: Measurement) -> Path:
    """Return the way the bytes went."""
    if (
        plan.gpu_setup is not None
        or len(set(plan.placement.hosts)) > 1
        or len({view.host for view in measurement.per_rank}) > 1
    ):
        return "unknown"
    crossed = sum(share for _, share in measurement.tcp_share)
    if crossed < CROSSED_SHARE:
        return "memory"
    inside = sum(share for name, share in measurement.tcp_share if name == "lo")
    return "loopback" if inside >= crossed / 2 else "unknown"


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


# Below this an exchange is start-up and synchronisation, and a rate says nothing: copying 64 KiB at 10 GB/s takes
# 6.6 us, the order of one collective over a few ranks. It is also the smallest size at which copies are measured.
SMALLEST_BYTES = 64 * 2**10


def ceilings(plan: Plan, rates: Rates, measurements: tuple[Measurement, ...]) -> tuple[Ceiling, ...]:
    """Return a ceiling for each measurement that has one, in their order."""
    found = (ceiling_of(plan, rates, measurement) for measurement in measurements)
    return tuple(ceiling for ceiling in found if ceiling is not None)


def ceiling_of(plan: Plan, rates: Rates, measurement: Measurement) -> Ceiling | None:
    """Return the ceiling of one measurement; None where a rate says nothing or none was measured."""
    traffic = TRAFFIC.get(measurement.collective)
    if traffic is None or measurement.size_bytes < SMALLEST_BYTES or measurement.ranks < 2:
        return None
    path = path_of(plan, measurement)
    if path == "memory":
        return _memory_ceiling(traffic, rates, measurement)
    return _loopback_ceiling(traffic, rates, measurement) if path == "loopback" else None


def _memory_ceiling(traffic: Traffic, rates: Rates, measurement: Measurement) -> Ceiling | None:
    size_bytes = working_set_bytes(traffic, measurement)
    rate_Bps = copy_rate_Bps(rates, size_bytes)
    if rate_Bps is None:
        return None
    moves = traffic.copied(measurement.ranks)
    return Ceiling(
        point=measurement.point,
        basis="memory",
        rate_Bps=rate_Bps,
        moves=moves,
        formula=f"T >= {moves:.4g} S / B: {traffic.copied_words} (n = {measurement.ranks})",
        busbw_Bps=COLLECTIVES[measurement.collective].factor(measurement.ranks) * rate_Bps / moves,
        source=f"B: all ranks copying at once {format_size(round(size_bytes))} that a neighbour had just written, "
        "with as much memory per rank as this exchange holds",
    )


def _loopback_ceiling(traffic: Traffic, rates: Rates, measurement: Measurement) -> Ceiling | None:
    rate_Bps = stream_rate_Bps(rates, traffic.stream)
    if rate_Bps is None:
        return None
    moves = COLLECTIVES[measurement.collective].crossing(measurement.ranks)
    return Ceiling(
        point=measurement.point,
        basis="loopback",
        rate_Bps=rate_Bps,
        moves=moves,
        formula=f"T >= {moves:.4g} S / R: {traffic.crossing_words} (n = {measurement.ranks})",
        busbw_Bps=COLLECTIVES[measurement.collective].factor(measurement.ranks) * rate_Bps / moves,
        source=f"R: TCP over the loopback interface, {traffic.stream} pattern, all ranks together",
    )


# A rate below one byte a second is not a measurement.
_LEAST_Bps = 1.0


def stream_rate_Bps(rates: Rates, pattern: str) -> float | None:
    """Return the loopback rate of `pattern`; None when it was not measured."""
    found = [rate.rate_Bps for rate in rates.streams if rate.pattern == pattern and rate.rate_Bps >= _LEAST_Bps]
    return max(found, default=None)


def copy_rate_Bps(rates: Rates, size_bytes: float) -> float | None:
    """Return the copy rate at `size_bytes`: linear in log(size) between measured sizes, held beyond the first and last.

    Of several kernels the fastest counts: a ceiling is what could be done. None when nothing was measured.
    """
    curve = _fastest(rates)
    if not curve:
        return None
    if size_bytes <= curve[0][0]:
        return curve[0][1]
    for (left, left_Bps), (right, right_Bps) in pairwise(curve):
        if size_bytes <= right:
            share = log(size_bytes / left) / log(right / left)
            return left_Bps + share * (right_Bps - left_Bps)
    return curve[-1][1]


def slowest_copy_rate_Bps(rates: Rates, size_bytes: float) -> float | None:
    """Return the lowest copy rate measured at `size_bytes` or more, of any kernel, or at the largest size.

    An MPI's own segments and temporary buffers enlarge the working set, so an expectation must not rest on a cache that
    only just holds the buffers.
    """
    measured = [rate for rate in rates.copies if rate.size_bytes > 0 and rate.rate_Bps >= _LEAST_Bps]
    if not measured:
        return None
    from_bytes = min(size_bytes, max(rate.size_bytes for rate in measured))
    return min(rate.rate_Bps for rate in measured if rate.size_bytes >= from_bytes)


def _fastest(rates: Rates) -> list[tuple[int, float]]:
    best: dict[int, float] = {}
    for rate in rates.copies:
        if rate.size_bytes > 0 and rate.rate_Bps >= _LEAST_Bps:
            best[rate.size_bytes] = max(best.get(rate.size_bytes, 0.0), rate.rate_Bps)
    return sorted(best.items())
