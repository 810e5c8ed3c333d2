"""What directives of PBS and LSF ask for, from data/batch_resources.toml."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Value


class DirectiveOption(Value, frozen=True, kw_only=True):
    """Options of one kind of directive whose value has one shape, as a regular expression, and how it is said."""

    directive: str
    names: tuple[str, ...]
    pattern: str
    wants: str
    source: str


class ResourceList(Value, frozen=True, kw_only=True):
    """A list of NAME=VALUE: where it stands, the signs that divide it, and the names that every site has."""

    where: str
    divided_by: str
    names: str
    # Names that belong into an entry of this list, and not into the list itself.
    inner: str = ""
    source: str


class ResourceValue(Value, frozen=True, kw_only=True):
    """The shape of the value of some names, as a regular expression, and how it is said."""

    names: tuple[str, ...]
    pattern: str
    wants: str


class BatchResources(Value, frozen=True, kw_only=True):
    """The directives of PBS and LSF."""

    option: tuple[DirectiveOption, ...]
    list: tuple[ResourceList, ...]
    value: tuple[ResourceValue, ...]


@cache
def _declared() -> BatchResources:
    raw = files("busbw").joinpath("data", "batch_resources.toml").read_bytes()
    return msgspec.toml.decode(raw, type=BatchResources)


@cache
def directive_options() -> dict[tuple[str, str], DirectiveOption]:
    """Return the options by directive and name: `#BSUB` and `-W`."""
    return {(each.directive, name): each for each in _declared().option for name in each.names}


@cache
def resource_lists() -> dict[str, ResourceList]:
    """Return the lists by where they stand: `#PBS -l select`."""
    return {each.where: each for each in _declared().list}


@cache
def resource_values() -> dict[str, ResourceValue]:
    """Return the shapes of values by the name of the resource."""
    return {name: each for each in _declared().value for name in each.names}
