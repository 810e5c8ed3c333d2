"""What is published beside the platform files, and the figures that costs are told in, from data/advice/*.toml."""

from functools import cache
from importlib.resources import files
from typing import TypeVar

import msgspec

from busbw.base.value import Integer, Value
from busbw.facts.platform_files import shared_sources
from busbw.model.platform import PlatformSetting, PlatformSource
from busbw.model.recommendation import LeftOutKind, Need

T = TypeVar("T")


class WidelyPublished(PlatformSetting, kw_only=True, frozen=True):
    """A setting published for more than one platform: those of an id that matches, or with a kind of fabric."""

    # None: leave it unset.
    value: str | None = None
    platforms: tuple[str, ...] = ()
    fabrics: tuple[str, ...] = ()


class PublishedForMpi(WidelyPublished, kw_only=True, frozen=True):
    """A setting published for some MPIs. Either `need` says how it is taken, or `left` why it is not."""

    mpi: tuple[str, ...]
    need: Need | None = None
    left: LeftOutKind | None = None
    conditions: str | None = None


class GpuSize(Value, kw_only=True, frozen=True):
    """How many multiprocessors a GPU has."""

    # Compute capability times ten.
    sm: Integer
    model: str
    multiprocessors: Integer
    source: str


class _Settings(Value, kw_only=True, frozen=True):
    settings: tuple[WidelyPublished, ...]


class _SettingsOfMpi(Value, kw_only=True, frozen=True):
    settings: tuple[PublishedForMpi, ...]


class _Gpus(Value, kw_only=True, frozen=True):
    gpu: tuple[GpuSize, ...]


class _Sources(Value, kw_only=True, frozen=True):
    sources: tuple[PlatformSource, ...]


@cache
def widely_published() -> tuple[WidelyPublished, ...]:
    """Return the settings that are published beside the platform files, in the order of their file."""
    return _read("settings", _Settings).settings


@cache
def published_for_mpi() -> tuple[PublishedForMpi, ...]:
    """Return the settings that are published for MPI itself, in the order of their file."""
    return _read("mpi", _SettingsOfMpi).settings


@cache
def multiprocessors() -> dict[int, int]:
    """Return the multiprocessors of a GPU by its compute capability times ten."""
    return {each.sm: each.multiprocessors for each in _read("gpus", _Gpus).gpu}


@cache
def advice_sources() -> dict[str, PlatformSource]:
    """Return every source that advice may cite, by id: its own and those of the platform files."""
    shared = (msgspec.convert(file.raw["sources"], tuple[PlatformSource, ...]) for file in shared_sources(()))
    declared = (*(source for group in shared for source in group), *_read("sources", _Sources).sources)
    return {each.id: each for each in declared}


def _read(name: str, kind: type[T]) -> T:
    # These files are part of the package: an error in them is a bug, and says so.
    return msgspec.toml.decode(files("busbw").joinpath("data", "advice", f"{name}.toml").read_bytes(), type=kind)
