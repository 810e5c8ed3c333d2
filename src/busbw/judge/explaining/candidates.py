"""Which algorithms a size may have been measured with: as NCCL says, as settings allow, as physics leaves over."""

from dataclasses import dataclass
from typing import Literal

from busbw.judge.explaining.from_run import SYMMETRIC
from busbw.judge.explaining.grounds import bound_named, least_bound
from busbw.judge.explaining.series import Sample, Series
from busbw.model.limit import Bound, NodeRates

# A bound is exact; a time that was printed with four digits and clocks of two devices are not.
ABOVE = 1.005
From = Literal["nccl", "setting", "physics", "only", "asked"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """The bounds of the algorithms that are left, the highest first; none is left of a result above all of them."""

    bounds: tuple[Bound, ...]
    # How it is known, where one is left.
    known_from: From | None
    # Those that are too slow for what was measured.
    excluded: tuple[Bound, ...] = ()

    @property
    def highest(self) -> Bound | None:
        """The bound that no result may pass."""
        every = (*self.bounds, *self.excluded)
        return max(every, key=lambda bound: bound.busbw_Bps or 0.0, default=None)


def candidates(series: Series, sample: Sample, rates: NodeRates | None, found: tuple[Bound, ...]) -> Candidates:
    """Return what may have been used at this size; `found` holds the bounds of the series."""
    if rates is not None and sample.algorithm is not None and series.network != "loopback":
        said = (
            least_bound(rates, series)
            if sample.algorithm == SYMMETRIC
            else bound_named(rates, series, sample.algorithm)
        )
        # What NCCL says it used is not replaced by what it might have used.
        return _split((said,) if said is not None else (), sample, "nccl")
    how: From | None = None
    if len(found) == 1:
        how = "setting" if len(series.algorithms) == 1 else "only"
    return _split(found, sample, how)


def _split(found: tuple[Bound, ...], sample: Sample, how: From | None) -> Candidates:
    left = tuple(each for each in found if (each.busbw_Bps or 0.0) * ABOVE >= sample.busbw_Bps)
    excluded = tuple(each for each in found if each not in left)
    if how is None and len(left) == 1 and excluded:
        how = "physics"
    return Candidates(bounds=left, known_from=how, excluded=excluded)
