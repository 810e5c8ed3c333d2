"""Lines that repeat are read in the core as each of them is read by itself: the same steps, settings and complaints."""

import random
import re
from collections.abc import Iterator
from itertools import chain
from re import _constants, _parser  # type: ignore[attr-defined]

import pytest

from busbw.train.reading import bars, learned_lines, lines, mllog, reader, settings_lines, step_forms
from busbw.train.reading.reader import StepReader

from .releases import RELEASES, log_of

COLUMNS = (
    *("numbers", "values", "lines", "ranks", "stamps", "totals", "batches", "consumed"),
    *("tflops", "mfu", "tokens", "samples", "waited"),
)
# The digits of the first thousand values are looked at one by one.
STEPS = 1300
OTHERS = (
    "NCCL INFO Channel 07/24 : 3[3] -> 4[4] via P2P/CUMEM",
    "  seq_length ............... 8192",
    "elapsed time per iteration (ms): torn",
    ':::MLLOG {"key": "train_loss", "time_ms": 12.5, "value": 3.1, "metadata": {"samples_count": 512, "epoch": 01}}',
    ':::MLLOG {"key": "eval_start", "time_ms": 1250, "metadata": {"step_num": 7}}',
    "Validation:  50%|##  | 5/10 [00:05<00:05,  1.00s/it]",
    "Epoch 3:  50%|##  | 50/100 [01:00<00:05,  1.25it/s, loss=0.25]",
    "\x1b[32mnothing\x1b[0m",
)
BAR = "[rank1]: Epoch {epoch}:  50%|#####     | {step}/600 [{minute:02d}:{second:02d}<26:00,  1.64s/it, loss=1.5]"


def _said(log: bytes) -> tuple[dict[str, str], int]:
    """Return all that a reader knows of a log, and how many lines it read as known ones."""
    read = StepReader(source="x")
    for at in range(0, len(log), 50_001):
        read.feed(log[at : at + 50_001])
    read.finish()
    rows = (read.events.rows(512) or (read.rows(),)) if b"MLLOG" in log else (read.rows(),)
    said = {name: [repr(list(getattr(each.complete(), name))) for each in rows if each] for name in COLUMNS}
    said["more"] = [repr((each.decimals, each.rounding_s)) for each in rows if each]
    said["rest"] = [repr((read.garbled(), read.settings, read.mean, read.bars.found, read.lines.lines))]
    said["rest"] += [repr((read.events.events, read.events.garbled, list(read.tflops)))]
    return {name: "\n".join(texts) for name, texts in said.items()}, read.learned.taken


def _as_line_by_line(log: bytes, patch: pytest.MonkeyPatch) -> int:
    """Assert that a log is read as it is without learning, and return how many lines were known."""
    said, taken = _said(log)
    with patch.context() as without:
        without.setattr(learned_lines, "LONGEST_LINE_BYTES", 0)
        assert _said(log) == (said, 0)
    return taken


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_says_the_same_when_its_lines_are_learned(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = log_of(release, STEPS).splitlines()
    alone = "".join(f"{line}\n" for line in steps)
    draw = random.Random(release)
    ranks = "".join(f"[rank{draw.randrange(12)}]: {line}\n{draw.choice(OTHERS)}\n" for line in steps)

    assert _as_line_by_line(ranks.encode(), monkeypatch) > 50
    assert _as_line_by_line(alone.replace("\n", "\r").encode(), monkeypatch) > 50
    _as_line_by_line(_garbled(ranks.encode(), draw), monkeypatch)


def test_bars_say_the_same_when_their_lines_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [
        BAR.format(epoch=step // 600, step=step % 600, minute=step // 60 % 60, second=step % 60)
        for step in range(1, 1500)
    ]
    for end in ("\n", "\r"):
        assert _as_line_by_line(end.join([*states, ""]).encode(), monkeypatch) > 1000


def _garbled(log: bytes, draw: random.Random) -> bytes:
    torn = bytearray(log)
    for _ in range(300):
        at = draw.randrange(len(torn) - 40)
        torn[at : at + draw.choice((0, 0, 1, 30))] = draw.choice(
            (b"\r", b"\x1e", b"\n", b"\x1b[3", b",", b".", b"-", b"nan", b"e+99", b"0", b"", b"\xff", b"7")
        )
    return bytes(torn)


def test_lines_with_a_setting_or_torn_ones_are_never_learned() -> None:
    log = "  seq_length ............... {}\niteration 1/ 5 | elapsed time per iteration (ms): torn {} |\n"
    read = StepReader(source="x")
    read.feed("".join(log.format(1000 + n, n % 9) for n in range(5)).encode())

    assert read.learned.taken == 0
    assert read.garbled()[0] == 5
    assert list(read.settings.found["sequence_length"]) == [1000 + n for n in range(5)]


def _codes(tree: object) -> Iterator[tuple[object, object]]:
    for code, argument in tree:  # type: ignore[attr-defined]
        yield code, argument
        for part in argument if isinstance(argument, tuple | list) else (argument,):
            if isinstance(part, _parser.SubPattern):
                yield from _codes(part)
            elif isinstance(part, list):
                yield from chain.from_iterable(
                    _codes(each) if isinstance(each, _parser.SubPattern) else [each] if isinstance(each, tuple) else []
                    for each in part
                )


def test_no_reader_tells_one_digit_from_another() -> None:
    patterns = [pattern for form in step_forms.STEP_FORMS for pattern in form.patterns]
    for module in (bars, lines, mllog, reader, settings_lines, step_forms):
        patterns += [value for value in vars(module).values() if isinstance(value, re.Pattern)]
    patterns += [form.pattern for form in settings_lines._FORMS]
    assert len(patterns) > 30
    for pattern in patterns:
        for code, argument in _codes(_parser.parse(pattern.pattern.replace(b"zeros>0*", b"zeros>z*"), pattern.flags)):
            if code in (_constants.LITERAL, _constants.NOT_LITERAL):
                assert not chr(argument).isdigit(), pattern.pattern  # type: ignore[arg-type]
            elif code is _constants.RANGE:
                low, high = argument  # type: ignore[misc]
                assert high < ord("0") or low > ord("9") or (low, high) == (ord("0"), ord("9")), pattern.pattern
    marks = [*(form.mark for form in step_forms.STEP_FORMS), *settings_lines.MARKS, *bars.MARKS, mllog.MARK]
    assert not [mark for mark in marks if re.search(rb"\d", mark)]
