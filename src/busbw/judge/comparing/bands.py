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
    said = [
        f"shown {word} {_where(those, own)}, {_extent(those)}"
        for word, those in (("faster", faster), ("slower", slower))
        if those
    ]
    within = _within(unshown)
    if unshown:
        left = f", the intervals lie within {_open_words(within)}" if within is not None else ""
        said.append(f"no difference shown {_where(unshown, own)}{left}")
    untold = [each for each in own if each.estimate.claim == "cannot_tell"]
    if untold:
        said.append(f"cannot tell {_where(untold, own)}: too few blocks")
    return BandSummary(
        band=band,
        outcome=_outcome(faster, slower, unshown),
        faster=_names(faster),
        slower=_names(slower),
        unshown=_names(unshown),
        within=within,
        sentence="; ".join(said),
    )


def _where(those: Sequence[ComparedBand], own: Sequence[ComparedBand]) -> str:
    total = counted(len(own), "collective")
    if len(those) == len(own):
        return f"at all of {total}" if len(own) > 1 else f"at {_names(own)[0]}"
    return f"at {len(those)} of {total} ({listed(_names(those), _MOST_NAMED)})"


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
    """Return the largest difference, as a share of the slower side's speed, that the intervals of these leave open."""
    ends = [end for each in bands for end in (each.estimate.low, each.estimate.high) if end is not None]
    return max((max(end, 1 / end) - 1 for end in ends if end > 0), default=None)


def _open_words(within: float) -> str:
    return percent(within) if 1 + within < _MULTIPLE else f"a factor of {1 + within:.3g}"


def _extent(bands: Sequence[ComparedBand]) -> str:
    """Return by how much: as a share of the first side's speed, or how many times."""
    ratios = [each.estimate.ratio for each in bands]
    factors = sorted(max(ratio, 1 / ratio) for ratio in ratios)
    if factors[-1] < _MULTIPLE:
        shares = sorted(abs(ratio - 1) for ratio in ratios)
        first, last = percent(shares[0]), percent(shares[-1])
        return f"by {first}" if first == last else f"by {first} to {last}"
    first, last = (f"{factor:.3g}" if factor < 1000 else f"{factor:.0f}" for factor in (factors[0], factors[-1]))
    return f"by a factor of {first}" if first == last else f"by a factor of {first} to {last}"
