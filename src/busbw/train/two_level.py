"""The all-to-all of layers with experts in one level and in two (Tutel's 2DH): measured, or the shape alone.

With n ranks, m of them on each node, and S bytes of a rank, the linear form sends n - m messages of S/n off the node,
that in two levels n/m - 1 of m S/n, after an exchange within the node and with two copies of everything. Which is
faster no time of a latency and a bandwidth tells: see `REFUTED`.
"""

from collections.abc import Callable, Sequence

from busbw.base.text import counted
from busbw.base.units import format_size, precise_time
from busbw.model.train.plan import AlltoallChoice, CollectiveTime, StepCollective
from busbw.train.predicting import Asked

TWO_LEVEL = "alltoall_2dh"
_COPIES = 4
REFUTED = (
    "no time is computed for it: Tutel's authors published gains of more than 6.7 at 256 MiB and 1.9 at 512 MiB on 256 "
    "nodes, and no model of a latency and a bandwidth gives both. There the linear form takes no less for twice the "
    "bytes and that in two levels at most twice as long, so of 6.7 at least 3.35 would be left"
)


def alltoall_choices(
    calls: Sequence[StepCollective], answer: Callable[[Asked], CollectiveTime]
) -> tuple[AlltoallChoice, ...]:
    """Return what two levels are for each all-to-all of a step."""
    return tuple(_choice(call, answer) for call in calls if call.collective == "alltoall")


def _choice(call: StepCollective, answer: Callable[[Asked], CollectiveTime]) -> AlltoallChoice:
    place = call.place
    ranks, own = place.nodes * place.ranks_per_node, place.ranks_per_node
    if place.nodes == 1 or own == 1 or place.links == "NVLink":
        within = place.nodes == 1 or place.links == "NVLink"
        why = "all of it stays on NVLink" if within else "the group has one rank on each node"
        return _made(call, ranks, None, "none", f"{why}: two levels are the same exchange")
    slice_bytes = call.size_bytes // ranks
    shape = (
        f"{counted(ranks - own, 'message')} of {format_size(slice_bytes)} leave the node of each rank in one level, "
        f"{counted(place.nodes - 1, 'message')} of {format_size(own * slice_bytes)} in two, which copy "
        f"{format_size(_COPIES * call.size_bytes)} in memory besides"
    )
    time = answer(Asked(collective=TWO_LEVEL, size_bytes=call.size_bytes, ranks=ranks, place=place))
    both = (call.time, time)
    if any(each.basis != "measured" or each.time_s is None for each in both):
        ask = f"busbw run alltoall {TWO_LEVEL} --group {own} on {place.nodes} nodes, then --measured"
        return _made(call, ranks, None, "shape", f"{shape}; which is faster is not known: {ask}")
    assert call.time.time_s is not None
    assert time.time_s is not None
    change_s = (time.time_s - call.time.time_s) * call.calls
    words = (
        f"measured: {precise_time(call.time.time_s)} in one level, {precise_time(time.time_s)} in two, "
        f"{'+' if change_s >= 0 else '-'}{precise_time(abs(change_s))} a step; {shape}"
    )
    return _made(call, ranks, time.time_s, "measured", words)


def _made(call: StepCollective, ranks: int, two_level_s: float | None, basis: str, words: str) -> AlltoallChoice:
    linear_s = call.time.time_s if basis == "measured" else None
    return AlltoallChoice(
        name=call.name, size_bytes=call.size_bytes, ranks=ranks, ranks_per_node=call.place.ranks_per_node,
        nodes=call.place.nodes, basis=basis, linear_s=linear_s, two_level_s=two_level_s,  # type: ignore[arg-type]
        change_s=(two_level_s - linear_s) * call.calls if two_level_s is not None and linear_s is not None else None,
        words=words, refuted=REFUTED if basis == "shape" else None,
    )  # fmt: skip
