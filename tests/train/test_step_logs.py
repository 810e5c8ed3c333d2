"""Each program's log: what is read of it is what its lines say."""

import gzip
import random
import re
import statistics
from pathlib import Path

import pytest

from busbw.base.errors import InputError
from busbw.train.reading.bars import ProgressBars

from .reading import SAMPLES, megatron, read_log, read_text

# The sample, its program, how times follow, steps of the window, the pattern of its times, and the factor to seconds.
PRINTED = [
    ("megatron-resumed.log", "Megatron-LM", r"per iteration \(ms\): ([\d.]+)", 1e-3),
    ("nemo-1.log", "NeMo", r"timing in s=([\d.]+)", 1.0),
    ("nemo-2.log", "NeMo", r"timing in s: ([\d.]+)", 1.0),
    ("nemo-dllogger.json", "NeMo", r'step_timing in s": ([\d.]+)', 1.0),
    ("deepspeed-pipeline.log", "DeepSpeed", r"iter time \(s\): ([\d.]+)", 1.0),
    ("maxtext.log", "MaxText", r"seconds: ([\d.]+)", 1.0),
    ("mlperf-steps.log", "MLPerf", r'"train_step_time": ([\d.]+)', 1.0),
]


@pytest.mark.parametrize(("name", "program", "pattern", "factor"), PRINTED)
def test_printed_times_are_read_to_their_last_digit(name: str, program: str, pattern: str, factor: float) -> None:
    log = read_log(SAMPLES / name)

    printed = [float(text) * factor for text in re.findall(pattern, (SAMPLES / name).read_text())]
    assert (log.program, log.basis) == (program, "printed")
    assert log.columns.times_s == pytest.approx(printed)
    assert log.window is not None
    assert log.window.step_s.value == pytest.approx(statistics.median(printed[-log.window.steps :]))


# What the logs were made with: seconds of a step.
MADE = [
    ("deepspeed.log", "rate", 1.98, {}),
    ("torchtitan-8-ranks.log", "stamps", 8192 / 7300, {}),
    ("torchtitan-8-ranks.log", "rate", 8192 / 7300, {"gpus": 8}),
    ("trainer.log", "clock", 1.64, {}),
    ("lightning.log", "clock", 0.8, {}),
    ("metrics.csv", "stamps", 0.8, {}),
    ("mlperf.log", "stamps", 1.5, {}),
]


@pytest.mark.parametrize(("name", "basis", "step_s", "asked"), MADE)
def test_times_that_follow_from_rates_moments_and_bars_hold_the_true_one(
    name: str, basis: str, step_s: float, asked: dict[str, int]
) -> None:
    log = read_log(SAMPLES / name, **asked)

    assert (log.basis, log.outcome) == (basis, "steady")
    assert log.window is not None
    found = log.window.step_s
    assert found.value == pytest.approx(step_s, rel=0.01)
    assert found.low is not None
    assert found.high is not None
    assert found.low - 0.002 * step_s <= step_s <= found.high + 0.002 * step_s


def test_settings_come_from_the_log_and_options_go_before_them() -> None:
    log = read_log(SAMPLES / "megatron-resumed.log")
    other = read_log(SAMPLES / "megatron-resumed.log", gpus=128, flops_per_step=4.27e15 * 1024, peak_tflops=989.0)

    assert (log.work.sequence_length, log.work.global_batch, log.work.gpus) == (8192, 1024, 64)
    assert log.window is not None
    assert log.throughput.tokens_per_s is not None
    assert log.throughput.tokens_per_s.value == pytest.approx(8192 * 1024 / log.window.step_s.value)
    assert other.throughput.tokens_per_s_per_gpu is not None
    assert other.throughput.mfu is not None
    assert other.throughput.tokens_per_s_per_gpu.value == pytest.approx(log.throughput.tokens_per_s.value / 128)
    assert other.throughput.mfu.value == pytest.approx(4.27e15 * 1024 / log.window.step_s.value / 128 / 989e12)
    assert dict(other.work.sources)["gpus"] == "--gpus"


def test_gpus_of_nemo_are_nodes_times_devices() -> None:
    assert read_log(SAMPLES / "nemo-1.log").work.gpus == 512


def test_without_a_batch_step_times_can_be_told_and_throughput_cannot() -> None:
    log = read_log(SAMPLES / "maxtext.log")
    bare = read_log(SAMPLES / "nemo-dllogger.json")

    assert log.throughput.tokens_per_s is not None
    assert bare.throughput.tokens_per_s is None
    assert bare.window is not None
    assert "throughput cannot be told, step times can" in bare.throughput.missing[0]


def test_warm_up_ends_where_the_level_does_and_not_after_a_number_of_steps(tmp_path: Path) -> None:
    draw = random.Random(7)
    slow = [megatron(step, draw.gauss(21000, 50)) for step in range(1, 61)]
    fast = [megatron(step, draw.gauss(18400, 50)) for step in range(61, 200)]

    log = read_text(tmp_path, "".join(slow + fast))

    assert log.window is not None
    assert abs(log.window.first_step - 61) <= 1
    assert log.window.warmup_s == pytest.approx(21.0, rel=0.01)


def test_a_restart_is_found_with_the_steps_that_were_lost_and_the_last_start_counts() -> None:
    log = read_log(SAMPLES / "megatron-resumed.log")

    (again,) = log.restarts
    assert (again.last_step, again.first_step, again.lost) == (40, 31, 10)
    assert log.window is not None
    assert log.window.first_step == 32
    assert {finding.code for finding in log.findings} == {"STEP003", "STEP004"}


def test_steps_of_a_checkpoint_are_long_steps_at_a_fixed_distance() -> None:
    log = read_log(SAMPLES / "megatron-resumed.log")

    assert log.long_steps is not None
    assert (log.long_steps.numbers, log.long_steps.period) == ((40, 60, 80, 100, 120), 20)


def test_ranks_that_print_the_same_steps_in_any_order_are_one_job() -> None:
    log = read_log(SAMPLES / "torchtitan-8-ranks.log")

    assert [each.rank for each in log.ranks] == list(range(8))
    assert log.columns.numbers == tuple(range(2, 41))


def test_ranks_without_labels_are_folded_and_the_slowest_of_a_step_counts(tmp_path: Path) -> None:
    draw = random.Random(5)
    lines = []
    for step in range(1, 41):
        lines += [megatron(step, 18400 + rank) for rank in draw.sample(range(4), 4)]
    # A rank that is late by a step.
    lines[41], lines[45] = lines[45], lines[41]

    log = read_text(tmp_path, "".join(lines))

    assert log.columns.numbers == tuple(range(1, 41))
    assert log.columns.times_s[0] == pytest.approx(18.403)
    assert not log.restarts


def test_a_slow_rank_is_named(tmp_path: Path) -> None:
    lines = [
        f"{rank}: {megatron(step, 18400 * (1.06 if rank == 3 else 1))}" for step in range(1, 31) for rank in range(8)
    ]

    log = read_text(tmp_path, "".join(lines))

    assert [(finding.code, finding.title) for finding in log.findings] == [
        ("STEP006", "rank 3 is slower than the others")
    ]


@pytest.mark.parametrize("other", [{"total": 900}, {"batch": 256}])
def test_two_jobs_by_turns_are_refused(tmp_path: Path, other: dict[str, int]) -> None:
    lines = [megatron(step, 18400) + megatron(step, 9000, **other) for step in range(1, 10)]

    with pytest.raises(InputError, match="two jobs are mixed") as error:
        read_text(tmp_path, "".join(lines))
    assert len(str(error.value).splitlines()) <= 4


def test_two_jobs_at_other_steps_and_two_programs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two jobs are mixed: step 102, then 22, then 103"):
        read_text(tmp_path, "".join(megatron(100 + step, 18400) + megatron(20 + step, 18400) for step in range(9)))
    maxtext = "".join(f"completed step: {step}, seconds: 5.667, TFLOP/s/device: 134.9\n" for step in range(9))
    with pytest.raises(InputError, match="steps of Megatron-LM and of MaxText"):
        read_text(tmp_path, maxtext + "".join(megatron(step, 18400) for step in range(9)))


def test_garbled_lines_are_counted_and_times_of_zero_left_out(tmp_path: Path) -> None:
    lines = [megatron(step, 18400) for step in range(1, 30)]
    lines[10] = megatron(11, 0.0)
    lines[11] = megatron(12, -5.0)
    lines[12] = " iteration       13/ elapsed time per iteration (ms): 18\n"
    lines[13] = megatron(14, 18400).replace("18400.0", "1840٣")

    log = read_text(tmp_path, "".join(lines))

    assert (log.garbled, log.impossible) == (2, 2)
    assert {finding.code: finding.place.line for finding in log.findings if finding.place} == {
        "STEP001": 11,
        "STEP002": 13,
    }
    assert not {11, 12, 13, 14} & set(log.columns.numbers)


def test_compressed_coloured_and_cut_off_logs_are_read(tmp_path: Path) -> None:
    lines = "".join("\x1b[32m" + megatron(step, 18400).replace("\n", "\x1b[0m\r\n") for step in range(1, 30))
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    cut = tmp_path / "cut.log.gz"
    cut.write_bytes(gzip.compress(random.Random(1).randbytes(3000).hex().encode() + b"\n" + lines.encode())[:-40])

    assert read_log(path).columns.numbers == tuple(range(1, 30))
    assert any("not read to its end" in note for note in read_log(cut).notes)


def test_blocks_may_end_anywhere(tmp_path: Path) -> None:
    from busbw.train.reading.reader import StepReader

    content = (SAMPLES / "torchtitan-8-ranks.log").read_bytes()[:20_000] + (
        SAMPLES / "megatron-resumed.log"
    ).read_bytes()
    wanted = None
    for size in (len(content), 997, 61):
        reader = StepReader(source="x")
        for at in range(0, len(content), size):
            reader.feed(content[at : at + size])
        reader.finish()
        rows = [(each.form.program, list(each.numbers), list(each.values), list(each.lines)) for each in reader._rows]
        wanted = wanted or rows
        assert rows == wanted


def test_what_is_no_log_of_steps_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    for text, words in (
        ("nothing\n", "no step of"),
        ("", "no step of"),
        ("elapsed time per iteration (ms): x\n", "none that"),
    ):
        with pytest.raises(InputError, match=words) as error:
            read_text(tmp_path, text)
        assert error.value.hint is not None


def test_a_mean_of_few_digits_has_the_interval_of_its_digits(tmp_path: Path) -> None:
    said = "{{'train_runtime': {}, 'train_samples_per_second': 0.1, 'train_steps_per_second': {}, 'epoch': 1.0}}\n"

    exact = read_text(tmp_path, said.format("2457.0749", "0.132"))
    assert exact.mean_step_s is not None
    few = read_text(tmp_path, said.format("'2115'", "'0.005'"))
    assert few.mean_step_s is not None
    assert (few.mean_step_s.low, few.mean_step_s.high) == (pytest.approx(181.8, abs=0.1), pytest.approx(222.2, abs=0.1))
    assert few.planned_steps is None
    assert "181.8 s to 222.2 s by its digits" in few.sentence


def test_few_steps_are_told_as_they_are(tmp_path: Path) -> None:
    log = read_text(tmp_path, "".join(megatron(step, 18400 + step) for step in range(1, 5)))

    assert log.outcome == "cannot_tell"
    assert log.window is not None
    assert (log.window.step_s.low, log.window.step_s.high) == (pytest.approx(18.401), pytest.approx(18.404))


def test_states_of_a_bar_are_in_the_order_of_the_file_where_its_unit_switches() -> None:
    units = ["1.64s/it", "2.10it/s", "?it/s", "1.20s/it"]
    states = (f"Step:  5%|#  | {n}/400 [{n // 60:02d}:{n % 60:02d}<26:00, {units[n % 4]}]" for n in range(1, 200))
    bars = ProgressBars()

    bars.look("\n".join(states).encode() + b"\n", first_line=7)

    (bar,) = bars.found.values()
    assert bar.states == [(n, n, n + 6) for n in range(1, 200)]


def test_a_slow_end_is_told_and_does_not_take_the_window(tmp_path: Path) -> None:
    draw = random.Random(5)
    steps = [draw.gauss(1390, 5) for _ in range(2000)]
    # As it was seen: some slower steps, and then much slower ones.
    end = [draw.gauss(1500, 5) for _ in range(31)] + [draw.gauss(3700, 10) for _ in range(11)]
    text = "".join(megatron(step, ms) for step, ms in enumerate(steps + end, start=1))

    log = read_text(tmp_path, text)

    assert log.window is not None
    assert log.window.step_s.value == pytest.approx(1.39, rel=0.01)
    assert log.window.last_step == 2000
    (found,) = [each for each in log.findings if each.code == "STEP005"]
    assert "the last 42 lines, from step 2001 on" in found.evidence
    # A level of a tenth, and an end that is faster, are no slow end.
    for last in ([draw.gauss(3700, 10) for _ in range(250)], [draw.gauss(1000, 5) for _ in range(60)]):
        text = "".join(megatron(step, ms) for step, ms in enumerate(steps + last, start=1))
        log = read_text(tmp_path, text)
        assert log.window is not None
        assert log.window.last_step == 2000 + len(last)
        assert log.window.first_step == pytest.approx(2001, abs=2)


def test_events_of_mlperf_without_moments_are_refused_by_that_name(tmp_path: Path) -> None:
    event = ':::MLLOG {{"key": "train_loss", "value": 3.5, "metadata": {{"samples_count": {}}}}}\n'
    with pytest.raises(InputError, match="3 that count steps have no time_ms") as caught:
        read_text(tmp_path, "a line\n" + "".join(event.format(512 * n) for n in range(1, 4)), global_batch=512)
    assert caught.value.where is not None
    assert caught.value.where.endswith(":2")
    # Events that count nothing are no log of steps.
    with pytest.raises(InputError, match="no step of"):
        read_text(tmp_path, ':::MLLOG {"key": "run_start", "value": null}\n')
