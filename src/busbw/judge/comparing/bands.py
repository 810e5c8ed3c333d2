"""What is shown of small, medium and large messages, over all collectives: the conclusion of a pinning study."""

from collections.abc import Iterator, Sequence

from busbw.base.text import counted, listed, percent
from busbw.model.comparison import Band, BandSummary, ComparedBand, ComparisonOutcome, Design

_BANDS: tuple[Band, ...] = ("small", "medium", "large")
_MOST_NAMED = 6
# From here on a difference is said as a multiple: `12 times` says more than `1100 %`.
_MULTIPLE = 2.0


def summaries(bands: Sequence[ComparedBand], design: Design) -> tuple[BandSummary, ...]:
    """Return what is claimed of each band; nothing of sides that were not interleaved."""
    return () if design == "descriptive" else tuple(_summaries(bands))


def _summaries(bands: Sequence[ComparedBand]) -> Iterator[BandSummary]:
    for band in _BANDS:
        own = [each for each in bands if each.band == band]
        if own:
            yield _summary(band, own)


def _summary(band: Band, own: Sequence[ComparedBand]) -> BandSummary:
    faster = [each for each in own if each.estimate.claim == "faster"]
    slower = [each for each in own if each.estimate.claim == "slower"]
    unshown = [each for each in own if each.estimate.claim in ("same", "none")]
    total = counted(len(own), "collective")
    said = [
        f"shown {word} at {len(those)} of {total} ({listed(_names(those), _MOST_NAMED)}), {_extent(those)}"
        for word, those in (("faster", faster), ("slower", slower))
        if those
    ]
    within = _within(unshown)
    if unshown:
        left = f", equal within {percent(within)} by the intervals" if within is not None else ""
        said.append(f"no difference shown at {len(unshown)} of {total} ({listed(_names(unshown), _MOST_NAMED)}){left}")
    untold = len(own) - len(faster) - len(slower) - len(unshown)
    if untold:
        said.append(f"cannot tell at {untold} of {total}: too few blocks")
    return BandSummary(
        band=band,
        outcome=_outcome(faster, slower, unshown),
        faster=_names(faster),
        slower=_names(slower),
        unshown=_names(unshown),
        within=within,
        sentence="; ".join(said),
    )


def _outcome(
    faster: Sequence[ComparedBand], slower: Sequence[ComparedBand], unshown: Sequence[ComparedBand]
) -> ComparisonOutcome:
    if faster and slower:
        return "mixed"
    if faster or slower:
        return "faster" if faster else "slower"
    if not unshown:
        return "cannot_tell"
    return "same" if all(each.estimate.claim == "same" for each in unshown) else "none"


def _names(bands: Sequence[ComparedBand]) -> tuple[str, ...]:
    return tuple(f"{each.collective}{' in place' if each.in_place else ''}" for each in bands)


def _within(bands: Sequence[ComparedBand]) -> float | None:
    """Return the largest difference, as a share, that the intervals of these leave open."""
    ends = [(each.estimate.low, each.estimate.high) for each in bands]
    return max((abs(end - 1) for pair in ends for end in pair if end is not None), default=None)


def _extent(bands: Sequence[ComparedBand]) -> str:
    """Return by how much: as a share of the first side's speed, or how many times."""
    ratios = [each.estimate.ratio for each in bands]
    factors = sorted(max(ratio, 1 / ratio) for ratio in ratios)
    if factors[-1] < _MULTIPLE:
        shares = sorted(abs(ratio - 1) for ratio in ratios)
        first, last = percent(shares[0]), percent(shares[-1])
        return f"by {first}" if first == last else f"by {first} to {last}"
    first, last = (f"{factor:.2f}" if factor < 10 else f"{factor:.0f}" for factor in (factors[0], factors[-1]))
    return f"{first} times" if first == last else f"{first} to {last} times"
