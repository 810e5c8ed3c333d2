"""Run directories as they are found again: complete, damaged, from another version."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from .runner import Busbw, Result, read_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of one small run, measured once for all tests here."""
    folder = tmp_path_factory.mktemp("finished")
    busbw = Busbw(folder)
    result = busbw(
        "run",
        "all_reduce",
        "-n",
        2,
        "-b",
        8,
        "-e",
        32,
        "--max-samples",
        20,
        "--time-limit",
        20,
        "-o",
        folder / "runs" / "20260101T000000-a",
    )
    assert result.code in {0, 1, 4}, result
    assert busbw.clean_up() == ()
    return folder / "runs" / "20260101T000000-a"


@pytest.fixture
def stored(busbw: Busbw, finished: Path) -> Path:
    """Return a copy of it that a test may damage."""
    return shutil.copytree(finished, busbw.runs / finished.name)


def change(path: Path, edit: Callable[[dict[str, object]], None]) -> None:
    """Edit a JSON file."""
    document = msgspec.json.decode(path.read_bytes())
    edit(document)
    path.write_bytes(msgspec.json.encode(document))


def assert_refused(result: Result, *words: str) -> None:
    assert result.code == 2, result
    lines = result.err.splitlines()
    assert len([line for line in lines if not line.startswith("run: ")]) <= 4, result
    for word in words:
        assert word in result.err, result


def test_a_finished_run_is_not_resumed(busbw: Busbw, stored: Path):
    before = (stored / "run.json").read_bytes()

    result = busbw("run", "--resume", stored.name)

    assert_refused(result, "nothing is missing in this run", f"busbw show {stored.name}")
    assert (stored / "run.json").read_bytes() == before


def test_a_run_is_found_by_the_beginning_of_its_name_if_that_is_clear(busbw: Busbw, stored: Path):
    shutil.copytree(stored, stored.with_name("20260101T000000-b"))

    assert_refused(busbw("show", "20260101"), "'20260101' means 2 runs: 20260101T000000-a, 20260101T000000-b")
    assert busbw("show", "20260101T000000-a").out == busbw("show", stored).out
    assert "20260101T000000-b" in busbw("show", "last").out


def test_a_damaged_result_points_to_load_and_load_rebuilds_it(busbw: Busbw, stored: Path):
    whole = read_run(stored)
    content = (stored / "run.json").read_bytes()
    (stored / "run.json").write_bytes(content[: len(content) // 2])

    assert_refused(busbw("show", "last"), "not a valid run", str(stored / "run.json"), "busbw load")
    (row,) = msgspec.json.decode(busbw("runs", "--json").out)
    assert row["outcome"] == "unreadable"
    assert busbw("load", "last", "--json").run() == whole
    assert busbw("show", "last", "--json").run() == whole


def test_a_damaged_plan_is_named(busbw: Busbw, stored: Path):
    (stored / "plan.json").write_text('{"schema": 1, "busbw_ver', encoding="utf-8")

    for arguments in (("load", "last"), ("run", "--resume", "last")):
        assert_refused(busbw(*arguments), "not a valid plan", str(stored / "plan.json"))


def test_unreadable_records_are_named_and_the_others_count(busbw: Busbw, stored: Path):
    path = stored / "raw" / "rank-00001.0.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    number = next(place for place, line in enumerate(lines) if b'"type":"measured"' in line)
    lines[number] = b'\xff{"type": garbage\n'
    path.write_bytes(b"".join(lines)[:-5])

    run = busbw("load", "last", "--json").run()

    assert [entry.partition(": ")[0] for entry in run.unreadable] == [
        f"raw/rank-00001.0.jsonl:{number + 1}",
        f"raw/rank-00001.0.jsonl:{len(lines)}",
    ]
    assert "cut off" in run.unreadable[1]
    # What is lost is one turn of the first size; its other turns count.
    assert [point.size_bytes for point in run.measurements] == [8, 16, 32]
    text = busbw("show", "last").out
    assert "raw/rank-00001.0.jsonl" in text


def test_a_missing_rank_is_a_missing_measurement(busbw: Busbw, stored: Path):
    (stored / "raw" / "rank-00001.0.jsonl").unlink()

    result = busbw("load", "last", "--json")

    assert result.code == 4, result
    assert result.run().measurements == ()


@pytest.mark.parametrize(("name", "verb"), [("run.json", "show"), ("plan.json", "load")])
def test_a_newer_schema_is_refused_by_number(busbw: Busbw, stored: Path, name: str, verb: str):
    change(stored / name, lambda document: document.update(schema=99, invented_later=True))

    assert_refused(
        busbw(verb, "last"), "written by a newer busbw: schema 99", str(stored / name), "pip install --upgrade"
    )


def test_a_run_of_another_machine_is_not_resumed_here(busbw: Busbw, stored: Path):
    change(stored / "plan.json", lambda document: document["placement"].update(hosts=["elsewhere"]))  # type: ignore[attr-defined]

    assert_refused(busbw("run", "--resume", "last"), "this run belongs to elsewhere")


def test_a_run_that_was_moved_is_not_resumed_elsewhere(busbw: Busbw):
    result = busbw("run", "all_reduce", "-n", 2, "-b", "1K", "-e", "2000K", "-i", "1K", "--time-limit", 1)
    assert result.code in {1, 4}, result
    moved = busbw.directory().rename(busbw.directory().with_name("moved"))

    refused = busbw("run", "--resume", moved)

    assert refused.code == 2
    assert "this run was planned for another folder" in refused.err
    assert "hint: move it back: mv " in refused.err
