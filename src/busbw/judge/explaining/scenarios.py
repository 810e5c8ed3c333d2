"""Which algorithms NCCL may have used at a size: what it says, what settings allow, what it takes by default.

Where nobody says whether NVLink SHARP was on there are two scenarios, with it and without. Each is judged by itself.
"""

from dataclasses import dataclass
from typing import Literal

from busbw.judge.explaining.bounds import bound_named, least_bound
from busbw.judge.explaining.series import Sample, Series
from busbw.judge.explaining.sources import SYMMETRIC
from busbw.model.limit import Bound, NodeRates

# A bound is exact; a time that was printed with four digits and clocks of two devices are not.
ABOVE = 1.005
From = Literal["nccl", "setting", "physics", "only", "asked"]
# Algorithms for which the switch between the GPUs adds.
ADDING = frozenset({"nvls", "nvlstree"})
_RINGS_BY_DEFAULT = frozenset({"all_gather", "reduce_scatter"})
_TWO = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """One way in which a size may have been measured, and the bounds of what NCCL takes then."""

    bounds: tuple[Bound, ...]
    # Whether NVLink SHARP is on in it; None: it makes no difference, or nobody says and it cannot.
    nvls: bool | None
    # In words, where there are several: "NVLS on".
    title: str
    known_from: From | None = None

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The names of the algorithms."""
        return tuple(bound.algorithm for bound in self.bounds)

    @property
    def ceiling_Bps(self) -> float:
        """The most that any of them can carry."""
        return max((bound.busbw_Bps or 0.0 for bound in self.bounds), default=0.0)

    def carries(self, busbw_Bps: float) -> bool:
        """Whether a result is within what it can carry."""
        return self.ceiling_Bps * ABOVE >= busbw_Bps


def scenarios(
    series: Series, sample: Sample, rates: NodeRates | None, found: tuple[Bound, ...]
) -> tuple[Scenario, ...]:
    """Return the scenarios of a size; `found` holds the bounds of the series. () where nothing has a bound."""
    if rates is not None and sample.algorithm is not None and series.network != "loopback":
        return _said_by_nccl(series, sample.algorithm, rates)
    if not found:
        return ()
    if series.algorithms or series.network == "loopback" or series.library != "nccl":
        how: From | None = ("setting" if len(series.algorithms) == 1 else "only") if len(found) == 1 else None
        return (Scenario(bounds=found, nvls=_adds(series, found), title="", known_from=how),)
    return _by_default(series, found)


def _said_by_nccl(series: Series, algorithm: str, rates: NodeRates) -> tuple[Scenario, ...]:
    """Return what NCCL says it used; it is not replaced by what it might have used."""
    bound = least_bound(rates, series) if algorithm == SYMMETRIC else bound_named(rates, series, algorithm)
    if bound is None:
        return ()
    return (Scenario(bounds=(bound,), nvls=_adds(series, (bound,)), title="", known_from="nccl"),)


def _adds(series: Series, bounds: tuple[Bound, ...]) -> bool | None:
    if series.nvls is False or series.network == "loopback":
        return False
    adding = {bound.algorithm in ADDING for bound in bounds}
    return adding.pop() if len(adding) == 1 else series.nvls


def _by_default(series: Series, found: tuple[Bound, ...]) -> tuple[Scenario, ...]:
    adding = tuple(bound for bound in found if bound.algorithm in ADDING)
    plain = tuple(bound for bound in found if bound.algorithm not in ADDING)
    without = Scenario(bounds=_usual(series, plain), nvls=False, title="NVLS off", known_from=_only(plain))
    if not adding or series.collective in _RINGS_BY_DEFAULT:
        # NCCL keeps to rings for these though a switch could help (published for eight H200: 361 of 450 GB/s).
        is_told = bool(adding) and plain
        bounds = _usual(series, plain if is_told else found)
        return (Scenario(bounds=bounds, nvls=series.nvls if adding else None, title="", known_from=_only(bounds)),)
    # On one node nothing is as fast as the switch; between nodes a plain tree may be taken where sizes are small.
    inside = all(bound.algorithm == "nvls" for bound in adding)
    bounds = adding if inside or not plain else (*adding, *_usual(series, plain))
    within = Scenario(bounds=bounds, nvls=True, title="NVLS on", known_from=_only(bounds))
    if series.nvls is True or not plain:
        return (within,)
    return (without,) if series.nvls is False else (within, without)


def _only(bounds: tuple[Bound, ...]) -> From | None:
    return "only" if len(bounds) == 1 else None


def _usual(series: Series, bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """Return what NCCL takes without NVLink SHARP: over exactly two nodes a tree for all_reduce.

    It moves half of what a ring does there, and every published all_reduce of two nodes is above what a ring could
    carry (p4de, p5, OCI's H100, A3 Mega, Alps, Isambard).
    """
    names = {bound.algorithm for bound in bounds}
    if series.collective == "all_reduce" and series.nodes == _TWO and {"ring", "tree"} <= names:
        return tuple(bound for bound in bounds if bound.algorithm != "ring")
    return bounds
