"""The parts of a machine as lines of a budget, in the order in which data meets them."""

from busbw.limits.shape import Shape
from busbw.model.limit import Attained, NodeRates, Part, PartName, Rate

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
