"""From a request to sweeps: which collectives, which sizes, counted as nccl-tests counts them."""

import difflib

from busbw.api.request import Request
from busbw.collectives import COLLECTIVES, DTYPE_BYTES, OPERATIONS, SUITES, Collective, counted_size
from busbw.errors import InputError
from busbw.model.plan import MOST_RANKS
from busbw.model.sweep import Sweep
from busbw.units import format_size

_SMALLEST_BYTES = 8
_LARGEST_BYTES = 64 * 2**20
# A whole suite has to fit into the time of one collective; a window is 64 messages.
_SUITE_LARGEST_BYTES = 16 * 2**20
_WINDOW_LARGEST_BYTES = 2 * 2**20
_FACTOR = 2
_SUITE_FACTOR = 8
_MOST_SIZES = 10_000
_MOST_COUNT = 2**31 - 1
# A month: beyond it somebody mistyped.
_LONGEST_S = 31 * 24 * 3600


def sweeps_of(request: Request, ranks: int) -> tuple[tuple[Sweep, ...], tuple[str, ...]]:
    """Return the sweeps of a request, and notes on what was left out and why. Raises InputError."""
    _check(request, ranks)
    names = _names(request)
    asked = _asked_sizes(request, _default_largest(names))
    counted = {name: _counted(COLLECTIVES[name], asked, ranks, request.dtype) for name in names}
    sweeps = tuple(
        Sweep(
            collective=name,
            sizes_bytes=sizes,
            dtype=request.dtype,
            op=request.op,
            root=request.root,
            in_place=in_place,
        )
        for name, (sizes, _note) in counted.items()
        for in_place in _placements(request, COLLECTIVES[name])
    )
    return sweeps, tuple(note for _sizes, note in counted.values() if note is not None)


def _names(request: Request) -> tuple[str, ...]:
    if request.collectives and request.suite is not None:
        raise InputError("both collectives and a suite were named", hint="name one or the other")
    if request.collectives:
        for name in request.collectives:
            if name not in COLLECTIVES:
                raise InputError(f"{name!r} is not a collective", hint=_maybe(name, COLLECTIVES))
        return tuple(dict.fromkeys(request.collectives))
    suite = request.suite or "six"
    if suite not in SUITES:
        raise InputError(f"{suite!r} is not a suite", hint=_maybe(suite, SUITES))
    return SUITES[suite]


def _maybe(name: str, known: "dict[str, object] | dict[str, Collective] | dict[str, tuple[str, ...]]") -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"maybe: {close[0]}" if close else "one of: " + ", ".join(known)


def _check(request: Request, ranks: int) -> None:
    if request.dtype not in DTYPE_BYTES:
        raise InputError(f"{request.dtype!r} is not a data type", hint="one of: " + ", ".join(DTYPE_BYTES))
    if request.op not in OPERATIONS:
        raise InputError(f"{request.op!r} is not an operation", hint="one of: " + ", ".join(OPERATIONS))
    if not 2 <= ranks <= MOST_RANKS:
        raise InputError(
            f"{ranks} ranks cannot exchange anything" if ranks < 2 else f"{ranks} ranks are too many",
            hint="-n 2 or more",
        )
    if not 0 <= request.root < ranks:
        raise InputError(f"root {request.root} is not one of the {ranks} ranks", hint=f"-r 0 to {ranks - 1}")
    for option, limit_s in (("--time-limit", request.time_limit_s), ("--stall-timeout", request.stall_s)):
        if not 0 < limit_s <= _LONGEST_S:
            raise InputError(
                f"a time must be more than 0 and at most {_LONGEST_S} seconds", where=f"{option} {limit_s:g}"
            )
    if request.min_samples < 1:
        raise InputError("at least one sample is needed")
    for name in _names(request):
        if COLLECTIVES[name].pairs and ranks % 2:
            raise InputError(f"{name} pairs ranks, and {ranks} ranks leave one over", hint=f"-n {ranks + 1}")


def _default_largest(names: tuple[str, ...]) -> int:
    if len(names) == 1:
        return _LARGEST_BYTES
    windows = any(COLLECTIVES[name].messages_per_call > 2 for name in names)
    return _WINDOW_LARGEST_BYTES if windows else _SUITE_LARGEST_BYTES


def _asked_sizes(request: Request, default_largest: int) -> list[int]:
    smallest = request.smallest_bytes if request.smallest_bytes is not None else _SMALLEST_BYTES
    largest = request.largest_bytes if request.largest_bytes is not None else max(default_largest, smallest)
    if smallest < 1:
        raise InputError("sizes begin at 1 byte", where=f"-b {smallest}", hint="-b 8")
    if largest < smallest:
        raise InputError(
            f"the largest size, {format_size(largest)}, is below the smallest, {format_size(smallest)}",
            hint="exchange -b and -e",
        )
    if request.factor is not None and request.step_bytes is not None:
        raise InputError("sizes grow by a factor (-f) or by a step (-i), not both", hint="leave one out")
    if request.step_bytes is not None:
        if request.step_bytes < 1:
            raise InputError("a step must be at least 1 byte", where=f"-i {request.step_bytes}")
        if (largest - smallest) // request.step_bytes >= _MOST_SIZES:
            raise InputError(f"these steps make more than {_MOST_SIZES} sizes", hint="a larger -i, or -f 2")
        return list(range(smallest, largest + 1, request.step_bytes))
    factor = (
        request.factor
        if request.factor is not None
        else (_FACTOR if default_largest == _LARGEST_BYTES else _SUITE_FACTOR)
    )
    if factor < 2:
        raise InputError("sizes must grow: the factor is at least 2", where=f"-f {factor}")
    sizes = []
    size_bytes = smallest
    while size_bytes <= largest:
        sizes.append(size_bytes)
        size_bytes *= factor
    return sizes


def _counted(collective: Collective, asked: list[int], ranks: int, dtype: str) -> tuple[tuple[int, ...], str | None]:
    counted = [counted_size(collective, size_bytes, ranks, dtype) for size_bytes in asked]
    sizes = tuple(dict.fromkeys(size_bytes for size_bytes in counted if size_bytes > 0))
    if not sizes:
        raise InputError(
            f"no size is left of {format_size(asked[0])} to {format_size(asked[-1])}",
            where=f"{collective.name} over {ranks} ranks",
            hint=f"a larger -e: parts are multiples of 16 bytes, so at least -e {16 * ranks}",
        )
    part_bytes = sizes[-1] // ranks if collective.splits else sizes[-1]
    if part_bytes // DTYPE_BYTES[dtype] > _MOST_COUNT:
        raise InputError(
            f"{format_size(sizes[-1])} of {dtype} is more than the 2147483647 elements that MPI counts",
            hint="a smaller -e, or a type of more bytes with -d",
        )
    dropped = [size_bytes for size_bytes, kept in zip(asked, counted, strict=True) if kept == 0]
    if not dropped:
        return sizes, None
    names = ", ".join(format_size(size_bytes) for size_bytes in dropped)
    why = f"one part for each of {ranks} ranks, a multiple of 16 bytes" if collective.splits else f"one {dtype}"
    return sizes, f"{collective.name}: {names} left out, too small for {why}"


def _placements(request: Request, collective: Collective) -> tuple[bool, ...]:
    if request.placement == "out" or not collective.in_place:
        return (False,)
    return (True,) if request.placement == "in" else (False, True)
