"""What part of line rates somebody has seen, from data/attained.toml."""

from functools import cache
from importlib.resources import files

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


class _Rows(Value, frozen=True, kw_only=True):
    attained: tuple[AttainedRow, ...]


@cache
def attained_rows() -> tuple[AttainedRow, ...]:
    """Return every row, in the order of the file."""
    raw = files("busbw").joinpath("data", "attained.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_Rows).attained


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
