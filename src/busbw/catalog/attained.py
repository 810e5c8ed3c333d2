"""What part of line rates somebody has seen, from data/attained.toml."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.model.limit import PartName
from busbw.model.platform import Platform
from busbw.model.value import Integer, Value


class AttainedRow(Value, frozen=True, kw_only=True):
    """One row: a share of a part's rate and the machines it holds for. None, or nothing: whatever they have."""

    part: PartName
    algorithm: str | None = None
    sm: tuple[Integer, ...] = ()
    switched: bool | None = None
    fabrics: tuple[str, ...] = ()
    port_bps: float | None = None
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


def attained_on(platform: Platform) -> tuple[AttainedRow, ...]:
    """Return the rows that hold for a platform."""
    return tuple(row for row in attained_rows() if _holds(row, platform))


def _holds(row: AttainedRow, platform: Platform) -> bool:
    return (
        (not row.sm or platform.gpu.sm in row.sm)
        and (row.switched is None or platform.nvlink.switched is row.switched)
        and (not row.fabrics or platform.fabric.kind in row.fabrics)
        and (row.port_bps is None or platform.nic.port_bps == row.port_bps)
    )
