"""The clouds: how firmware names them, and how their metadata services are asked; from data/clouds.toml."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Value


class Ask(Value, frozen=True, kw_only=True):
    """One question to a metadata service."""

    path: str
    # The way to the name in a JSON answer; empty: the answer is the name.
    field: tuple[str, ...] = ()


class Cloud(Value, frozen=True, kw_only=True):
    """One cloud."""

    # As Match.service of a platform has it.
    id: str
    name: str
    # Globs by the kernel's names under /sys/class/dmi/id, compared without regard to case; one is enough.
    marks: dict[str, str]
    # The name under /sys/class/dmi/id that holds the kind of machine; None: the firmware does not say.
    type_field: str | None = None
    asks: tuple[Ask, ...]
    headers: dict[str, str]
    # Where a token must be had first: its path, the headers to ask for it, the header that carries it.
    token_path: str | None = None
    token_request: dict[str, str] = msgspec.field(default_factory=dict)
    token_header: str | None = None
    source: str


class _Clouds(Value, frozen=True, kw_only=True):
    cloud: tuple[Cloud, ...]


@cache
def clouds() -> tuple[Cloud, ...]:
    """Return every known cloud, in the order of the file."""
    raw = files("busbw").joinpath("data", "clouds.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_Clouds).cloud


def mark_of(cloud: Cloud, dmi: Mapping[str, str]) -> str | None:
    """Return which name under /sys/class/dmi/id says that a host is of this cloud; None for none."""
    for name, glob in cloud.marks.items():
        if fnmatchcase(dmi.get(name, "").strip().lower(), glob.lower()):
            return name
    return None


def cloud_of(dmi: Mapping[str, str]) -> Cloud | None:
    """Return the cloud that the firmware names; None where it names none."""
    return next((cloud for cloud in clouds() if mark_of(cloud, dmi) is not None), None)
