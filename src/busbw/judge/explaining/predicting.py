"""What `predict` lets expect of a size of which nothing measured applies: a model, which calls nothing slow.

The closed form knows nodes that are as usual: of a detour, of TCP in place of the fabric, of a loopback, of SHARP, of
symmetric kernels and of MPI it says nothing, so there is no expectation then.
"""

import math
from collections.abc import Sequence

from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.units import format_rate, format_time
from busbw.judge.explaining.expecting import Expectation, Knowledge, regime_of
from busbw.judge.explaining.scenarios import ADDING, Scenario
from busbw.judge.explaining.series import Series, SizeSample
from busbw.judge.explaining.sources import SYMMETRIC
from busbw.model.predict.prediction import PredictedCall
from busbw.model.verdict import Regime
from busbw.predict.closed import predicted
from busbw.predict.machines import CannotTellError, MachineClass, generation_of, generation_of_sm

# Who says which algorithm it was.
_SAID = frozenset({"nccl", "setting"})
# An interval that reaches further below what is predicted would pass nearly everything.
_LEAST_LOW = 0.5


def predictions(known: Knowledge, sample: SizeSample, possible: Sequence[Scenario]) -> list[Expectation | None]:
    """Return what is predicted of a size in each scenario; None where a model says nothing."""
    if not _is_usual(known.series) or sample.algorithm == SYMMETRIC:
        return [None for _ in possible]
    return [_prediction(known, sample, scenario) for scenario in possible]


def _is_usual(series: Series) -> bool:
    """Whether a series took the way that is modelled, as far as anybody says."""
    is_own_way = series.detour is None and series.network in (None, "fabric")
    return series.library == "nccl" and is_own_way and not series.sharp


def _prediction(known: Knowledge, sample: SizeSample, scenario: Scenario) -> Expectation | None:
    series, machine = known.series, _machine(known, scenario)
    if machine is None or series.nodes is None or machine.rates.gpus * series.nodes != series.ranks:
        return None
    try:
        call = _call(machine, series, sample.size_bytes, scenario.algorithms)
        if call is None or call.low_Bps < _LEAST_LOW * call.busbw_Bps:
            return None
        twice = _call(machine, series, 2 * sample.size_bytes, (call.algorithm,))
    except (CannotTellError, InputError):
        return None
    slope = math.log2(twice.busbw_Bps / call.busbw_Bps) if twice is not None else 0.0
    regime = regime_of(series, sample.size_bytes, slope)
    if regime == "latency" and call.algorithm in ADDING and scenario.known_from not in _SAID:
        # NCCL leaves the switch's adders to larger messages.
        return None
    # What a setting or a log leaves of the machine may bound it lower.
    busbw_Bps = min(call.busbw_Bps, scenario.ceiling_Bps)
    return Expectation(
        scenario=scenario,
        busbw_Bps=busbw_Bps,
        sound_Bps=min(call.low_Bps, busbw_Bps),
        slow_Bps=None,
        time_s=series.factor * sample.size_bytes / busbw_Bps,
        regime=regime,
        basis="model",
        words=_words(call, regime),
        source=(f"constants fitted to {', '.join(call.documents)} (docs/method-predicting.md)",),
        is_predicted=True,
    )


def _machine(known: Knowledge, scenario: Scenario) -> MachineClass | None:
    """Return the machine as the constants see it; None where its rates or its kind of GPUs are not known."""
    rates, named = known.rates, known.known_machine
    if rates is None or not rates.gpus:
        return None
    sm = named.sm(known.series)
    if named.platform is not None and named.hardware is None:
        generation = generation_of(named.platform)
    else:
        generation = generation_of_sm(sm, is_rack=rates.domain_gpus is not None)
        if generation is None:
            return None
    nvls = False if scenario.nvls is False else rates.nvls
    return MachineClass(
        name=rates.name or "",
        rates=structs.replace(rates, nvls=nvls, sharp=False),
        generation=generation,
        fabric=named.fabric,
        sm=sm,
    )


def _call(machine: MachineClass, series: Series, size_bytes: int, algorithms: Sequence[str]) -> PredictedCall | None:
    """Return what is predicted by one of these algorithms: of several the one that is predicted to be used.

    Raises InputError and CannotTellError as `predicted`.
    """
    one = algorithms[0] if len(algorithms) == 1 else None
    found = predicted(
        machine, nodes=series.nodes or 1, collective=series.collective, size_bytes=size_bytes, algorithm=one
    )
    return next((call for call in found if call.algorithm in algorithms), None)


def _words(call: PredictedCall, regime: Regime) -> str:
    """Return who says so: a model, by which algorithm, with its interval, in the unit that the size is judged by."""
    if regime == "latency":
        ends = [call.time_s * call.busbw_Bps / rate_Bps for rate_Bps in (call.high_Bps, call.low_Bps)]
        low, high = (format_time(end_s) for end_s in ends)
    else:
        low, high = format_rate(call.low_Bps), format_rate(call.high_Bps)
    further = f"; extrapolated: {'; '.join(call.extrapolated)}" if call.extrapolated else ""
    return f"by a model: {call.algorithm}, {call.kinship}, 90 % within {low} to {high}{further}"
