"""What others reached, and how bandwidth rises with size."""

from functools import cache
from importlib.resources import files
from math import log2
from typing import Literal

import msgspec

from busbw.base.value import Integer, Value
from busbw.model.limit import Attained, PartName
from busbw.model.platform import Platform


class AttainedRow(Value, frozen=True, kw_only=True):
    """One row: a share of a part's rate and the machines it holds for. None, or nothing: whatever they have."""

    part: PartName
    algorithm: str | None = None
    sm: tuple[Integer, ...] = ()
    gcn: tuple[str, ...] = ()
    switched: bool | None = None
    fabrics: tuple[str, ...] = ()
    port_bps: float | None = None
    # Network plug-ins that NCCL needs there.
    plugins: tuple[str, ...] = ()
    # Whether the links between GPUs join those of several nodes.
    across_nodes: bool | None = None
    share: float
    words: str
    fitted: bool = False
    source: tuple[str, ...]


class _AttainedRows(Value, frozen=True, kw_only=True):
    attained: tuple[AttainedRow, ...]


@cache
def attained_rows() -> tuple[AttainedRow, ...]:
    """Return every row, in the order of the file."""
    raw = files("busbw").joinpath("data", "attained.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_AttainedRows).attained


def attained_on(platform: Platform) -> tuple[Attained, ...]:
    """Return what holds for a platform."""
    return attained_where(
        sm=platform.gpu.sm,
        gcn=platform.gpu.gcn,
        switched=platform.nvlink.switched,
        fabric=platform.fabric.kind,
        port_bps=platform.nic.port_bps,
        plugin=platform.fabric.plugin,
        across_nodes=platform.nvlink.domain_gpus is not None,
    )


def attained_where(
    *,
    sm: int | None,
    switched: bool | None,
    fabric: str | None,
    port_bps: float | None,
    gcn: str | None = None,
    plugin: str | None = None,
    across_nodes: bool | None = None,
) -> tuple[Attained, ...]:
    """Return what holds for nodes whose GPUs, switch, fabric, ports and plug-in are these. None: not known."""
    return tuple(
        Attained(
            part=row.part,
            algorithm=row.algorithm,
            share=row.share,
            words=row.words,
            fitted=row.fitted,
            source=row.source,
        )
        for row in attained_rows()
        if (not row.sm or sm in row.sm)
        and (not row.gcn or gcn in row.gcn)
        and (row.switched is None or switched is row.switched)
        and (not row.fabrics or fabric in row.fabrics)
        and (row.port_bps is None or port_bps == row.port_bps)
        and (not row.plugins or plugin in row.plugins)
        and (row.across_nodes is None or across_nodes is row.across_nodes)
    )


# These go along a ring of all ranks, whose steps grow with the nodes; all_reduce over many nodes takes a tree.
_TREES = ("all_reduce",)
# Attained rates of parts are those of messages of this size.
_VERY_LARGE_BYTES = 2**34


class SizeCurve(Value, frozen=True, kw_only=True):
    """One row: a form, the machines it was fitted to, and how well. Nothing, or None: whatever they have."""

    scope: Literal["one node", "several nodes"]
    sm: tuple[Integer, ...] = ()
    fabrics: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    collectives: tuple[str, ...] = ()
    nodes: Integer
    latency_s: float
    knee_s: float
    steepness: float
    spread: float
    from_bytes: Integer = 0
    words: str
    source: tuple[str, ...]

    def over(self, collective: str, nodes: int) -> "SizeCurve":
        """Return the form for another number of nodes: deeper trees and longer rings take longer to fill."""
        if nodes == self.nodes or nodes < 2:
            return self
        tree = log2(nodes) / log2(self.nodes)
        times = tree if collective in _TREES else nodes / self.nodes
        return msgspec.structs.replace(self, latency_s=self.latency_s * times, knee_s=self.knee_s * times)

    def busbw_Bps(self, factor: float, most_Bps: float, size_bytes: float) -> float:
        """Return the bus bandwidth at a size, where very large messages reach `most_Bps`."""
        moved = factor * size_bytes
        filling: float = 1 + (self.knee_s * most_Bps / size_bytes) ** self.steepness
        return moved / (self.latency_s + moved / most_Bps * filling)

    def below_attained_Bps(self, factor: float, attained_Bps: float, size_bytes: float) -> float:
        """Return the bus bandwidth at a size, where messages of 16 GiB reach `attained_Bps`; never more than that."""
        most_Bps = attained_Bps**2 / self.busbw_Bps(factor, attained_Bps, _VERY_LARGE_BYTES)
        return min(self.busbw_Bps(factor, most_Bps, size_bytes), attained_Bps)


class _CurveRows(Value, frozen=True, kw_only=True):
    curve: tuple[SizeCurve, ...]


@cache
def size_curves() -> tuple[SizeCurve, ...]:
    """Return every row, in the order of the file."""
    raw = files("busbw").joinpath("data", "size_curves.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_CurveRows).curve


def size_curve(
    *, nodes: int, sm: int | None, fabric: str | None, algorithm: str | None, collective: str
) -> SizeCurve | None:
    """Return the form that holds for such nodes; None where nobody has published a sweep of the kind."""
    scope = "one node" if nodes == 1 else "several nodes"
    for row in size_curves():
        if (
            row.scope == scope
            and (not row.sm or sm in row.sm)
            and (not row.fabrics or fabric in row.fabrics)
            and (not row.algorithms or algorithm in row.algorithms)
            and (not row.collectives or collective in row.collectives)
        ):
            return row.over(collective, nodes)
    return None
