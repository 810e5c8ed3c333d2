"""The communication of a training step: each call on its group's ranks and nodes, and their sum with its interval.

Terms of one class rest on the same constant, so that one error lengthens or shortens all of them: the ends of their
intervals are added. Of different classes the distances to the ends are added as independent ones, by squares.
"""

import math
import re
from collections.abc import Iterable, Sequence

from busbw.base.errors import InputError
from busbw.base.units import format_time
from busbw.limits.ceiling import MOST_NODES
from busbw.model.platform import Platform
from busbw.model.predict.prediction import PredictedCall
from busbw.model.predict.step import PredictedStep, PredictedTerm, TimeSpan
from busbw.model.train.plan import StepCollective, TrainPlan
from busbw.predict.closed import predicted
from busbw.predict.machines import CannotTellError, machine_of

_SHARE = re.compile(r"(?:0(?:\.[0-9]{1,6})?|1(?:\.0{1,6})?)", re.ASCII)
_NAMED = {"none": 0.0, "full": 1.0}
_MOST_COLLECTIVES = 1000
_MOST_CALLS = 10**9
_MOST_BYTES = 2**50
_LONGEST_S = 1e6


def overlap_of(text: str) -> float:
    """Return the share of what may overlap that is hidden: none, full or a share. Raises InputError for others."""
    if text in _NAMED:
        return _NAMED[text]
    if _SHARE.fullmatch(text) is None:
        raise InputError(f"{text[:20]!r} is no overlap", where="--overlap", hint="none, full, or a share as 0.8")
    return float(text)


def group_call(
    platform: Platform, *, collective: str, size_bytes: int, ranks: int, nodes: int, ranks_per_node: int
) -> PredictedCall:
    """Return what one call takes among ranks of a group, so many on each of its nodes, as the others do the same.

    Raises CannotTellError where no data applies, and for groups that are not alike on all of their nodes.
    """
    each = min(ranks_per_node, ranks)
    if each * nodes != ranks or not 1 <= nodes <= MOST_NODES or ranks < 2 or size_bytes < 1:
        raise CannotTellError("the group is not spread alike over its nodes")
    try:
        machine = machine_of(platform, gpus=each)
        found = predicted(machine, nodes=nodes, collective=collective, size_bytes=size_bytes)
    except InputError as error:
        raise CannotTellError(error.cause) from error
    return found[0]


def predicted_step(plan: TrainPlan, platform: Platform, overlap: float, where: str) -> PredictedStep:
    """Return the communication of a plan's step. Raises InputError for a plan that cannot be."""
    _check(plan, where)
    sizes = {group.kind: group.size for group in plan.groups}
    terms = tuple(_term(each, sizes.get(each.group, 0), platform, overlap) for each in plan.collectives)
    told = [term for term in terms if term.call is not None]
    return PredictedStep(
        workload=plan.title,
        platform=platform.id,
        gpus=plan.gpus,
        overlap=overlap,
        terms=terms,
        total=_sum((term.call, term.total) for term in told),
        overlappable_s=math.fsum(term.total.time_s for term in told if term.total and term.overlaps is not None),
        exposed=_sum((term.call, term.exposed) for term in told),
        classes=tuple(dict.fromkeys(_class_of(term.call) for term in told if term.call is not None)),
        untold=tuple(f"{term.name}: {term.cannot}" for term in terms if term.cannot is not None),
    )


def _check(plan: TrainPlan, where: str) -> None:
    if len(plan.collectives) > _MOST_COLLECTIVES:
        raise InputError(f"{len(plan.collectives)} collectives in a step", where=where, hint="at most 1000")
    for each in plan.collectives:
        place = each.place
        fits = 0 <= each.size_bytes <= _MOST_BYTES and 0 <= each.calls <= _MOST_CALLS
        fits = fits and 0 <= (each.time.least_s or 0.0) <= _LONGEST_S
        if not fits or place.nodes < 1 or place.ranks_per_node < 1:
            raise InputError(
                f"{each.name[:40]!r}: {each.calls} calls of {each.size_bytes} bytes on {place.nodes} nodes",
                where=where,
                hint="a plan is what this writes: busbw train plan WORKLOAD --platform ID --gpus N --json",
            )


def _term(each: StepCollective, members: int, platform: Platform, overlap: float) -> PredictedTerm:
    ranks, nodes, per_node = _place(each, members, platform)
    call, cannot = None, None
    if each.size_bytes and each.calls and ranks > 1:
        try:
            call = group_call(
                platform,
                collective=each.collective,
                size_bytes=each.size_bytes,
                ranks=ranks,
                nodes=nodes,
                ranks_per_node=per_node,
            )
        except CannotTellError as error:
            cannot = f"{error}{_at_least(each)}"
    total = _scaled(call, each.calls) if call is not None else None
    shown = 1.0 - overlap if each.overlaps is not None else 1.0
    return PredictedTerm(
        name=each.name,
        collective=each.collective,
        group=each.group,
        ranks=ranks,
        nodes=nodes,
        size_bytes=each.size_bytes,
        calls=each.calls,
        overlaps=each.overlaps,
        call=call,
        total=total,
        exposed=_scaled(call, each.calls * shown) if call is not None else None,
        cannot=cannot,
    )


def _at_least(each: StepCollective) -> str:
    least_s = each.time.least_s
    return f"; by line rates at least {format_time(least_s * each.calls)}" if least_s is not None else ""


def _place(each: StepCollective, members: int, platform: Platform) -> tuple[int, int, int]:
    """Return ranks, nodes and ranks of a node; within NVLink it makes no difference on which nodes they are."""
    if each.place.links == "NVLink" and members <= platform.gpu.count:
        return members, 1, members
    return members, each.place.nodes, each.place.ranks_per_node


def _scaled(call: PredictedCall, calls: float) -> TimeSpan:
    """Return the time of so many calls; its ends are those of the bandwidth."""
    time_s = call.time_s * calls
    return TimeSpan(
        time_s=time_s, low_s=time_s * call.busbw_Bps / call.high_Bps, high_s=time_s * call.busbw_Bps / call.low_Bps
    )


def _class_of(call: PredictedCall) -> str:
    """Return the constant that a call rests on most: of the links, or of what does not depend on the size."""
    mostly = call.mostly.partition(",")[0]
    return f"{call.algorithm}, {mostly}"


def _sum(terms: Iterable[tuple[PredictedCall | None, TimeSpan | None]]) -> TimeSpan:
    by: dict[str, list[TimeSpan]] = {}
    for call, span in terms:
        if call is not None and span is not None:
            by.setdefault(_class_of(call), []).append(span)
    time_s = math.fsum(span.time_s for spans in by.values() for span in spans)
    shorter = _distance([math.fsum(span.time_s - span.low_s for span in spans) for spans in by.values()])
    longer = _distance([math.fsum(span.high_s - span.time_s for span in spans) for spans in by.values()])
    return TimeSpan(time_s=time_s, low_s=time_s - shorter, high_s=time_s + longer)


def _distance(classes: Sequence[float]) -> float:
    return math.sqrt(math.fsum(each**2 for each in classes))
