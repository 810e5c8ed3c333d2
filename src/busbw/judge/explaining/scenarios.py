"""Which algorithms NCCL may have used at a size: what it says, what settings allow, what it takes by default.

Where nobody says whether NVLink SHARP was on there are two scenarios, with it and without. Each is judged by itself.
"""

from dataclasses import dataclass
from typing import Literal

from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.units import format_rate
from busbw.judge.explaining.series import Series, SizeSample
from busbw.judge.explaining.sources import SYMMETRIC
from busbw.limits.ceiling import ceiling
from busbw.limits.message_rate import NAME as MESSAGE_RATE
from busbw.limits.message_rate import pairs_bound
from busbw.model.limit import Bound, LimitLine, NodeRates

# Ways of NCCL that are one kernel over memory that all GPUs see: bound by the links alone.
_LEAST = "any"


def bounds(rates: NodeRates | None, series: Series) -> tuple[tuple[Bound, ...], str | None]:
    """Return the bound of each algorithm that may be used, and why there is none where there is none."""
    if rates is None or series.nodes is None:
        return (
            (),
            "the rates of this machine are not known" if rates is None else "on how many nodes it ran is not known",
        )
    if series.network == "loopback" and series.nodes == 1:
        return _loopback(rates, series)
    if series.collective == MESSAGE_RATE:
        return _of_pairs(rates, series)
    try:
        found = ceiling(_as_said(rates, series), nodes=series.nodes, collective=series.collective).bounds
    except InputError as error:
        return (), error.cause
    allowed = tuple(each for each in found if not series.algorithms or each.algorithm in series.algorithms)
    if series.algorithms and not allowed:
        allowed = tuple(bound for name in series.algorithms if (bound := bound_named(rates, series, name)) is not None)
    known = tuple(each for each in allowed if each.busbw_Bps is not None)
    if known:
        return known, None
    missing = dict.fromkeys(words for each in allowed for words in each.missing)
    return (), f"not known: {', '.join(missing)}" if missing else "no algorithm with a bound is allowed"


def bound_named(rates: NodeRates, series: Series, algorithm: str) -> Bound | None:
    """Return the bound of one algorithm, whether or not a library would choose it; None where it has none here."""
    try:
        limit = ceiling(rates, nodes=series.nodes or 1, collective=series.collective, algorithm=algorithm)
    except InputError:
        return None
    return next((each for each in limit.bounds if each.busbw_Bps is not None), None)


def least_bound(rates: NodeRates, series: Series) -> Bound | None:
    """Return the bound that holds whatever the algorithm, unless a switch adds."""
    return bound_named(rates, series, _LEAST)


def _as_said(rates: NodeRates, series: Series) -> NodeRates:
    """Return the rates with what is said of switches that add; SHARP is off in NCCL until it is switched on."""
    return structs.replace(
        rates,
        nvls=rates.nvls if series.nvls is None else series.nvls and rates.nvls is not False,
        sharp=bool(series.sharp),
    )


def _of_pairs(rates: NodeRates, series: Series) -> tuple[tuple[Bound, ...], str | None]:
    bound = _of_messages(rates, series, None)
    if bound is None:
        within = "within one node no NIC is passed"
        return (), within if series.nodes == 1 else "not known: the number of NIC ports and their rate"
    return (bound,), None


def _of_messages(rates: NodeRates, series: Series, size_bytes: int | None) -> Bound | None:
    """Return the bound of one pair among all of them; of small messages their number decides, which needs a size."""
    return pairs_bound(rates, nodes=series.nodes or 1, pairs=max(1, series.ranks // 2), size_bytes=size_bytes)


def _loopback(rates: NodeRates, series: Series) -> tuple[tuple[Bound, ...], str | None]:
    nic = rates.nic
    if nic is None or not rates.ports or not rates.gpus:
        return (), "not known: the number of NIC ports and their rate"
    each_Bps = nic.rate_Bps * rates.ports / rates.gpus
    seen = next((seen for seen in rates.attained if seen.part == "nic"), None)
    attained_Bps = each_Bps * seen.share if seen is not None else None
    line = LimitLine(
        part="nic",
        formula="busbw <= k B / g",
        figures=f"{rates.ports} x {nic.figures} / {rates.gpus} = {format_rate(each_Bps)}",
        busbw_Bps=each_Bps,
        attained_Bps=attained_Bps,
        attained_words=seen.words if seen is not None else None,
        limits=True,
    )
    bound = Bound(
        collective=series.collective,
        algorithm="ring",
        why="each GPU sends f S bytes to the next through the NICs that are its own",
        source=nic.source,
        lines=(line,),
        busbw_Bps=each_Bps,
        algbw_Bps=each_Bps / series.factor,
        attained_Bps=attained_Bps,
        limited_by="nic",
    )
    return (bound,), None


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
    series: Series, sample: SizeSample, rates: NodeRates | None, found: tuple[Bound, ...]
) -> tuple[Scenario, ...]:
    """Return the scenarios of a size; `found` holds the bounds of the series. () where nothing has a bound."""
    if rates is not None and sample.algorithm is not None and series.network != "loopback":
        return _said_by_nccl(series, sample.algorithm, rates)
    if not found:
        return ()
    if series.collective == MESSAGE_RATE and rates is not None:
        bound = _of_messages(rates, series, sample.size_bytes)
        found = (bound,) if bound is not None else found
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
