"""The ceiling of a collective: what each part lets an algorithm reach, and the least of it."""

from busbw.base.collectives import COLLECTIVES as MEASURED
from busbw.base.errors import InputError
from busbw.base.units import format_rate
from busbw.limits.algorithms import (
    COLLECTIVES,
    ON_CPUS,
    ON_GPUS,
    Algorithm,
    Factor,
    Shape,
    Terms,
    algorithm_name,
    check_collective,
    shape_of,
)
from busbw.limits.message_rate import NAME as MESSAGE_RATE
from busbw.limits.message_rate import message_limit
from busbw.model.limit import Attained, Bound, Limit, LimitLine, NodeRates, Part, PartName, Rate

_UNKNOWN = {
    "nvlink": "the rate of the links of one GPU",
    "pair": "the rate of the links between two GPUs",
    "slot": "the rate of a GPU's slot",
    "nic_slot": "how ports share the slots of their cards, and the rate of a slot",
    "nic": "the number of NIC ports and their rate",
}


def parts_of(rates: NodeRates, shape: Shape) -> tuple[Part, ...]:
    """Return the parts that data of such a job passes, known or not."""
    found: list[Part] = []
    if rates.gpus:
        if shape.island > 1:
            found.append(_part(rates, "nvlink", "links of a GPU", "gpu", rates.nvlink, 1))
            if rates.pair is not None and rates.pair != rates.nvlink:
                found.append(_part(rates, "pair", "links of two GPUs", "pair", rates.pair, 1))
        if shape.islands > 1:
            found.append(_part(rates, "slot", "slot of a GPU", "gpu", rates.slot, 1))
    if shape.groups > 1:
        what = "domain" if shape.group > (rates.gpus or shape.group) else "node"
        found.append(_part(rates, "nic_slot", f"NIC slots of a {what}", "node", rates.nic_slot, shape.ports))
        found.append(_part(rates, "nic", f"NICs of a {what}", "node", rates.nic, shape.ports))
    return tuple(found)


def _part(rates: NodeRates, name: PartName, title: str, of: str, rate: Rate | None, count: int) -> Part:
    known = rate is not None and count > 0
    return Part(
        name=name,
        title=title,
        of="node" if of == "node" else "pair" if of == "pair" else "gpu",
        rate_Bps=rate.rate_Bps * count if rate is not None and known else None,
        figures=_figures(rate, count) if rate is not None and known else "not known",
        source=rate.source if rate is not None else (),
        missing=None if known else _UNKNOWN[name],
        attained=tuple(seen for seen in rates.attained if seen.part == name),
    )


def _figures(rate: Rate, count: int) -> str:
    return rate.figures if count == 1 else f"{count} x {rate.figures}"


def attained_of(part: Part, algorithm: str) -> Attained | None:
    """Return what was seen of a part with this algorithm; a constant of its own comes before a general one."""
    own = [seen for seen in part.attained if seen.algorithm == algorithm]
    general = [seen for seen in part.attained if seen.algorithm is None]
    return next(iter([*own, *general]), None)


MOST_NODES = 100_000


def ceiling(rates: NodeRates, *, nodes: int, collective: str | None = None, algorithm: str | None = None) -> Limit:
    """Return what bus bandwidth `nodes` such nodes can reach at best.

    Without a collective those with a bound, without an algorithm those that libraries choose. Raises InputError for
    names without a bound, and for a number of nodes that none has.
    """
    if not 1 <= nodes <= MOST_NODES:
        raise InputError(f"{nodes} nodes", hint=f"from 1 to {MOST_NODES}")
    if collective == MESSAGE_RATE:
        return message_limit(rates, nodes=nodes)
    if collective is not None:
        check_collective(collective)
    asked = algorithm_name(algorithm) if algorithm is not None else None
    shape = shape_of(rates, nodes)
    if shape.ranks < 2:
        raise InputError("one rank alone sends nothing", hint="give more nodes, or more GPUs: --nodes 2")
    parts = parts_of(rates, shape)
    bounds = [
        bound_of(rates, shape, parts, candidate, name)
        for name in COLLECTIVES
        if collective in (None, name)
        for candidate in (ON_GPUS if rates.gpus else ON_CPUS)
        if name in candidate.collectives and _is_wanted(rates, shape, candidate, asked)
    ]
    kept = [bound for bound in bounds if bound is not None]
    if asked is not None and not kept:
        what = collective or "any collective"
        raise InputError(
            f"{asked} is not an algorithm for {what} on {nodes} nodes of this kind", hint="leave out --algorithm"
        )
    if collective is not None and not kept:
        which = "with GPUs" if rates.gpus else "without GPUs"
        raise InputError(
            f"no bound is known for {collective} on {nodes} {'node' if nodes == 1 else 'nodes'} {which}",
            hint="pairs of GPUs: --collective sendrecv" if rates.gpus else "give more nodes: --nodes 2",
        )
    order = {name: place for place, name in enumerate(COLLECTIVES)}
    kept.sort(key=lambda bound: (order[bound.collective], -(bound.busbw_Bps or 0.0), bound.algorithm))
    return Limit(
        name=rates.name,
        nodes=nodes,
        gpus=rates.gpus,
        ranks=shape.ranks,
        domains=shape.groups if shape.group > (rates.gpus or shape.group) else None,
        parts=parts,
        bounds=tuple(kept),
        assumptions=(*rates.assumptions, *_domain_words(rates, shape, nodes)),
        missing=rates.missing,
    )


def _is_wanted(rates: NodeRates, shape: Shape, algorithm: Algorithm, asked: str | None) -> bool:
    if asked is not None:
        return algorithm.name == asked
    if rates.gpus and not algorithm.usual(shape):
        return False
    return not (algorithm.needs_nvls and not rates.nvls) and not (algorithm.needs_sharp and not rates.sharp)


def _domain_words(rates: NodeRates, shape: Shape, nodes: int) -> tuple[str, ...]:
    if shape.group <= (rates.gpus or shape.group):
        return ()
    filled = (
        f"{nodes} nodes in {shape.groups} NVLink domains, filled evenly" if shape.groups > 1 else "one NVLink domain"
    )
    return (f"{filled}: the nodes of a domain reach each other over NVLink (IMEX is set up)",)


def bound_of(
    rates: NodeRates, shape: Shape, parts: tuple[Part, ...], algorithm: Algorithm, collective: str
) -> Bound | None:
    """Return the bound of one algorithm; None when it is none for this shape."""
    terms = algorithm.terms(collective, shape)
    if terms is None:
        return None
    lines = tuple(line for part in parts if (line := _line(part, terms, shape, algorithm.name)) is not None)
    needed = _needed(shape, parts, terms)
    known = [line for line in lines if line.busbw_Bps is not None]
    least = min(known, key=lambda line: line.busbw_Bps or 0.0, default=None)
    missing = tuple(part.missing or part.title for part in needed if part.rate_Bps is None)
    if least is None or least.busbw_Bps is None or missing:
        least_Bps, limited_by = None, None
        missing = missing or ("the rate of the memory that ranks on one node share",)
    else:
        least_Bps, limited_by = least.busbw_Bps, least.part
    factor = MEASURED[collective].factor(shape.ranks)
    return Bound(
        collective=collective,
        algorithm=algorithm.name,
        why=algorithm.why,
        source=algorithm.source,
        conditions=(*algorithm.conditions(shape), *_switch_words(rates, algorithm)),
        lines=tuple(_marked(line, limited_by) for line in lines),
        busbw_Bps=least_Bps,
        algbw_Bps=least_Bps / factor if least_Bps is not None else None,
        attained_Bps=_attained(lines) if least_Bps is not None and algorithm.attainable else None,
        limited_by=limited_by,
        missing=missing,
    )


def _switch_words(rates: NodeRates, algorithm: Algorithm) -> tuple[str, ...]:
    words = []
    if algorithm.needs_nvls and rates.nvls is not True:
        said = "cannot" if rates.nvls is False else "is not known to"
        words.append(f"the switch of this node {said} add: only as if it could")
    if algorithm.needs_sharp and rates.sharp is not True:
        said = "is said not to be" if rates.sharp is False else "is not known to be"
        words.append(f"SHARP {said} offered here: only as if it were")
    return tuple(words)


def _factor(part: Part, terms: Terms, shape: Shape) -> Factor | None:
    if part.name == "nvlink":
        # Where all GPUs are joined by a switch, two of them have all links of one between them.
        return terms.links or terms.pair
    if part.name == "pair":
        return terms.pair
    if part.name == "slot":
        return terms.slot or _whole_slot(terms, shape)
    return terms.out


def _whole_slot(terms: Terms, shape: Shape) -> Factor | None:
    """Return the factor on a GPU's slot where slots carry what NICs carry."""
    if terms.out is None:
        return None
    return Factor(multiple=terms.out.multiple * shape.group, formula=terms.out.formula.replace("k B", "g P"))


def _line(part: Part, terms: Terms, shape: Shape, algorithm: str) -> LimitLine | None:
    factor = _factor(part, terms, shape)
    if factor is None:
        return None
    if part.rate_Bps is None:
        return LimitLine(part=part.name, formula=factor.formula, figures=part.figures, busbw_Bps=None)
    busbw_Bps = factor.multiple * part.rate_Bps
    seen = attained_of(part, algorithm)
    return LimitLine(
        part=part.name,
        formula=factor.formula if part.name != "nic_slot" else factor.formula.replace(" B", " P_nic"),
        figures=f"{factor.multiple:.4g} x {format_rate(part.rate_Bps)} = {format_rate(busbw_Bps)}",
        busbw_Bps=busbw_Bps,
        attained_Bps=busbw_Bps * seen.share if seen is not None else None,
        attained_words=f"{seen.words}{', fitted' if seen.fitted else ''}" if seen is not None else None,
    )


def _needed(shape: Shape, parts: tuple[Part, ...], terms: Terms) -> tuple[Part, ...]:
    """Return the parts without which there is no ceiling: NICs between nodes; within one what joins its GPUs."""
    name = "nic" if shape.groups > 1 else "slot" if shape.islands > 1 else "nvlink"
    return tuple(part for part in parts if part.name == name and _factor(part, terms, shape) is not None)


def _marked(line: LimitLine, limited_by: PartName | None) -> LimitLine:
    if line.part != limited_by:
        return line
    return LimitLine(
        part=line.part,
        formula=line.formula,
        figures=line.figures,
        busbw_Bps=line.busbw_Bps,
        attained_Bps=line.attained_Bps,
        attained_words=line.attained_words,
        limits=True,
    )


def _attained(lines: tuple[LimitLine, ...]) -> float | None:
    """Return the least of what was seen and, where nothing was, of what is possible; None if nothing was seen of it."""
    known = [line for line in lines if line.busbw_Bps is not None]
    least = min(known, key=lambda line: line.attained_Bps or line.busbw_Bps or 0.0)
    return least.attained_Bps
