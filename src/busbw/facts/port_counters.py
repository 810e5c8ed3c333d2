"""What is known of the counters of network ports: meaning, kind, width, and the change from which one matters."""

import datetime as dt
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
from msgspec import structs

from busbw.base.value import Integer, Value

# rdma: a port of InfiniBand, RoCE or EFA; cxi: Slingshot; net: any network interface.
CounterOwner = Literal["rdma", "cxi", "net"]
# link_error: of this very link; loss: packets lost on the way; host: the host or its program was late.
CounterKind = Literal["link_error", "loss", "congestion", "host", "traffic"]
_HOUR_S = 3600.0


class PortCounter(Value, frozen=True, kw_only=True):
    """One counter. `name` is that of its file, `perfquery` what perfquery calls it."""

    owner: CounterOwner
    name: str
    # How many there are of it, numbered from 0: `N` in its name, words and meaning is the number; None: one.
    each: Integer | None = None
    # As a sentence names what it counted: `symbol errors`.
    words: str
    kind: CounterKind
    means: str
    # Its width; None: not known, or it depends on the device.
    bits: Integer | None = None
    # What it does at the end of its width.
    at_end: Literal["stays", "unknown"] = "unknown"
    perfquery: str | None = None
    # The change between two readings from which it matters, and who says so.
    least: Integer
    least_source: str
    # Of readings further apart than an hour: the rate from which it matters too.
    per_hour: Integer | None = None
    # The total since the counters were cleared above which a port is reported; None: no total is.
    total: Integer | None = None
    source: str
    checked: dt.date

    @property
    def most(self) -> int | None:
        """The value at which it stays; None: it does not, or nobody says."""
        return 2**self.bits - 1 if self.bits is not None and self.at_end == "stays" else None

    def matters(self, change: int, seconds: float | None) -> bool:
        """Whether a change within so many seconds (None: not known) is one that matters."""
        if change < self.least:
            return False
        if self.per_hour is None or seconds is None or seconds <= _HOUR_S:
            return True
        return change * _HOUR_S / seconds >= self.per_hour


class _PortCounters(Value, frozen=True, kw_only=True):
    counter: tuple[PortCounter, ...]


@cache
def port_counters() -> dict[tuple[CounterOwner, str], PortCounter]:
    """Return every known counter by its owner and name."""
    raw = files("busbw").joinpath("data", "port_counters.toml").read_bytes()
    # Only the codec floor may decode for users; this file is part of the package, so an error in it is a bug.
    found: dict[tuple[CounterOwner, str], PortCounter] = {}
    for declared in msgspec.toml.decode(raw, type=_PortCounters).counter:
        for each in _numbered(declared):
            if found.setdefault((each.owner, each.name), each) is not each:
                raise ValueError(f"data/port_counters.toml has {each.owner} {each.name} twice")
    return found


def _numbered(declared: PortCounter) -> Iterator[PortCounter]:
    """Yield a counter for each number that a declaration stands for."""
    for number in range(declared.each or 1):
        texts = (
            {name: getattr(declared, name).replace("N", str(number)) for name in ("name", "words", "means")}
            if declared.each is not None
            else {}
        )
        yield structs.replace(declared, each=None, **texts)


def names_of(owner: CounterOwner) -> tuple[str, ...]:
    """Return the names of the counters of an owner."""
    return tuple(name for whose, name in port_counters() if whose == owner)


@cache
def perfquery_names() -> dict[str, str]:
    """Return the name of the kernel for each of perfquery's names."""
    return {each.perfquery: each.name for each in port_counters().values() if each.perfquery is not None}
