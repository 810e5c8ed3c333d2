"""Nodes, profiles and past as tests need them."""

from busbw.check.profiles import Profile, read_profile
from busbw.model.check.report import NodePast
from busbw.model.check.screening import NodeKind, NodeReading, ScreenedNode, ScreenedNodes

PROFILE = """
title = "a site's"
stages = ["screening"]
time_limit_s = 30
[screening]
parts = ["memory"]
"""
KIND = NodeKind(cpu_model="EPYC", cpus=96, memory_gib=384, gpus=0, platform=None)


def profile(*thresholds: str, head: str = "") -> Profile:
    """Return a profile with thresholds, each the lines of its table; `head` stands before the tables."""
    tables = "".join(f'[[threshold]]\n{each}\nsource = "the contract"\n' for each in thresholds)
    return read_profile(f"{head}\n{PROFILE}\n{tables}", "site.toml")


def node(host: str, memory_Bps: float | None = None, *readings: NodeReading, kind: NodeKind = KIND) -> ScreenedNode:
    """Return a node that copied at a rate, and what else was measured."""
    own = (NodeReading(measure="memory_copy", samples=(memory_Bps * 0.9, memory_Bps)),) if memory_Bps else ()
    return ScreenedNode(host=host, unix_s=0.0, wall_s=1.0, kind=kind, readings=(*own, *readings))


def nodes(*rates: float) -> ScreenedNodes:
    """Return nodes n0, n1, ... that copy at these rates."""
    return ScreenedNodes(nodes=tuple(node(f"n{number}", rate) for number, rate in enumerate(rates)))


def past(host: str, *values: float, outcome: str = "ok") -> list[NodePast]:
    """Return earlier checks of a node, an hour apart."""
    return [
        NodePast(
            host=host,
            unix_s=3600.0 * number,
            profile="daily",
            outcome=outcome,  # type: ignore[arg-type]
            values=(("memory_copy", value),),
        )
        for number, value in enumerate(values)
    ]


def transfer(measure: str, partner: str, *rates_Bps: float) -> NodeReading:
    """Return what was sent to or received from a partner."""
    return NodeReading(measure=measure, samples=rates_Bps, partner=partner)  # type: ignore[arg-type]
