"""What NCCL chose for each size, from the lines of the TUNING subsystem."""

import re
from collections import Counter

from busbw.model.diagnosis import LoggedChoice

_CHOICE = re.compile(
    r"(?P<what>\w{1,40}): (?P<size>\d{1,18}) Bytes -> Algo (?P<algo>\w{1,30}) proto (?P<proto>\w{1,20})", re.ASCII
)
# Older versions print numbers.
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")


def choices_of(messages: list[tuple[str, int]]) -> tuple[LoggedChoice, ...]:
    """Return what was chosen, by collective and size; `messages` with how often each came."""
    counts: Counter[tuple[str, int, str, str]] = Counter()
    for message, count in messages:
        match = _CHOICE.search(message)
        if match is not None:
            algorithm, protocol = _name(match["algo"], _ALGORITHMS), _name(match["proto"], _PROTOCOLS)
            counts[match["what"], int(match["size"]), algorithm, protocol] += count
    return tuple(
        LoggedChoice(collective=what, size_bytes=size, algorithm=algorithm, protocol=protocol, lines=lines)
        for (what, size, algorithm, protocol), lines in sorted(counts.items())
    )


def _name(text: str, names: tuple[str, ...]) -> str:
    return names[int(text)] if text.isdigit() and int(text) < len(names) else text.upper()
