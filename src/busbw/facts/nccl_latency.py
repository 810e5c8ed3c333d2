"""NCCL's constants for the time of an empty call, from data/nccl_latency.toml."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Integer, Value


class ByProtocol(Value, frozen=True, kw_only=True):
    """Microseconds for LL, LL128 and Simple, by algorithm."""

    ring: tuple[float, float, float]
    tree: tuple[float, float, float]


class LatencyConstants(Value, frozen=True, kw_only=True):
    """The constants, where they are from, and on which GPUs (compute capability times ten) calls took as long."""

    confirmed_sm: tuple[Integer, ...]
    confirmed: tuple[str, ...]
    source: str
    base: ByProtocol
    nvlink: ByProtocol


@cache
def latency_constants() -> LatencyConstants:
    """Return the constants."""
    raw = files("busbw").joinpath("data", "nccl_latency.toml").read_bytes()
    return msgspec.toml.decode(raw, type=LatencyConstants)
