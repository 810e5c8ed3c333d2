"""How many messages a second pairs of ranks on several nodes can exchange: what NICs send, by number and by bytes."""

import math

from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.units import format_rate, format_size
from busbw.model.limit import Bound, Limit, LimitLine, NodeRates, Part

NAME = "message_rate"
_SOURCE = ("OSU micro-benchmarks, osu_mbw_mr",)
_WHY = "all pairs of ranks at once, one rank of each on another node: their messages share the NICs of their nodes"


def messages_per_s(rates: NodeRates) -> float | None:
    """Return how many messages a second the NICs of one node can send; None where it is not known."""
    if rates.messages is None or not rates.ports:
        return None
    return rates.messages.per_s * rates.ports


def pairs_bound(rates: NodeRates, *, nodes: int, pairs: int | None, size_bytes: int | None = None) -> Bound | None:
    """Return the bound of one of `pairs` pairs between one half of `nodes` nodes and the other; None: of all together.

    Bus bandwidth of a measurement is that of one pair. Without a size only what the bytes allow. None where the rate
    of the NICs is not known, or where nothing leaves a node.
    """
    if rates.nic is None or not rates.ports or nodes < 2:
        return None
    lines = [_of_bytes(rates, nodes / 2, pairs)]
    if size_bytes is not None and (line := _of_messages(rates, nodes / 2, pairs or 1, size_bytes)) is not None:
        lines.append(line)
    least = min(lines, key=lambda line: line.busbw_Bps or 0.0)
    return Bound(
        collective=NAME,
        algorithm="pairs",
        why=_WHY,
        source=_SOURCE,
        lines=tuple(structs.replace(line, limits=line is least) for line in lines),
        busbw_Bps=least.busbw_Bps,
        algbw_Bps=least.busbw_Bps,
        attained_Bps=least.attained_Bps,
        limited_by=least.part,
    )


def _of_bytes(rates: NodeRates, halves: float, pairs: int | None) -> LimitLine:
    assert rates.nic is not None
    busbw_Bps = halves * rates.nic.rate_Bps * (rates.ports or 0) / (pairs or 1)
    shared = f" / {pairs}" if pairs is not None else ""
    seen = next((seen for seen in rates.attained if seen.part == "nic"), None)
    return LimitLine(
        part="nic",
        formula=f"busbw <= N/2 k B{' / p' if pairs is not None else ''}",
        figures=f"{halves:g} x {rates.ports} x {rates.nic.figures}{shared} = {format_rate(busbw_Bps)}",
        busbw_Bps=busbw_Bps,
        attained_Bps=busbw_Bps * seen.share if seen is not None else None,
        attained_words=seen.words if seen is not None else None,
    )


def _of_messages(rates: NodeRates, halves: float, pairs: int, size_bytes: int) -> LimitLine | None:
    most_per_s = messages_per_s(rates)
    if most_per_s is None or rates.messages is None:
        return None
    busbw_Bps = halves * most_per_s * size_bytes / pairs
    return LimitLine(
        part="messages",
        formula="messages/s <= N/2 k M",
        figures=f"{halves:g} x {rates.ports} x {rates.messages.figures} of {format_size(size_bytes)} / {pairs} = "
        f"{format_rate(busbw_Bps)}",
        busbw_Bps=busbw_Bps,
    )


def bytes_decide_from(rates: NodeRates) -> int | None:
    """Return the size of a message from which on the bytes decide, not the number of messages; None: not known."""
    if rates.messages is None or rates.nic is None:
        return None
    return math.ceil(rates.nic.rate_Bps / rates.messages.per_s)


def pairs_needed(most_per_s: float, *, pairs: int, seen_per_s: float) -> int:
    """Return how many pairs reach `most_per_s` if each of them keeps the rate that `pairs` of them had."""
    return math.ceil(most_per_s / (seen_per_s / pairs))


def _parts(rates: NodeRates) -> tuple[Part, ...]:
    nic, ports = rates.nic, rates.ports or 0
    return (
        Part(
            name="nic",
            title="NICs of a node",
            of="node",
            rate_Bps=nic.rate_Bps * ports if nic is not None and ports else None,
            figures=f"{ports} x {nic.figures}" if nic is not None and ports else "not known",
            source=nic.source if nic is not None else (),
            missing=None if nic is not None and ports else "the number of NIC ports and their rate",
            attained=tuple(seen for seen in rates.attained if seen.part == "nic"),
        ),
    )


def message_limit(rates: NodeRates, *, nodes: int) -> Limit:
    """Return what all pairs of `nodes` nodes together can exchange. Raises InputError for one node alone."""
    if nodes < 2:
        raise InputError(
            "within one node no message passes a NIC, and the rate of messages has no bound", hint="--nodes 2"
        )
    bound = pairs_bound(rates, nodes=nodes, pairs=None)
    missing = [] if bound is not None else ["the number of NIC ports and their rate"]
    most_per_s, size_bytes = messages_per_s(rates), bytes_decide_from(rates)
    if most_per_s is None or size_bytes is None or rates.messages is None:
        missing.append("how many messages a second a NIC of this kind can send")
        most = ""
    else:
        source = f" [{rates.messages.source[-1]}]" if rates.messages.source else ""
        most = (
            f"; at most {nodes / 2 * most_per_s / 1e6:g} M messages/s, {rates.ports} x {rates.messages.figures} a node"
            f"{source}: from {format_size(size_bytes)} on the bytes decide"
        )
    if bound is None:
        bound = Bound(collective=NAME, algorithm="pairs", why=_WHY, source=_SOURCE)
    per_node = rates.gpus or rates.cpu_ranks or 1
    return Limit(
        name=rates.name,
        nodes=nodes,
        gpus=rates.gpus,
        ranks=per_node * nodes,
        parts=_parts(rates),
        bounds=(structs.replace(bound, why=f"{_WHY}{most}", missing=tuple(missing)),),
        messages_per_s=nodes / 2 * most_per_s if most_per_s is not None else None,
        assumptions=(*rates.assumptions, "half of the nodes send to the other half, each through all of its NICs"),
        missing=rates.missing,
    )
