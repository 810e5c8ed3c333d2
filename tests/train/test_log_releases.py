"""Releases of each program, some years apart: the same steps are read, line by line and in whole blocks."""

from pathlib import Path

import pytest

from busbw.base.errors import InputError
from busbw.train.reading.reader import StepReader

from .reading import megatron, read_text
from .releases import RELEASES, log_of

STEPS = 60


@pytest.mark.parametrize("release", RELEASES)
def test_steps_are_those_that_were_printed(release: str, tmp_path: Path) -> None:
    log = read_text(tmp_path, log_of(release, STEPS), global_batch=512, sequence_length=8192, gpus=64)

    assert log.program == RELEASES[release][0]
    assert log.garbled == 0
    assert log.columns.numbers == tuple(range(1, STEPS + 1))
    # Rates have three digits behind the point, or none.
    assert log.columns.times_s == pytest.approx([20.48 + number % 7 * 1e-3 for number in range(1, STEPS + 1)], rel=2e-4)
    printed = log.throughput.printed_flops_per_gpu
    if "375" in log_of(release, 1):
        assert printed == pytest.approx(1375.2e12 if "1,375" in log_of(release, 1) else 375e12, rel=1e-2)


@pytest.mark.parametrize("release", RELEASES)
def test_a_block_is_read_as_its_lines_are(release: str) -> None:
    found = []
    for more in ("", "a line of something else\n"):
        reader = StepReader(source="x")
        for _ in range(2):
            reader.feed((log_of(release, STEPS) + more).encode())
        reader.finish()
        rows = reader.rows()
        assert rows is not None
        # What is not said is NaN, which is not itself.
        columns = ("numbers", "values", "stamps", "totals", "batches", "consumed", "tflops", "mfu", "tokens", "samples")
        found.append({name: repr(list(getattr(rows.complete(), name))) for name in columns} | {"digits": rows.decimals})
    assert found[0] == found[1]


def test_a_bar_of_one_state_counts_from_its_start_where_its_rate_agrees(tmp_path: Path) -> None:
    log = read_text(tmp_path, "  2%|1         | 20/1200 [01:30<1:28:30,  4.50s/it]\n")

    assert log.columns.times_s == pytest.approx([4.5])
    for text in (
        " 50%|#####     | 600/1200 [01:30<1:28:30,  4.50s/it]\n",
        "Epochs:  50%|#####     | 5/10 [01:30<01:30,  18.0s/it]\n",
    ):
        with pytest.raises(InputError, match="no step of"):
            read_text(tmp_path, text)


def test_numbers_that_a_bar_fills_up_with_zeros_have_three_digits(tmp_path: Path) -> None:
    log = read_text(tmp_path, "Epoch 0: :  2%|# | 8/50 [05:10<4:12, global_step=7.0, train_step_timing in s=21.40]\n")

    assert log.window is not None
    assert (log.window.step_s.low, log.window.step_s.high) == (pytest.approx(21.35), pytest.approx(21.45))


def test_gpus_are_not_the_world_size_of_the_configuration_of_deepspeed(tmp_path: Path) -> None:
    other = "[2026-11-21 20:47:51,887] [INFO] [config.py:904:print]   world_size ................... 2\n"
    log = read_text(tmp_path, f"  world_size ...................................... 64\n{other}{megatron(1, 100)}")

    assert log.work.gpus == 64


def test_deepspeed_that_prints_means_alone_is_read_by_its_moments(tmp_path: Path) -> None:
    line = "[2026-11-21 02:0{}:10,130] [INFO] [timer.py:189:stop] 0/{}, SamplesPerSec=83.7, MemAllocated=0.26GB\n"
    log = read_text(tmp_path, line.format(1, 10) + line.format(2, 20))

    assert log.columns.times_s[-1] == pytest.approx(6.0)


def test_blocks_of_validation_are_no_restart(tmp_path: Path) -> None:
    line = ':::MLLOG {{"time_ms": {}, "key": "block_stop", "value": "{}", "metadata": {{"step_num": {}}}}}\n'
    steps = "".join(line.format(1000 * n, "training_step", n) for n in range(1, 6))
    log = read_text(tmp_path, steps + line.format(7000, "validation_step", 0) + line.format(8000, "training_step", 6))

    assert log.columns.numbers[-1] == 6
    assert not log.restarts
