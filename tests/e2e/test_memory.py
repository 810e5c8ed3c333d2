"""A run takes no more memory than its plan says."""

import os
import re
import threading
from pathlib import Path

import pytest
from tests.patience import wait_until

from busbw.base.units import parse_size
from busbw.measure.execute import watch

from .runner import TIMEOUT_S, Busbw, Started, read_plan

RANKS = 8
_PROPORTIONAL = re.compile(rb"^Pss:\s+(\d+) kB$", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "size",
    [
        "64M",
        pytest.param(
            "1G", marks=pytest.mark.skipif(os.environ.get("BUSBW_LARGE") != "1", reason="set BUSBW_LARGE=1: 20 GiB")
        ),
    ],
)
def test_all_ranks_together_stay_within_the_planned_memory(busbw: Busbw, size: str):
    where = busbw.folder / "run"
    started = busbw.start(
        "run", "all_reduce", "-n", RANKS, "-b", size, "-e", size, "--min-samples", 1, "--time-limit", 2, "-o", where
    )
    wait_until(lambda: (where / "plan.json").exists() or started.process.poll() is not None, TIMEOUT_S, "a plan")
    if not (where / "plan.json").exists():
        pytest.skip(f"not enough memory here: {started.finish().err}")

    peak_bytes = _peak_bytes(started, where / "raw")

    result = started.finish(250)
    assert result.code in {0, 1, 4}, result
    memory = read_plan(where).memory
    # The buffers were really there: a peak that was missed would prove nothing.
    assert peak_bytes > 2 * RANKS * parse_size(size) * 0.9
    assert peak_bytes <= memory.needed_bytes + memory.scratch_bytes


def _peak_bytes(started: Started, raw: Path) -> int:
    """Return the most that all ranks together held at any of the instants looked at, shared pages counted once."""
    peak, ended = 0, threading.Event()
    while started.process.poll() is None:
        beats = [watch.read(raw, rank) for rank in range(RANKS)]
        peak = max(peak, sum(_proportional_bytes(beat.process_id) for beat in beats if beat is not None))
        ended.wait(0.2)
    return peak


def _proportional_bytes(process_id: int) -> int:
    try:
        match = _PROPORTIONAL.search(Path(f"/proc/{process_id}/smaps_rollup").read_bytes())
    except OSError:
        return 0
    return int(match[1]) * 1024 if match else 0
