"""What fabrics can do for a job: the features, which adapters have them, and the comparisons that show their worth."""

import datetime as dt
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from busbw.base.value import Value
from busbw.model.host import PortKind

FeatureId = Literal[
    "dct",
    "tag_matching",
    "multicast",
    "sharp",
    "adaptive_routing",
    "shield",
    "gpudirect",
    "partition_keys",
    "sriov",
]
# Whose setting a comparison switches.
Reader = Literal["NCCL", "UCX", "MVAPICH2", "HCOLL", "CXI"]


class WorthCommand(Value, frozen=True, kw_only=True):
    """A comparison that shows what a feature is worth."""

    reader: Reader
    command: str


class FabricFeature(Value, frozen=True, kw_only=True):
    """One feature of fabrics."""

    id: FeatureId
    name: str
    # What it does, in words.
    means: str
    # The fabrics that can have it; all others have not.
    fabrics: tuple[PortKind, ...]
    compare: tuple[WorthCommand, ...] = ()
    # What the administrator of the fabric can tell, and no node.
    ask: str | None = None
    source: str
    checked: dt.date


class FabricCard(Value, frozen=True, kw_only=True):
    """One kind of adapter, and which features it has or lacks; of others nothing is known."""

    name: str
    # Vendor and device, as 15b3:1021, of the adapter and of its virtual functions.
    ids: tuple[str, ...]
    virtual: tuple[str, ...] = ()
    has: tuple[FeatureId, ...] = ()
    lacks: tuple[FeatureId, ...] = ()
    source: str
    checked: dt.date


class _Network(Value, frozen=True, kw_only=True):
    feature: tuple[FabricFeature, ...]
    card: tuple[FabricCard, ...]


@cache
def _network() -> _Network:
    raw = files("busbw").joinpath("data", "network.toml").read_bytes()
    # Only the codec floor may decode for users; this file is part of the package, so an error in it is a bug.
    return msgspec.toml.decode(raw, type=_Network)


def fabric_features() -> tuple[FabricFeature, ...]:
    """Return the features, in the order in which they are told."""
    return _network().feature


def fabric_cards() -> tuple[FabricCard, ...]:
    """Return every kind of adapter that something is known of."""
    return _network().card


def card_of(vendor: str | None, device: str | None) -> FabricCard | None:
    """Return what is known of an adapter by its ids, as `0x15b3` and `0x1021`; None where it is not known."""
    wanted = _id(vendor, device)
    return next((each for each in fabric_cards() if wanted in (*each.ids, *each.virtual)), None)


def is_virtual_function(vendor: str | None, device: str | None) -> bool:
    """Whether an adapter is a virtual function by its ids: in a virtual machine nothing else tells."""
    wanted = _id(vendor, device)
    return any(wanted in each.virtual for each in fabric_cards())


def _id(vendor: str | None, device: str | None) -> str:
    return f"{(vendor or '').lower().removeprefix('0x')}:{(device or '').lower().removeprefix('0x')}"
