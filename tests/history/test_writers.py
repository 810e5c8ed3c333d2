"""Many processes write at once, without a lock and without knowing of each other, and nothing is lost."""

import subprocess
import sys
from pathlib import Path

from .asking import listed, names, read_again

ROOT = Path(__file__).resolve().parents[2]
PROCESSES, RUNS = 50, 4


def test_fifty_processes_write_and_tag_at_once_while_others_read_and_nothing_is_lost(base: Path):
    writers = subprocess.Popen(
        [sys.executable, "-m", "tests.history.writers", str(base), str(PROCESSES), str(RUNS)], cwd=ROOT
    )
    seen = 0
    while writers.poll() is None:
        found = names(base)
        # A run that was listed stays; one that is being written is there too, as what it is.
        assert len(found) >= seen
        seen = len(found)
    assert writers.returncode == 0
    rows = listed(base)
    assert [row.run_id[-4:] for row in rows] == [f"{number:04d}" for number in range(PROCESSES * RUNS + 1)]
    assert {row.outcome for row in rows} == {"ok"}
    assert [row.tags for row in rows[1:]] == [(f"by-{(number // RUNS)}",) for number in range(PROCESSES * RUNS)]
    assert len(rows[0].tags) == PROCESSES * RUNS
    # The last few of them are read again until there are more.
    assert len(read_again(base)) < PROCESSES * RUNS * 0.05


def test_several_commands_that_read_at_once_for_the_first_time_all_see_everything(base: Path):
    assert subprocess.run(
        [sys.executable, "-m", "tests.history.writers", str(base), "5", "8"], cwd=ROOT, check=True
    ).returncode == 0  # fmt: skip
    commands = [
        subprocess.Popen([sys.executable, "-m", "busbw", "runs", "--csv"], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = [command.communicate(timeout=250)[0] for command in commands]
    assert [command.returncode for command in commands] == [0] * 4
    assert [len(output.splitlines()) for output in outputs] == [42] * 4
    assert len(set(outputs)) == 1
    assert not list((base.parent / "cache" / "busbw").glob("*.part"))
