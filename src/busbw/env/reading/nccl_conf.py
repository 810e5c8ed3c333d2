"""Reads nccl.conf as NCCL does, whatever its version, with places."""

from busbw.env.layers import split_line
from busbw.env.reading.context import Context
from busbw.env.reading.spelled import Spelled


def read_nccl_conf(piece: Spelled, context: Context) -> None:
    """Take down every line that NCCL takes for a setting; spaces and quotes are part of names and values."""
    at = 0
    for line in piece.text.split("\n"):
        start, at = at, at + len(line) + 1
        found = split_line(line)
        # Versions before 2.26 know no remarks, and take one with `=` for a setting of a name that nothing reads.
        if found is None or line.startswith("#"):
            continue
        name, rest = found
        begin = start + len(name) + 1
        value = piece.part(begin, begin + len(rest.removesuffix("\r")))
        place = piece.origin(start)
        context.ledger.assign(
            name,
            value,
            "nccl_conf",
            at=place,
            written=(value.origin(0), value.end()),
            launch=context.launch,
            arms=context.arms,
            target=context.target,
        )
