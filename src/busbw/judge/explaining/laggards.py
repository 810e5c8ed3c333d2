"""One GPU, or one pair, that is slower than the others: from rates between every two ends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

# Of the median of the others: below this an end is a laggard. Links of one kind differ by a few per cent.
SLOW_SHARE = 0.75
# An end is known by its pairs only if it has so many, and the others have too.
_FEWEST_OWN = 2
_FEWEST_OTHERS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """The rate between two ends, whichever way; `kind` tells pairs apart that must not be compared."""

    ends: tuple[str, str]
    rate_Bps: float
    kind: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Laggard:
    """An end whose every pair is slow, or a pair that is slow although both its ends are sound with others."""

    ends: tuple[str, ...]
    # In the median of its pairs, and in the median of the others of the same kind.
    rate_Bps: float
    others_Bps: float
    pairs: int
    kind: str = ""

    @property
    def share(self) -> float:
        """What it reaches of the others."""
        return self.rate_Bps / self.others_Bps


def laggards(pairs: Iterable[Pair]) -> tuple[Laggard, ...]:
    """Return the ends and pairs that are slow, the slowest first."""
    kinds: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.rate_Bps > 0:
            kinds.setdefault(pair.kind, []).append(pair)
    found = [each for same in kinds.values() for each in _of_kind(same)]
    return tuple(sorted(found, key=lambda each: each.share))


def _of_kind(pairs: Sequence[Pair]) -> list[Laggard]:
    ends = sorted({end for pair in pairs for end in pair.ends})
    slow = [each for end in ends if (each := _slow_end(end, pairs)) is not None]
    guilty = {end for each in slow for end in each.ends}
    rest = [pair for pair in pairs if guilty.isdisjoint(pair.ends)]
    return [*slow, *_slow_pairs(rest)]


def _slow_end(end: str, pairs: Sequence[Pair]) -> Laggard | None:
    own = [pair.rate_Bps for pair in pairs if end in pair.ends]
    others = [pair.rate_Bps for pair in pairs if end not in pair.ends]
    if len(own) < _FEWEST_OWN or len(others) < _FEWEST_OTHERS:
        return None
    level_Bps = median(others)
    if max(own) >= SLOW_SHARE * level_Bps:
        return None
    return Laggard(ends=(end,), rate_Bps=median(own), others_Bps=level_Bps, pairs=len(own), kind=pairs[0].kind)


def _slow_pairs(pairs: Sequence[Pair]) -> list[Laggard]:
    if len(pairs) <= _FEWEST_OTHERS:
        return []
    level_Bps = median(pair.rate_Bps for pair in pairs)
    return [
        Laggard(ends=pair.ends, rate_Bps=pair.rate_Bps, others_Bps=level_Bps, pairs=1, kind=pair.kind)
        for pair in pairs
        if pair.rate_Bps < SLOW_SHARE * level_Bps
    ]
