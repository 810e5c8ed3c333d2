"""One fact of a platform held against a host."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from busbw.base.value import Value

Part = Literal[
    "firmware", "architecture", "GPU kind", "GPU count", "GPU addresses", "NIC names", "NIC addresses", "NIC ports",
    "NUMA nodes", "NUMA CPUs", "CPU kind", "CPU count", "memory", "host name", "name",
]  # fmt: skip


class Comparison(Value, kw_only=True, frozen=True):
    """What came of it. Nothing is compared that the platform's file does not say."""

    part: Part
    # unseen: the host does not show it.
    verdict: Literal["agrees", "differs", "unseen"]
    text: str
    # Whether a difference rules the platform out; others may be damage, a container's doing, or a setting.
    decisive: bool = False


def agrees(part: Part, text: str) -> Comparison:
    """Return that the host is as published."""
    return Comparison(part=part, verdict="agrees", text=text)


def unseen(part: Part, text: str) -> Comparison:
    """Return that the host does not show what is published."""
    return Comparison(part=part, verdict="unseen", text=text)


def differs(part: Part, text: str) -> Comparison:
    """Return that the host is not as published, for which there may be a reason."""
    return Comparison(part=part, verdict="differs", text=text)


def rules_out(part: Part, text: str) -> Comparison:
    """Return that the host cannot be this platform."""
    return Comparison(part=part, verdict="differs", text=text, decisive=True)


def matches(text: str, globs: Iterable[str]) -> bool:
    """Whether one of `globs` fits the whole of `text`, without regard to case."""
    return any(fnmatchcase(text.strip().lower(), glob.strip().lower()) for glob in globs)


def listed(words: Iterable[str], most: int = 4) -> str:
    """Return words as a list for a sentence; of many only the first, and how many more there are."""
    found = list(words)
    rest = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + rest
