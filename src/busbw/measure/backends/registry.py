"""Backends by name: our own, and those that other packages bring with an entry point in the group `busbw.backends`."""

import importlib
from typing import TYPE_CHECKING, cast

from busbw.base.errors import InputError
from busbw.measure.backends.backend import Backend, Carrier, OwnBackend

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "busbw.backends"
# Found without the metadata of an installed package, and not to be replaced by another package's; with what carries the
# data, for those who ask for nothing else: some modules bring the readers of logs.
_OWN: dict[str, tuple[str, Carrier]] = {
    "native-mpi": ("native_mpi", "mpi"),
    "native-nccl": ("native_nccl", "nccl"),
    "nccl-tests": ("nccl_tests", "nccl"),
    "osu": ("osu", "mpi"),
}


def find(name: str) -> Backend:
    """Return the backend called `name`. Raises InputError when there is none, or none that is whole."""
    if name in _OWN:
        return cast("Backend", importlib.import_module(f"busbw.measure.backends.{_OWN[name][0]}"))
    others = _others()
    if name not in others:
        raise InputError(f"{name!r} is not a backend", hint="one of: " + ", ".join(sorted({*_OWN, *others})))
    try:
        found = others[name].load()
    except (ImportError, AttributeError) as error:
        raise InputError(f"backend {name!r} cannot be imported: {error}") from error
    lacks = [each for each in _wanted(found) if not hasattr(found, each)]
    if lacks or found.name != name:
        said = f"lacks {', '.join(lacks)}" if lacks else f"calls itself {found.name!r}"
        raise InputError(
            f"backend {name!r} {said}",
            where=others[name].value,
            hint="busbw/measure/backends/backend.py says all of it",
        )
    return cast("Backend", found)


def over(name: str) -> Carrier:
    """Return what carries the data of a backend, quickly for our own. Raises InputError as `find` does."""
    return _OWN[name][1] if name in _OWN else find(name).over


def _wanted(found: object) -> list[str]:
    """Return the names that a backend must have, as its protocol declares them."""
    from busbw.measure.backends.foreign import ForeignBackend  # noqa: PLC0415 - it brings the readers of tables

    kind = OwnBackend if getattr(found, "is_ours", True) else ForeignBackend
    declared = (each for part in (Backend, kind) for each in (*part.__annotations__, *vars(part)))
    return sorted({each for each in declared if not each.startswith("_")})


def _others() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 - our own are found without

    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in _OWN}
