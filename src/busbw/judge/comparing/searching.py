"""Which of several differences matter: halves of them are asked about until single ones are left.

Where neither half shows the difference, it takes something of both, and each half is searched with the other one held
(Zeller, "Yesterday, my program worked. Today, it does not. Why?", ESEC/FSE 1999). Where both halves show it, each of
them has a cause.
"""

import math
from collections.abc import Callable, Sequence

from busbw.model.comparison import Answer, SpeedEstimate

# Sets of items in, an answer for each out.
Ask = Callable[[Sequence[frozenset[int]]], Sequence[Answer]]


class Unclear(Exception):  # noqa: N818 - an answer that ends a search, and no error
    """The launches do not tell where to go on; the items that are left."""

    def __init__(self, left: frozenset[int]) -> None:
        super().__init__(f"{len(left)} left")
        self.left = left


def answer_of(estimate: SpeedEstimate, whole: SpeedEstimate) -> Answer:
    """Return whether a part makes the difference that the whole does: in its direction, and at least half of it."""
    if estimate.claim == whole.claim:
        return "shows"
    if estimate.low is None or estimate.high is None:
        return "unclear"
    half = math.sqrt(whole.ratio)
    is_less = estimate.high < half if whole.ratio > 1 else estimate.low > half
    return "absent" if is_less else "unclear"


def causes(items: Sequence[int], ask: Ask) -> tuple[frozenset[int], ...]:
    """Return the sets of items that make the difference: one by itself, or several that do so only together.

    All items together are known to make it. Raises Unclear where an answer that is needed is none.
    """
    return _causes(list(items), frozenset(), ask)


def _causes(items: list[int], held: frozenset[int], ask: Ask) -> tuple[frozenset[int], ...]:
    if len(items) == 1:
        return (frozenset(items),)
    halves = items[: len(items) // 2], items[len(items) // 2 :]
    answers = ask([held | frozenset(half) for half in halves])
    if "shows" in answers:
        # What the other half does, where that is unclear, is not needed to name a cause.
        shown = [half for half, answer in zip(halves, answers, strict=True) if answer == "shows"]
        return tuple(cause for half in shown for cause in _causes(half, held, ask))
    if "unclear" in answers:
        raise Unclear(frozenset(items))
    first = _causes(halves[0], held | frozenset(halves[1]), ask)
    second = _causes(halves[1], held | frozenset(halves[0]), ask)
    return (first[0] | second[0],)


def change(count: int, ask: Ask) -> int:
    """Return the first of `count` sides in order, counted from 0, that differs from the first one as the last one does.

    Raises Unclear where an answer that is needed is none.
    """
    same, differs = 0, count - 1
    while differs - same > 1:
        middle = (same + differs) // 2
        (answer,) = ask([frozenset((middle,))])
        if answer == "unclear":
            raise Unclear(frozenset(range(same + 1, differs + 1)))
        same, differs = (same, middle) if answer == "shows" else (middle, differs)
    return differs
