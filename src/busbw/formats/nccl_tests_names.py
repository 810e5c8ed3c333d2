"""Which collective a table of nccl-tests is about, and busbw's names for its data types."""

import re

from busbw.formats.arithmetic import Printed

DTYPES = {
    "float": "float32", "half": "float16", "double": "float64", "char": "int8", "int": "int32",
    "fp8_e4m3": "f8e4m3", "fp8_e5m2": "f8e5m2",
}  # fmt: skip
_BYTES = {
    "int8": 1, "uint8": 1, "char": 1, "int32": 4, "int": 4, "uint32": 4, "int64": 8, "uint64": 8, "half": 2, "float": 4,
    "double": 8, "bfloat16": 2, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1,
}  # fmt: skip
_PROGRAM = re.compile(r"(?:^|/)(\w+?)_perf\w*(?:\.exe)?$", re.ASCII)


def collective_of_program(program: str) -> str | None:
    """Return the collective of `all_reduce_perf`, with any path before it and any suffix after it."""
    match = _PROGRAM.search(program)
    return match[1] if match is not None else None


def parts(size_bytes: int, count: int, dtype: str) -> int | None:
    """Return how many times the count makes the size: 1, or the ranks where the size counts all parts."""
    element_bytes = _BYTES.get(dtype)
    if element_bytes is None or count <= 0 or size_bytes % (count * element_bytes):
        return None
    return size_bytes // (count * element_bytes)


def collective_of_row(
    *,
    redop: str | None,
    root: int | None,
    has_redop: bool,
    parts: int,
    ranks: int | None,
    in_place_alone_unchecked: bool,
    factor: Printed | None,
) -> str:
    """Return the collective that a row must be of; "A or B" where rows of two look the same.

    For tables that do not name their program: all before 2.16.7. `has_redop` tells whether the table has that column,
    `factor` is busbw over algbw.
    """
    if redop not in (None, "none"):
        return _reduction(root, parts, ranks, factor, is_ring=in_place_alone_unchecked)
    if root is not None and root >= 0:
        return "gather or scatter" if parts > 1 else "broadcast"
    if not has_redop:
        return "sendrecv" if parts == 1 else "all_gather"
    if redop is None:
        # hypercube has a root column beside its blank operation, alltoall before 2.13 had none.
        return "hypercube" if root is not None else "alltoall"
    return "alltoall" if in_place_alone_unchecked else "all_gather or alltoall"


def _reduction(root: int | None, parts: int, ranks: int | None, factor: Printed | None, *, is_ring: bool) -> str:
    if root is not None and root >= 0:
        return "reduce"
    if parts > 1:
        return "reduce_scatter"
    # sendrecv shows an operation too, and both count a size once; the factor of all_reduce is 1 for two ranks only.
    once = factor is not None and factor.low > 0 and factor.high < 1.1 and ranks is not None and ranks > 2
    return "sendrecv" if is_ring or once else "all_reduce"
