"""A run that ended at any point is listed as what it is: real runs, killed, and a real run cut at every boundary."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.runner import Busbw, read_run
from tests.sleeping import SLEEPING

from busbw.base import layout

from .asking import listed

pytestmark = pytest.mark.timed
RUN = ("run", "all_reduce", "-n", 2, "-b", 8, "-e", 128, "-f", 4, "--time-limit", 3)
POINTS = 3


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the directory of one small real run."""
    busbw = Busbw(tmp_path_factory.mktemp("finished"), SLEEPING)
    result = busbw(*RUN, "-o", busbw.runs / "20260101T000000-whole")
    assert result.code in {0, 1, 4}, result
    yield busbw.directory()
    assert busbw.clean_up() == ()


def files_in_order(directory: Path) -> list[Path]:
    """Return the files of a run in the order in which they are begun."""
    raw = sorted((directory / layout.RAW_DIRECTORY).iterdir(), key=lambda path: (path.name.endswith("1.0.jsonl"), path))
    ends = [directory / name for name in (layout.OUTCOME_FILE, layout.RUN_FILE)]
    return [directory / layout.PLAN_FILE, *(path for path in raw if path.is_file()), *ends]


def copies_cut_off(finished: Path, base: Path) -> dict[str, tuple[str, int]]:
    """Make a copy that ends after each file, and ones that end in its middle; return (file, bytes of it) by name.

    Files are written whole beside their place and then moved there, except those of the ranks, which grow by lines: of
    these a copy ends after each line, too, and within each.
    """
    made = {}
    files = files_in_order(finished)
    for number, last in enumerate(files):
        content = last.read_bytes()
        lengths = {0, len(content) // 2, len(content)}
        if last.suffix == ".jsonl":
            ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
            lengths |= {*ends, *(end - 3 for end in ends)}
        for length in sorted(lengths):
            copy = base / f"20260101T{number:02d}0000-{length:07d}"
            (copy / layout.RAW_DIRECTORY).mkdir(parents=True)
            for whole in files[:number]:
                shutil.copy(whole, copy / whole.relative_to(finished))
            (copy / last.relative_to(finished)).write_bytes(content[:length])
            made[copy.name] = (last.name, length - len(content))
    (base / "20251231T000000-made" / layout.RAW_DIRECTORY).mkdir(parents=True)
    return made


def test_a_real_run_cut_off_at_every_boundary_is_listed_as_what_it_is(finished: Path, base: Path):
    whole = read_run(finished)
    assert whole.outcome is not None
    made = copies_cut_off(finished, base)
    assert len(made) > 20

    rows = {Path(row.path).name: row for row in listed(base)}

    assert rows.keys() == {*made, "20251231T000000-made"}
    remnant = rows["20251231T000000-made"]
    assert (remnant.outcome, remnant.sentence) == (
        "unreadable", "it ended before its plan was written: nothing was started",
    )  # fmt: skip
    for name, (file, missing) in made.items():
        row = rows[name]
        told = (name, file, missing, row)
        if missing and file in {layout.PLAN_FILE, layout.OUTCOME_FILE, layout.RUN_FILE}:
            assert row.outcome == "unreadable", told
            assert "not a valid" in row.sentence, told
        elif file in {layout.OUTCOME_FILE, layout.RUN_FILE}:
            assert (row.ended, row.measured) == (whole.outcome.ended, len(whole.measurements)), told
        else:
            assert row.ended == "unfinished", told
            # On a busy machine a rank that was kept waiting shows in what was measured until then.
            assert row.outcome in {"cannot_tell", "slow"}, told
            assert 0 <= row.measured <= row.planned == POINTS, told
    # The more of it was written, the more was measured: nothing that is on disk is lost.
    measured = [rows[name].measured for name, (file, _) in made.items() if file.endswith("-00000.0.jsonl")]
    assert measured == sorted(measured)


def test_a_run_whose_plan_is_gone_is_listed_as_damaged(finished: Path, base: Path):
    copy = base / "20260101T000000-lost"
    shutil.copytree(finished, copy)
    for name in (layout.PLAN_FILE, layout.RUN_FILE):
        (copy / name).unlink()
    (row,) = listed(base)
    assert (row.run_id, row.outcome) == (copy.name, "unreadable")
    assert "cannot read plan.json" in row.sentence


def test_listing_twice_says_the_same_and_reads_nothing_again(finished: Path, base: Path):
    copies_cut_off(finished, base)
    first = listed(base)
    # What was rebuilt from a whole outcome was stored beside it, and is read once more.
    listed(base)
    assert listed(base) == first


# Seconds after the start: before the plan is there, while ranks start, while they measure, while it is judged.
MOMENTS_S = (0.15, 0.3, 0.6, 1.0, 1.6, 2.4)


def test_a_run_that_is_killed_is_listed_as_unfinished_or_finished_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    busbw = Busbw(tmp_path)
    for moment_s in MOMENTS_S:
        started = busbw.start(*RUN)
        time.sleep(moment_s)
        started.process.kill()
        started.process.wait()
        # Ranks end by themselves when their launching side is gone; the test does not wait for that.
        busbw.clean_up()
    # However busy the machine is: one that had its plan and was not done.
    started = busbw.start(*RUN)
    started.wait_for("run: ")
    started.process.kill()
    started.process.wait()
    busbw.clean_up()

    rows = listed(busbw.runs)

    assert 1 <= len(rows) <= len(MOMENTS_S) + 1
    for row in rows:
        assert row.outcome in {"cannot_tell", "ok", "slow"} or row.sentence.startswith("it ended before"), row
        assert row.ended in {"unfinished", "complete", "time", None}, row
        if row.ended is not None:
            shown = busbw("show", row.path)
            assert shown.code in {0, 1, 4}, shown
    assert any(row.ended == "unfinished" for row in rows)
