"""What has been found different between two topologies so far."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from busbw.model.difference import Difference, Group

S = TypeVar("S")
T = TypeVar("T")


@dataclass(slots=True)
class Tally:
    """Differences that count, those left to detection, and those that NCCL does not use."""

    differences: list[Difference] = field(default_factory=list)
    detected: list[Difference] = field(default_factory=list)
    unused: list[Difference] = field(default_factory=list)

    def compare(
        self,
        group: Group,
        subject: str,
        what: str,
        values: tuple[T | None, T | None],
        words: Callable[[T], str] = str,
    ) -> None:
        """Note two values that differ; one that is missing is left to detection."""
        if values[0] != values[1]:
            found = _difference(group, subject, what, values, words)
            (self.detected if None in values else self.differences).append(found)

    def pass_over(self, group: Group, subject: str, what: str, values: tuple[T | None, T | None]) -> None:
        """Note two values that differ, and that NCCL does not use."""
        if values[0] != values[1] and None not in values:
            self.unused.append(_difference(group, subject, what, values, str))


def both(read: Callable[[S], T], first: S, second: S) -> tuple[T, T]:
    """Return the same value of two things."""
    return read(first), read(second)


def _difference(
    group: Group, subject: str, what: str, values: tuple[T | None, T | None], words: Callable[[T], str]
) -> Difference:
    first, second = (None if value is None else words(value) for value in values)
    return Difference(group=group, subject=subject, what=what, first=first, second=second)
