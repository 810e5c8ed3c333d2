"""From a request to sweeps: which collectives, which sizes, counted as nccl-tests counts them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import msgspec

from busbw.base.collectives import (
    COLLECTIVES,
    DTYPE_ALIASES,
    DTYPE_BYTES,
    PART_ALIGNMENT_BYTES,
    SUITES,
    Collective,
    Matrix,
    busiest_bytes,
    counted_size,
    distance_matrix,
    not_a_collective,
    scaled_matrix,
)
from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.base.units import format_size
from busbw.measure.backends.backend import AskedSizes, Capabilities
from busbw.model.plan import MOST_RANKS, Sweep
from busbw.model.request import Request

_MOST_PAIRS = 10_000


def pairs_of(asked: str, ranks: int, group: int | None) -> tuple[tuple[int, int], ...]:
    """Return the pairs that `asked` names: "all", "rail", "cross" or "0-1,2-3". Raises InputError.

    Ranks of one rail have the same place in their nodes of `group` ranks each; NICs of one rail share their switches.
    """
    if asked in ("all", "rail", "cross"):
        pairs = tuple(combinations(range(ranks), 2))
        if asked != "all":
            pairs = tuple(pair for pair in pairs if _is_between_nodes(pair, asked, ranks, group))
    else:
        pairs = tuple(_named(part, ranks) for part in asked.split(","))
    if not pairs:
        raise InputError("no two ranks are left", where=f"--pairs {asked}", hint="--pairs all")
    if len(pairs) > _MOST_PAIRS:
        raise InputError(f"{len(pairs)} pairs are more than {_MOST_PAIRS}", where=f"--pairs {asked}", hint="name some")
    return pairs


def _is_between_nodes(pair: tuple[int, int], asked: str, ranks: int, group: int | None) -> bool:
    if group is None or ranks % group:
        raise InputError(
            "rails need to know how many ranks a node has",
            where=f"--pairs {asked}",
            hint="--group 8 for eight GPUs a node",
        )
    left, right = pair
    same_rail = left % group == right % group
    return left // group != right // group and same_rail == (asked == "rail")


def _named(part: str, ranks: int) -> tuple[int, int]:
    left, dash, right = part.strip().partition("-")
    if not (dash and left.isdecimal() and right.isdecimal()) or len(left) > 9 or len(right) > 9:
        raise InputError(f"{part!r} is not a pair of ranks", where="--pairs", hint="all, rail, cross, or: 0-1,2-3")
    first, second = int(left), int(right)
    if first == second or max(first, second) >= ranks:
        raise InputError(
            f"{part!r} is not two of the {ranks} ranks", where="--pairs", hint=f"ranks are 0 to {ranks - 1}"
        )
    return first, second


_USUAL_SUITE = "six"
_SMALLEST_BYTES = 8
# A window is 64 messages.
_WINDOW_LARGEST_BYTES = 2 * 2**20
_FACTOR = 2
_SUITE_FACTOR = 8
_MOST_SIZES = 10_000
# A month: beyond it somebody mistyped.
_LONGEST_S = 31 * 24 * 3600


def sweeps_of(request: Request, ranks: int, capabilities: Capabilities) -> tuple[tuple[Sweep, ...], tuple[str, ...]]:
    """Return the sweeps of a request, and notes on what was left out and why. Raises InputError."""
    _check(request, ranks, capabilities)
    names = _names(request, capabilities)
    asked = _asked_sizes(request, _default_largest(names, capabilities))
    sweeps: list[Sweep] = []
    notes: dict[str, None] = {}
    for name in names:
        for dtype in _chosen(request.dtype, capabilities.dtypes):
            sizes, note = _counted(request, COLLECTIVES[name], asked, ranks, dtype, capabilities)
            notes.update({note: None} if note is not None else {})
            shares = _shares(request, name, ranks, asked, sizes)
            sweeps.extend(_forms(request, name, dtype, sizes, ranks, capabilities, shares))
    return tuple(sweeps), tuple(notes)


def asked_sizes(request: Request, capabilities: Capabilities) -> AskedSizes:
    """Return the sizes asked for, before any of them is rounded to whole elements and parts. Raises InputError."""
    usual = _default_largest(_names(request, capabilities), capabilities)
    sizes_bytes = tuple(_asked_sizes(request, usual))
    if request.step_bytes is not None:
        return AskedSizes(sizes_bytes=sizes_bytes, factor=None, step_bytes=request.step_bytes)
    return AskedSizes(sizes_bytes=sizes_bytes, factor=request.factor or usual[1], step_bytes=None)


def with_sizes(request: Request, capabilities: Capabilities) -> Request:
    """Return the request with the suite and the sizes that it gets where it asks for none. Raises InputError."""
    asked = asked_sizes(request, capabilities)
    smallest_bytes = asked.sizes_bytes[0]
    largest_bytes, _factor = _default_largest(_names(request, capabilities), capabilities)
    return msgspec.structs.replace(
        request,
        suite=None if request.collectives else request.suite or _USUAL_SUITE,
        smallest_bytes=smallest_bytes,
        largest_bytes=request.largest_bytes
        if request.largest_bytes is not None
        else max(largest_bytes, smallest_bytes),
        factor=asked.factor,
    )


def names_of(request: Request, capabilities: Capabilities) -> tuple[str, ...]:
    """Return the collectives asked for. Raises InputError for one that is not offered."""
    return _names(request, capabilities)


@dataclass(frozen=True, slots=True)
class _Shares:
    """The matrix of an alltoallv, and the size asked for that each counted size comes from."""

    matrix: Matrix = ()
    scales_bytes: tuple[int, ...] = ()


def _shares(request: Request, name: str, ranks: int, asked: list[int], sizes_bytes: tuple[int, ...]) -> _Shares:
    matrix = _matrix(name, request, ranks)
    if matrix is None:
        return _Shares()
    # Of several sizes asked for that round to the same one, the first.
    origin = {busiest_bytes(scaled_matrix(matrix, size_bytes)): size_bytes for size_bytes in reversed(asked)}
    return _Shares(matrix, tuple(origin[size_bytes] for size_bytes in sizes_bytes))


def _forms(
    request: Request,
    name: str,
    dtype: str,
    sizes_bytes: tuple[int, ...],
    ranks: int,
    capabilities: Capabilities,
    shares: _Shares,
) -> Iterator[Sweep]:
    """Yield the sweeps of one collective and data type: every operation, root, pair and placement asked for."""
    collective = COLLECTIVES[name]
    operations = _chosen(request.op, capabilities.operations)[: None if collective.reduces else 1]
    roots = range(ranks) if request.root is None and collective.rooted else (request.root or 0,)
    paired = name == "sendrecv" and request.pairs is not None
    pairs = pairs_of(request.pairs or "", ranks, request.group) if paired else (None,)
    for op in operations:
        for root in roots:
            for pair in pairs:
                for in_place in _placements(request, name, capabilities):
                    yield Sweep(
                        collective=name,
                        sizes_bytes=sizes_bytes,
                        dtype=dtype,
                        op=op,
                        root=root,
                        in_place=in_place,
                        pair=pair,
                        group=_group(name, request, ranks),
                        part_alignment_bytes=_alignment_bytes(request),
                        matrix=shares.matrix,
                        scales_bytes=shares.scales_bytes,
                    )


def _matrix(name: str, request: Request, ranks: int) -> Matrix | None:
    if name != "alltoallv":
        return None
    return request.matrix if request.matrix is not None else distance_matrix(ranks)


def _alignment_bytes(request: Request) -> int:
    return 1 if request.unaligned else PART_ALIGNMENT_BYTES


def _group(name: str, request: Request, ranks: int) -> int | None:
    """Return the ranks of one node. Raises InputError when they are not told, or when nodes would differ."""
    if name != "alltoall_2dh":
        return None
    if request.group is None:
        half = next(size for size in range(ranks // 2, 0, -1) if ranks % size == 0)
        raise InputError(
            "a two-level alltoall needs to know how many ranks a node has",
            where="alltoall_2dh",
            hint=f"--group {half} for {ranks // half} nodes (or parts that stand for nodes)",
        )
    if request.group < 1 or ranks % request.group:
        raise InputError(f"{ranks} ranks are not equal groups of {request.group}", where=f"--group {request.group}")
    return request.group


def _chosen(asked: str, offered: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in a comma-separated list, or all."""
    if asked == "all":
        return offered
    return tuple(dict.fromkeys(DTYPE_ALIASES.get(name, name) for name in asked.split(",")))


def _names(request: Request, capabilities: Capabilities) -> tuple[str, ...]:
    if request.collectives and request.suite is not None:
        raise InputError("both collectives and a suite were named", hint="name one or the other")
    if request.collectives:
        for name in request.collectives:
            if name not in COLLECTIVES:
                raise not_a_collective(name, capabilities.collectives)
            if name not in capabilities.collectives:
                raise InputError(
                    f"{name} is not measured over {capabilities.interface}",
                    hint="one of: " + ", ".join(capabilities.collectives),
                )
        return tuple(dict.fromkeys(request.collectives))
    suite = request.suite or _USUAL_SUITE
    if suite not in SUITES or not set(SUITES[suite]) <= set(capabilities.collectives):
        known = [name for name, members in SUITES.items() if set(members) <= set(capabilities.collectives)]
        near = maybe(suite, known).removeprefix("; ")
        raise InputError(
            f"{suite!r} is not a suite for {capabilities.interface}", hint=near or "one of: " + ", ".join(known)
        )
    return SUITES[suite]


def _check(request: Request, ranks: int, capabilities: Capabilities) -> None:
    _check_elements(request, capabilities)
    _check_ranks(request, ranks, capabilities)
    for option, limit_s in (("--time-limit", request.time_limit_s), ("--stall-timeout", request.stall_s)):
        if not 0 < limit_s <= _LONGEST_S:
            raise InputError(
                f"a time must be more than 0 and at most {_LONGEST_S} seconds", where=f"{option} {limit_s:g}"
            )
    if request.min_samples < 1:
        raise InputError("at least one sample is needed")
    if request.max_samples < 1:
        raise InputError("at least one sample is needed", where=f"--max-samples {request.max_samples}")
    if request.max_samples < request.min_samples != Request().min_samples:
        raise InputError(
            f"at least {request.min_samples} samples and at most {request.max_samples} cannot both be",
            where=f"--max-samples {request.max_samples}",
            hint="leave --min-samples out, or make it smaller",
        )


def _check_elements(request: Request, capabilities: Capabilities) -> None:
    for dtype in _chosen(request.dtype, capabilities.dtypes):
        if dtype not in capabilities.dtypes:
            raise InputError(
                f"{dtype!r} is not a data type of this {capabilities.interface}",
                hint="one of: " + ", ".join(capabilities.dtypes),
            )
    for op in _chosen(request.op, capabilities.operations):
        if op not in capabilities.operations:
            raise InputError(
                f"{op!r} is not an operation of {capabilities.interface}",
                hint="one of: " + ", ".join(capabilities.operations),
            )


def _check_ranks(request: Request, ranks: int, capabilities: Capabilities) -> None:
    if not 2 <= ranks <= MOST_RANKS:
        raise InputError(
            f"{ranks} ranks cannot exchange anything" if ranks < 2 else f"{ranks} ranks are too many",
            hint="--ranks 2 or more",
        )
    if request.root is not None and not 0 <= request.root < ranks:
        raise InputError(f"root {request.root} is not one of the {ranks} ranks", hint=f"-r 0 to {ranks - 1}")
    for name in _names(request, capabilities):
        if COLLECTIVES[name].pairs and ranks % 2:
            raise InputError(f"{name} pairs ranks, and {ranks} ranks leave one over", hint=f"--ranks {ranks + 1}")
        if name == "hypercube" and ranks & (ranks - 1):
            raise InputError("a hypercube needs a power of two of ranks", where=f"{ranks} ranks")


def _default_largest(names: tuple[str, ...], capabilities: Capabilities) -> tuple[int, int]:
    """Return the largest size and the factor between sizes that are measured when none is asked for."""
    if len(names) == 1:
        return capabilities.largest_bytes, _FACTOR
    windows = any(COLLECTIVES[name].messages_per_call > 2 for name in names)
    return (_WINDOW_LARGEST_BYTES if windows else capabilities.suite_largest_bytes), _SUITE_FACTOR


def _asked_sizes(request: Request, defaults: tuple[int, int]) -> list[int]:
    default_largest, default_factor = defaults
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
    factor = request.factor if request.factor is not None else default_factor
    if factor < 2:
        raise InputError("sizes must grow: the factor is at least 2", where=f"-f {factor}")
    sizes = []
    size_bytes = smallest
    while size_bytes <= largest:
        sizes.append(size_bytes)
        size_bytes *= factor
    return sizes


def _counted(
    request: Request, collective: Collective, asked: list[int], ranks: int, dtype: str, capabilities: Capabilities
) -> tuple[tuple[int, ...], str | None]:
    matrix = _matrix(collective.name, request, ranks)
    alignment_bytes = _alignment_bytes(request)
    if matrix is None:
        counted = [counted_size(collective, size_bytes, ranks, dtype, alignment_bytes) for size_bytes in asked]
    else:
        counted = [busiest_bytes(scaled_matrix(matrix, size_bytes)) for size_bytes in asked]
    sizes = tuple(dict.fromkeys(size_bytes for size_bytes in counted if size_bytes > 0))
    least_bytes = max(alignment_bytes, DTYPE_BYTES[dtype])
    if not sizes:
        raise InputError(
            f"no size is left of {format_size(asked[0])} to {format_size(asked[-1])}",
            where=f"{collective.name} over {ranks} ranks",
            hint=f"a larger -e: parts are multiples of {least_bytes} bytes, so at least -e {least_bytes * ranks}",
        )
    message_bytes = _message_bytes(collective, sizes[-1], ranks, _group(collective.name, request, ranks))
    if capabilities.most_elements is not None and message_bytes // DTYPE_BYTES[dtype] > capabilities.most_elements:
        raise InputError(
            f"{format_size(sizes[-1])} of {dtype} is more than the {capabilities.most_elements} elements that "
            f"{capabilities.interface} counts",
            hint="a smaller -e, or a type of more bytes with -d",
        )
    dropped = [size_bytes for size_bytes, kept in zip(asked, counted, strict=True) if kept == 0]
    if not dropped:
        return sizes, None
    names = ", ".join(format_size(size_bytes) for size_bytes in dropped)
    parts = f"one part for each of {ranks} ranks, a multiple of {least_bytes} bytes"
    return sizes, f"{collective.name}: {names} left out, too small for {parts if collective.splits else f'one {dtype}'}"


def _message_bytes(collective: Collective, size_bytes: int, ranks: int, group: int | None) -> int:
    """Return what one call of the interface counts: a part, or in a two-level alltoall the parts of a whole level."""
    if not collective.splits:
        return size_bytes
    return size_bytes // ranks * (1 if group is None else max(group, ranks // group))


def _placements(request: Request, name: str, capabilities: Capabilities) -> tuple[bool, ...]:
    if request.placement == "out" or name not in capabilities.in_place or request.pairs is not None:
        return (False,)
    return (True,) if request.placement == "in" else (False, True)
