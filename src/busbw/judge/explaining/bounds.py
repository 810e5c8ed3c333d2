"""What each algorithm that may have been used can carry at most on the nodes of a series."""

from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.units import format_rate
from busbw.judge.explaining.series import Series
from busbw.limits.ceiling import ceiling
from busbw.model.limit import Bound, Line, NodeRates

# Ways of NCCL that are one kernel over memory that all GPUs see: bound by the links alone.
_LEAST = "any"


def bounds(rates: NodeRates | None, series: Series) -> tuple[tuple[Bound, ...], str | None]:
    """Return the bound of each algorithm that may be used, and why there is none where there is none."""
    if rates is None:
        return (), "the rates of this machine are not known"
    if series.nodes is None:
        return (), "on how many nodes it ran is not known"
    if series.network == "loopback" and series.nodes == 1:
        return _loopback(rates, series)
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


def _loopback(rates: NodeRates, series: Series) -> tuple[tuple[Bound, ...], str | None]:
    nic = rates.nic
    if nic is None or not rates.ports or not rates.gpus:
        return (), "not known: the number of NIC ports and their rate"
    each_Bps = nic.rate_Bps * rates.ports / rates.gpus
    seen = next((seen for seen in rates.attained if seen.part == "nic"), None)
    attained_Bps = each_Bps * seen.share if seen is not None else None
    line = Line(
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
