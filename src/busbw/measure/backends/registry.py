"""Backends by name: our own, and those that other packages bring with an entry point in the group `busbw.backends`."""

import importlib
from typing import TYPE_CHECKING, Protocol, cast

from busbw.base.errors import InputError
from busbw.measure.backends.native_mpi import Parsed, Records
from busbw.model.plan import Plan, Program

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from busbw.measure.backends.foreign import ForeignBackend


GROUP = "busbw.backends"
# Found without the metadata of an installed package, and not to be replaced by another package's.
_OWN = {
    "native-mpi": "busbw.measure.backends.native_mpi",
    "native-nccl": "busbw.measure.backends.native_nccl",
}
# Programs of others, which print what busbw reads.
FOREIGN = {
    "nccl-tests": "busbw.measure.backends.nccl_tests",
    "osu": "busbw.measure.backends.osu",
}


class Backend(Protocol):
    """What a backend module offers."""

    name: str

    def program(self, directory: str, python: str) -> Program:
        """Return what one rank runs."""

    def parse(self, plan: Plan, records: Records) -> Parsed:
        """Put the records of all ranks together."""


def find(name: str) -> Backend:
    """Return the backend called `name`. Raises InputError when there is none, or when it cannot be imported."""
    others = {} if name in _OWN else _others()
    if name not in _OWN and name not in others:
        raise InputError(f"{name!r} is not a backend", hint="one of: " + ", ".join(sorted({*_OWN, *FOREIGN, *others})))
    try:
        found = importlib.import_module(_OWN[name]) if name in _OWN else others[name].load()
    except ImportError as error:
        raise InputError(f"backend {name!r} cannot be imported: {error}") from error
    return cast("Backend", found)


def _others() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 - our own are found without

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def find_foreign(name: str) -> "ForeignBackend":
    """Return the backend that runs the programs of others called `name`. Raises InputError when there is none."""
    if name not in FOREIGN:
        raise InputError(f"{name!r} runs no foreign programs", hint="one of: " + ", ".join(FOREIGN))
    return cast("ForeignBackend", importlib.import_module(FOREIGN[name]))
