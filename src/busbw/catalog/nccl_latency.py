"""NCCL's constants for the time of an empty call, from data/nccl_latency.toml."""

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from busbw.model.value import Value

Protocol = Literal["LL", "LL128", "Simple"]
PROTOCOLS: tuple[Protocol, ...] = ("LL", "LL128", "Simple")


class ByProtocol(Value, frozen=True, kw_only=True):
    """Microseconds for LL, LL128 and Simple, by algorithm."""

    ring: tuple[float, float, float]
    tree: tuple[float, float, float]


class LatencyConstants(Value, frozen=True, kw_only=True):
    """The constants, and where they are from."""

    source: str
    base: ByProtocol
    nvlink: ByProtocol
    pci: ByProtocol
    network: ByProtocol


@cache
def latency_constants() -> LatencyConstants:
    """Return the constants."""
    raw = files("busbw").joinpath("data", "nccl_latency.toml").read_bytes()
    return msgspec.toml.decode(raw, type=LatencyConstants)
