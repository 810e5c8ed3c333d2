r"""The lines that training programs print of a step, one declaration for each form, with where it is printed.

Megatron-LM: `training_log` of megatron/training/training.py prints ` iteration 10/ 500 | ... elapsed time per
iteration (ms): 18402.1 |`, the mean since the last such line; GPT-NeoX, Megatron-DeepSpeed and GLM print it too,
AMD's Primus with a running mean behind a stroke.

NeMo: 1.x in its progress bar, `train_step_timing in s=18.40`; 2.x in
nemo/lightning/pytorch/callbacks/progress_printer.py, `global_step: 99 | ... train_step_timing in s: 18.4`; its
DLLogger one JSON object a step.

DeepSpeed: `ThroughputTimer.stop` of deepspeed/utils/timer.py, `global_step=10, RunningAvgSamplesPerSec=...,
CurrSamplesPerSec=...`, up to 0.7 `0/10, RunningAvg...`, up to 0.5 `0/10, SamplesPerSec=...`;
`PipelineEngine.train_batch` of deepspeed/runtime/pipe/engine.py,
`steps: 10 loss: ... iter time (s): 3.221 samples/sec: 19.87`.

torchtitan: `MetricsProcessor.log` of torchtitan/components/metrics.py, `step: 10 loss: ... tps: 7,282 tflops: 0.52
mfu: 0.17%`, where tps is tokens a second of one GPU; in 2024 it was called wps.

MaxText: src/maxtext/common/metric_logger.py, `completed step: 9, seconds: 5.667, TFLOP/s/device: 134.924,
Tokens/s/device: 8672.758`; in 2023 `TFLOP/s:`.

busbw's own transformer (busbw/rank/training/program.py): `busbw proxy step 3/20 | step time (ms): 107.104898 |
communication (ms): 42.457993 | loss: 6.058447 | ...`, where communication is what the rank waited for.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

# A number that a program prints: what else stands there is garbled. Digits are ASCII in patterns of bytes.
_NUMBER = rb"[-+]?(?:\d{1,18}(?:\.\d{0,24})?(?:[eE][-+]?\d{1,3})?|nan|inf)"
# moment: the values say nothing, the stamps do. clock: the elapsed time of a bar over its steps.
Unit = Literal["ms", "s", "samples/s", "tokens/s/GPU", "moment", "clock"]


ZEROS = ("zeros", "more_zeros")


@dataclass(frozen=True, kw_only=True, slots=True)
class StepForm:
    """One kind of line. Patterns have the groups step and value, and may have those of `more`.

    None of them tells one digit from another, but that a group of `ZEROS` has nothing else: so a line that differs from
    another in its digits alone says the same of other numbers (`learned_lines`).
    """

    program: str
    # A text that stands in each such line and hardly anywhere else.
    mark: bytes
    patterns: tuple[re.Pattern[bytes], ...]
    unit: Unit
    # Columns of `StepRows` that its patterns have as groups.
    more: tuple[str, ...] = ()
    # How the time of a step follows, in a sentence.
    words: str = ""
    # Whether its numbers are filled up with zeros to five characters, as the bars of Lightning do: 68.7 is 68.70 there.
    is_padded: bool = False
    # Whether the moment in front of the line is kept too.
    has_stamp: bool = False
    # Of several forms in one log the largest counts: the others are said by libraries below the program.
    weight: int = 2


def _up_to(text: bytes) -> bytes:
    """Return a pattern of all that stands on a line before `text`: each place is looked at once, and none again."""
    first, rest = re.escape(text[:1]), re.escape(text[1:])
    return rb"[^%b\n]*+(?:%b(?!%b)[^%b\n]*+)*+" % (first, first, rest, first)


# Patterns begin with a text that is looked for as such: with a choice each place of a log is tried.
_MEGATRON_STEP = (
    rb"iteration[ \t]{1,20}(?P<step>\d{1,12})/[ \t]{0,20}(?:(?P<totals>\d{1,12})|infinity) \|"
    rb"(?:[ \t]{0,20}consumed samples:[ \t]{1,20}(?P<consumed>\d{1,18}) \|)?"
    + _up_to(b"elapsed time per iteration (ms): ")
    + rb"elapsed time per iteration \(ms\): (?P<value>"
    + _NUMBER
    + rb")"
)
_MEGATRON_RATE = rb"\| throughput per GPU \(TFLOP/s/GPU\): (?P<tflops>" + _NUMBER + rb")"
# Field by field, wherever it stands.
_MEGATRON_BATCH = (
    rb"(?:[^|\n]*+(?:\|(?! global batch size:)[^|\n]*+)*+\| global batch size:[ \t]{1,20}(?P<batches>\d{1,9}))?"
)
_MEGATRON = re.compile(_MEGATRON_STEP + rb"(?=[ |\n]|$)[ \t]{0,20}(?:" + _MEGATRON_RATE + rb")?" + _MEGATRON_BATCH)
# With a running mean behind a stroke, and other fields before the rate.
_PRIMUS = re.compile(
    _MEGATRON_STEP
    + rb"(?=/)(?=[^|\n]*+(?:\|(?! throughput per GPU)[^|\n]*+)*+(?:"
    + _MEGATRON_RATE
    + rb")?)"
    + _MEGATRON_BATCH
)
_NEMO = re.compile(
    rb"global_batch_size: (?P<batches>\d{1,9}) \| global_step: (?P<step>\d{1,12}) \|"
    + _up_to(b"train_step_timing in s: ")
    + rb"train_step_timing in s: (?P<value>"
    + _NUMBER
    + rb")(?=[\s|]|$)"
)
_NEMO_BY_NAME = re.compile(
    rb'global_step"?[:=]\s?(?P<step>\d{1,12})(?:\.(?P<zeros>0*))?(?=[, |])'
    rb'(?:[,|] ?"?consumed_samples"?[:=]\s?(?P<consumed>\d{1,18})(?:\.(?P<more_zeros>0*))?(?=[,\s|]))?'
    + _up_to(b"train_step_timing in s")
    + rb'train_step_timing in s"?[:=]\s?(?P<value>'
    + _NUMBER
    + rb")(?=[\s,\]|}]|$)"
)
_NEMO_BAR = re.compile(
    rb"[ |](?P<step>\d{1,12})/(?P<totals>\d{1,12}) \[[^\n]{0,2000}?"
    rb"train_step_timing in s=(?P<value>" + _NUMBER + rb")(?=[\s,\]]|$)"
)
_DEEPSPEED_RATES = (
    rb"(?P<step>\d{1,12}), RunningAvgSamplesPerSec=[^,\n]{1,40}, "
    rb"CurrSamplesPerSec=(?P<value>" + _NUMBER + rb")(?=[,\s]|$)"
)
_DEEPSPEED = re.compile(rb"global_step=" + _DEEPSPEED_RATES)
# Up to 0.7; and up to 0.5, which print nothing but the mean since the start of the job.
_DEEPSPEED_OLD = re.compile(rb"\] \d{1,9}/" + _DEEPSPEED_RATES)
_DEEPSPEED_MEANS = re.compile(rb"\] \d{1,9}/(?P<step>\d{1,12}), SamplesPerSec=(?P<value>" + _NUMBER + rb")(?=[,\s]|$)")
_DEEPSPEED_PIPE = re.compile(
    rb"step(?:s?):\s{1,6}(?P<step>\d{1,12})(?:\s{1,3}/\s{1,6}(?P<totals>\d{1,12}))? loss:"
    + _up_to(b"iter time (s): ")
    + rb"iter time \(s\): (?P<value>"
    + _NUMBER
    + rb")(?: samples/sec: (?P<samples>"
    + _NUMBER
    + rb"))?"
)
_TITAN = re.compile(
    rb"step:\s{0,12}(?P<step>\d{1,12})\s{1,4}loss:"
    # tps, in 2024 wps.
    rb"[^s\n]*+(?:s(?<! [tw]ps)[^s\n]*+)*+s: (?P<value>\d[\d,]{0,20}(?:\.\d{0,9})?)(?=\s|$)"
    rb"(?:\s{1,4}tflops: (?P<tflops>\d[\d,]{0,12}(?:\.\d{0,9})?))?(?:\s{1,4}mfu: (?P<mfu>\d{1,4}(?:\.\d{0,9})?)%)?"
)
_MAXTEXT = re.compile(
    rb"completed step: (?P<step>\d{1,12}), seconds: (?P<value>" + _NUMBER + rb")(?=[,\s]|$)"
    rb"(?:[^\n]{0,80}?TFLOP/s(?:/device)?: (?P<tflops>" + _NUMBER + rb"))?"
    rb"(?:, Tokens/s/device: (?P<tokens>" + _NUMBER + rb"))?"
)
_PROXY = re.compile(
    rb"busbw proxy step (?P<step>\d{1,12})/(?P<totals>\d{1,12}) \| step time \(ms\): (?P<value>" + _NUMBER + rb") \|"
    rb" communication \(ms\): (?P<waited>" + _NUMBER + rb")(?= \|)"
)
STEP_FORMS = (
    StepForm(
        program="Megatron-LM",
        mark=b"elapsed time per iteration (ms): ",
        more=("totals", "batches", "consumed", "tflops"),
        patterns=(_MEGATRON, _PRIMUS),
        unit="ms",
        words="elapsed time per iteration, as printed",
        weight=3,
    ),
    StepForm(
        program="NeMo",
        mark=b"train_step_timing in s",
        more=("totals", "batches", "consumed"),
        patterns=(_NEMO, _NEMO_BY_NAME, _NEMO_BAR),
        unit="s",
        words="train_step_timing, as printed",
        is_padded=True,
        weight=3,
    ),
    StepForm(
        program="MaxText",
        mark=b"completed step: ",
        more=("tflops", "tokens"),
        patterns=(_MAXTEXT,),
        unit="s",
        words="seconds of a step, as printed",
        weight=3,
    ),
    StepForm(
        program="torchtitan",
        mark=b" tps: ",
        more=("tflops", "mfu"),
        patterns=(_TITAN,),
        unit="tokens/s/GPU",
        words="tokens of a step over tps and GPUs",
        has_stamp=True,
        weight=3,
    ),
    StepForm(
        program="torchtitan",
        mark=b" wps: ",
        more=("tflops", "mfu"),
        patterns=(_TITAN,),
        unit="tokens/s/GPU",
        words="tokens of a step over wps and GPUs",
        has_stamp=True,
        weight=3,
    ),
    StepForm(
        program="busbw train proxy",
        mark=b"busbw proxy step ",
        more=("totals", "waited"),
        patterns=(_PROXY,),
        unit="ms",
        words="step time, as printed",
        weight=3,
    ),
    StepForm(
        program="DeepSpeed",
        mark=b"iter time (s): ",
        more=("totals", "samples"),
        patterns=(_DEEPSPEED_PIPE,),
        unit="s",
        words="iter time of the pipeline engine, as printed",
    ),
    StepForm(
        program="DeepSpeed",
        mark=b"CurrSamplesPerSec=",
        patterns=(_DEEPSPEED, _DEEPSPEED_OLD),
        unit="samples/s",
        words="global batch over CurrSamplesPerSec",
        has_stamp=True,
        weight=1,
    ),
    StepForm(
        program="DeepSpeed",
        mark=b", SamplesPerSec=",
        patterns=(_DEEPSPEED_MEANS,),
        unit="moment",
        words="moments of lines over the steps between",
        has_stamp=True,
        weight=1,
    ),
)
_LONGEST_BEFORE_STAMP = 90
# lightning/pytorch/callbacks/progress/tqdm_progress.py, `_PAD_SIZE`.
_PADDED_CHARACTERS = 5
_STAMP = re.compile(rb"^[^\n]{0,%d}?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d):(\d\d[.,]\d{1,6})" % _LONGEST_BEFORE_STAMP)
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def stamp_of(line: bytes) -> float:
    """Return the moment in front of a line, in seconds of the calendar; NaN: there is none.

    Only moments with parts of a second count.
    """
    found = _STAMP.search(line)
    start = _minute_s(found[1]) if found is not None else None
    if found is None or start is None:
        return float("nan")
    # As 105.123 for 05.123: the core reads it so too.
    return start + float(b"1" + found[2].replace(b",", b".")) - 100.0 or float("nan")


def stamp_span(line: bytes) -> tuple[int, int] | None:
    """Return where in a line its moment stands; None: nowhere."""
    found = _STAMP.search(line)
    return None if found is None else (found.start(1), found.end(2))


@lru_cache(maxsize=64)
def _minute_s(text: bytes) -> float | None:
    """Return the moment at which a minute begins, as `2026-11-21 12:34`; None: there is no such month."""
    year, month, day, hour, minute = (int(text[at:end]) for at, end in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16)))
    if not 1 <= month <= 12:
        return None
    leap = (year - (month < 3)) // 4 - (year - (month < 3)) // 100 + (year - (month < 3)) // 400
    days = year * 365 + leap + _DAYS_BEFORE[month - 1] + day
    return days * 86_400.0 + hour * 3600 + minute * 60


def decimals(text: bytes, *, is_padded: bool = False) -> int:
    """Return how many digits stand behind the point, those of an exponent and of padding taken off."""
    # Three digits count: a zero after them fills up.
    if is_padded and len(text) == _PADDED_CHARACTERS and text.endswith(b"0") and text[:1] != b"0":
        text = text[:-1]
    mantissa, _, exponent = text.lower().partition(b"e")
    return len(mantissa.partition(b".")[2]) - (int(exponent) if exponent else 0)
