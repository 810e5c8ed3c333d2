"""Releases of each program, some years apart: the same steps are read, line by line and in whole blocks."""

from pathlib import Path

import pytest

from busbw.train.reading.reader import StepReader

from .reading import read_text
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
