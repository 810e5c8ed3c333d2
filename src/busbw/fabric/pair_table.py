"""Tests of pairs by columns, 21 bytes a test, so that a matrix of thousands of nodes fits and is gone over natively.

It reads like a sequence of `PairTest`; what goes over all tests asks for the columns.
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from busbw import _core
from busbw.fabric.places import Metric, PairTest, Places

_RETEST, _ALONE = 1, 2
# The hop class of a test where a leaf is not known; 0 to 2 are those of `Places.hops`.
UNKNOWN_HOPS = 3


class PairTable(Sequence[PairTest]):
    """Tests in their order. A value that is missing is NaN in its column."""

    __slots__ = ("_marks", "receivers", "rounds", "senders", "values")

    def __init__(self, tests: Iterable[PairTest] = ()) -> None:
        self.senders, self.receivers, self.rounds = array("i"), array("i"), array("i")
        self.values = array("d")
        self._marks = bytearray()
        for each in tests:
            self.senders.append(each.sender)
            self.receivers.append(each.receiver)
            self.rounds.append(each.round)
            self.values.append(each.value or math.nan)
            self._marks.append(_RETEST * each.retest | _ALONE * each.alone)

    def add(self, sender: int, receiver: int, number: int, value: float) -> None:
        """Add a test of round `number`; NaN: no answer."""
        self.senders.append(sender)
        self.receivers.append(receiver)
        self.rounds.append(number)
        self.values.append(value)
        self._marks.append(0)

    def add_round(self, senders: Iterable[int], receivers: Iterable[int], number: int, values: Iterable[float]) -> None:
        """Add the tests of one round; NaN: no answer. Raises ValueError where the columns differ in length."""
        before = len(self.values)
        self.senders.extend(senders)
        self.receivers.extend(receivers)
        self.values.extend(values)
        count = len(self.values)
        if len(self.senders) != count or len(self.receivers) != count:
            raise ValueError("senders, receivers and values differ in length")
        self.rounds.extend(array("i", (number,)) * (count - before))
        self._marks.extend(bytes(count - before))

    def add_columns(self, senders: bytes, receivers: bytes, rounds: bytes, values: bytes) -> None:
        """Add tests as the memory of their columns, as `PairLines` of the core reads them."""
        self.senders.frombytes(senders)
        self.receivers.frombytes(receivers)
        self.rounds.frombytes(rounds)
        self.values.frombytes(values)
        self._marks.extend(bytes(len(self.values) - len(self._marks)))

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, at: int) -> PairTest: ...
    @overload
    def __getitem__(self, at: slice) -> "list[PairTest]": ...
    def __getitem__(self, at: int | slice) -> "PairTest | list[PairTest]":
        """Return a test, or a list of some."""
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        value, marks = self.values[at], self._marks[at]
        return PairTest(
            sender=self.senders[at],
            receiver=self.receivers[at],
            round=self.rounds[at],
            value=None if math.isnan(value) else value,
            retest=bool(marks & _RETEST),
            alone=bool(marks & _ALONE),
        )

    @property
    def first_retest(self) -> int:
        """The number of the first test that was made because of a suspicion; of all tests where there is none."""
        found = (self._marks.find(mark) for mark in (_RETEST, _RETEST | _ALONE))
        return min((at for at in found if at >= 0), default=len(self))

    def logs(self, metric: Metric) -> "array[float]":
        """Return the logarithm of the slowness of each test; NaN where there is no value."""
        found = _reals(len(self))
        _core.log_slowness(self.values, metric != "latency", found)
        return found

    def hop_kinds(self, places: Places) -> "array[int]":
        """Return the hop class of each test."""
        found = array("i", bytes(4 * len(self)))
        leaves, groups = leaf_column(places), array("i", places.groups)
        _core.hop_kinds(self.senders, self.receivers, leaves, groups, found)
        return found

    def among(self, places: Places, endpoints: Iterable[int]) -> list[int]:
        """Return the numbers of the tests in which one of the endpoints is, ascending."""
        marked = bytearray(len(places.endpoints))
        for each in endpoints:
            marked[each] = 1
        return _core.tests_of(self.senders, self.receivers, marked)

    def spread(self, every: int) -> Iterator[int]:
        """Yield the number of one test of every so many, at changing places: tests are often sorted by their ends."""
        for first in range(0, len(self), every):
            number = first + ((first // every * 0x9E3779B1 & 0xFFFFFFFF) >> 8) % every
            if number < len(self):
                yield number

    def unanswered(self) -> Iterator[int]:
        """Yield the numbers of the tests without a value."""
        if any(map(math.isnan, self.values)):
            yield from (at for at, value in enumerate(self.values) if math.isnan(value))


def table_of(tests: Sequence[PairTest]) -> PairTable:
    """Return tests as a table: themselves where they are one."""
    return tests if isinstance(tests, PairTable) else PairTable(tests)


def leaf_column(places: Places) -> "array[int]":
    """Return the leaf of each endpoint, -1 where it is not known."""
    return array("i", (-1 if leaf is None else leaf for leaf in places.leaves))


def group_column(places: Places) -> "array[int]":
    """Return the group of each endpoint, as a region; -1 where it is not known."""
    return array("i", (-1 if leaf is None else places.group_region(places.groups[leaf]) for leaf in places.leaves))


def _reals(count: int) -> "array[float]":
    return array("d", bytes(8 * count))
