"""What each input of a prediction is worth: the call again with that input a tenth less, and a tenth more."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from msgspec import structs

from busbw.facts.predictor import predictor_constants
from busbw.model.predict.prediction import InputWorth, Narrower, PredictedCall, PredictorConstants, Sensitivity
from busbw.predict.closed import exchange_of, predicted, scope_of
from busbw.predict.intervals import band_of, reach_of, stretch_of
from busbw.predict.machines import CannotTellError, MachineClass

_CHANGE = 0.1
# Less than this share of the result is nothing.
_LEAST = 5e-4
_RATES = {
    "nvlink": "rate of a GPU's links",
    "pair": "rate of the links of two GPUs",
    "slot": "rate of a GPU's slot",
    "nic_slot": "rate of a NIC's slot",
    "nic": "rate of a NIC",
}

# The bus bandwidth with an input multiplied by a factor.
Varied = Callable[[float], float]


def sensitivity_of(machine: MachineClass, call: PredictedCall, collective: str) -> Sensitivity:
    """Return what each input is worth for a call, by the same algorithm; inputs that change nothing are left out."""
    inputs = []
    for name, is_fitted, varied in _inputs(machine, call, collective, predictor_constants()):
        less_Bps, more_Bps = varied(1 - _CHANGE), varied(1 + _CHANGE)
        if max(abs(less_Bps - call.busbw_Bps), abs(more_Bps - call.busbw_Bps)) > _LEAST * call.busbw_Bps:
            inputs.append(InputWorth(name=name, is_fitted=is_fitted, less_Bps=less_Bps, more_Bps=more_Bps))
    return Sensitivity(
        nodes=call.nodes,
        size_bytes=call.size_bytes,
        busbw_Bps=call.busbw_Bps,
        change=_CHANGE,
        inputs=tuple(sorted(inputs, key=lambda each: -abs(each.more_Bps - each.less_Bps))),
    )


def _inputs(
    machine: MachineClass, call: PredictedCall, collective: str, constants: PredictorConstants
) -> Iterator[tuple[str, bool, Varied]]:
    """Yield the name of each input, whether it is fitted, and what it makes of the call."""

    def counted(changed: MachineClass, known: PredictorConstants, size_bytes: int) -> float:
        return predicted(
            changed, nodes=call.nodes, collective=collective, size_bytes=size_bytes, algorithm=call.algorithm,
            constants=known,
        )[0].busbw_Bps  # fmt: skip

    # Cells of the machine itself shift both alike.
    shift = call.busbw_Bps / counted(machine, constants, call.size_bytes)

    def again(changed: MachineClass, known: PredictorConstants, size_bytes: int = call.size_bytes) -> float:
        return shift * counted(changed, known, size_bytes)

    for field, title in _RATES.items():
        if getattr(machine.rates, field) is not None:
            yield title, False, partial(_by_rate, again, machine, constants, field)
    yield (
        "size of the message",
        False,
        lambda factor: again(machine, constants, max(1, round(call.size_bytes * factor))),
    )
    # NCCL's own numbers and what a network adds to them are one sum in the time.
    yield (
        "time of a few bytes",
        True,
        lambda factor: call.busbw_Bps * call.time_s / (call.time_s + (factor - 1) * call.latency_s),
    )
    yield "what a stage of a tree holds", True, lambda factor: again(machine, _with_chunk(constants, factor))
    yield "filling of the pipeline in a node", True, lambda factor: again(machine, _with_full(constants, factor))
    yield "what channels of sends carry", True, lambda factor: again(machine, _with_send(constants, factor))
    yield "cost of a rank's own part", True, lambda factor: again(machine, _with_own(constants, factor))


def _by_rate(
    again: Callable[[MachineClass, PredictorConstants], float],
    machine: MachineClass,
    constants: PredictorConstants,
    field: str,
    factor: float,
) -> float:
    return again(_with_rate(machine, field, factor), constants)


def _with_rate(machine: MachineClass, field: str, factor: float) -> MachineClass:
    rate = getattr(machine.rates, field)
    faster = structs.replace(rate, rate_Bps=rate.rate_Bps * factor)
    return replace(
        machine, name=f"{machine.name}, {field} x {factor:g}", rates=structs.replace(machine.rates, **{field: faster})
    )


def _with_chunk(constants: PredictorConstants, factor: float) -> PredictorConstants:
    if constants.chunk is None:
        return constants
    return structs.replace(constants, chunk=structs.replace(constants.chunk, chunks=constants.chunk.chunks * factor))


def _with_full(constants: PredictorConstants, factor: float) -> PredictorConstants:
    curves = tuple(structs.replace(curve, full_s=curve.full_s * factor) for curve in constants.curve)
    send = tuple(structs.replace(row, full_s=row.full_s * factor) for row in constants.send)
    return structs.replace(constants, curve=curves, send=send)


def _with_send(constants: PredictorConstants, factor: float) -> PredictorConstants:
    send = tuple(
        structs.replace(row, simple_Bps=row.simple_Bps * factor, ll_Bps=row.ll_Bps * factor) for row in constants.send
    )
    return structs.replace(constants, send=send)


def _with_own(constants: PredictorConstants, factor: float) -> PredictorConstants:
    own = tuple(structs.replace(row, s_per_byte=row.s_per_byte * factor) for row in constants.own)
    return structs.replace(constants, own=own)


def narrower_of(machine: MachineClass, call: PredictedCall, collective: str) -> Narrower | None:
    """Return what one measured size on as many nodes would leave of the interval; None: no document was so used."""
    left_out = predictor_constants().left_out
    try:
        band, scope = band_of(call.size_bytes), scope_of(machine, call.nodes)
        reach, _ = reach_of(left_out, band, "calibrated", scope, exchange_of(collective))
    except CannotTellError:
        return None
    reach *= stretch_of(call.loose)
    low_Bps = call.busbw_Bps * math.exp(-reach)
    high_Bps = min(call.busbw_Bps * math.exp(reach), call.bound_Bps)
    return Narrower(
        nodes=call.nodes,
        size_bytes=call.size_bytes,
        half_width=(call.high_Bps - call.low_Bps) / 2 / call.busbw_Bps,
        calibrated_half_width=(high_Bps - low_Bps) / 2 / call.busbw_Bps,
    )
