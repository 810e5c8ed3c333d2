"""A size whose samples have all missed their start, on one rank or another, is one that was not measured."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Two samples; the arguments are the numbers of those that this rank missed.
_RANK = """
import sys
from pathlib import Path
from tests.backends.records import make_measured
from busbw.rank.measured import any_counts
from busbw.rank.socket_world import SocketWorld
missed = tuple(int(number) for number in sys.argv[3:])
records = (make_measured((100,) * int(sys.argv[2]), missed=missed, ended="time"),)
print(any_counts(SocketWorld(Path(sys.argv[1]), 0, timeout_s=60.0), records))
"""


@pytest.mark.parametrize(
    ("samples", "missed", "counts"),
    [
        (2, ((), ()), True),
        (2, ((0,), (0,)), True),
        (2, ((0,), (1,)), False),
        (2, ((), (0, 1)), False),
        (0, ((), ()), False),
    ],
)
def test_a_sample_counts_where_no_rank_missed_its_start(
    samples: int, missed: tuple[tuple[int, ...], ...], counts: bool, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    here = {**os.environ, "WORLD_SIZE": "2", "PYTHONPATH": str(Path(__file__).parents[2])}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", _RANK, str(tmp_path), str(samples), *map(str, of_rank)],
            env={**here, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, of_rank in enumerate(missed)
    ]

    said = [rank.communicate(timeout=60)[0].strip() for rank in ranks]

    assert said == [str(counts)] * 2
