"""What is kept of runs costs nothing but time when it is old, foreign, damaged or missing."""

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from busbw.api import loading
from busbw.base.errors import InputError, RunError
from busbw.store import outcome, tags
from busbw.store.files import write_whole
from busbw.store.history import History

from .asking import listed, names, read_again
from .stored import keep, make_run


def cache_file(base: Path) -> Path:
    """Return the one file that is kept."""
    (file,) = (base.parent / "cache" / "busbw").glob("*.parquet")
    return file


def test_a_run_is_read_once_and_again_when_it_has_changed(base: Path):
    first, second = keep(make_run(0), base), keep(make_run(1), base)
    assert read_again(base) == [first.name, second.name]
    listed(base)
    assert read_again(base) == []
    keep(make_run(2), base)
    assert [name[-4:] for name in read_again(base)] == ["0002"]
    listed(base)
    run = make_run(1)
    outcome.write_run(second, replace(run, verdict=replace(run.verdict, outcome="slow")))
    assert read_again(base) == [second.name]
    assert [row.outcome for row in listed(base)] == ["ok", "slow", "ok"]


def test_a_result_of_the_launching_side_stays_where_a_reader_has_rebuilt_one_meanwhile(base: Path):
    directory = keep(make_run(0), base)
    stored = outcome.read_run(directory)
    # There are no raw files: what is rebuilt of it says nothing.
    rebuilt = loading.rebuild(directory)
    assert (stored is not None, rebuilt.verdict.outcome) == (True, "cannot_tell")
    assert not outcome.add_run(directory, rebuilt)
    assert outcome.read_run(directory) == stored
    (directory / "run.json").unlink()
    assert outcome.add_run(directory, rebuilt)
    assert outcome.read_run(directory) == rebuilt
    assert [path.name for path in directory.iterdir() if path.name.endswith(".part")] == []


def test_a_result_that_nobody_stored_is_rebuilt_and_stored(base: Path):
    directory = keep(make_run(0), base)
    (directory / "run.json").unlink()
    assert outcome.read_run(directory) is None
    assert loading.read(directory) == outcome.read_run(directory)


def test_a_result_that_was_damaged_in_place_is_noticed(base: Path):
    directory = keep(make_run(0), base)
    listed(base)
    content = (directory / "run.json").read_bytes()
    (directory / "run.json").write_bytes(b" " * len(content))
    (row,) = listed(base)
    assert row.outcome == "unreadable"
    assert "not a valid run" in row.sentence


def test_a_run_that_is_gone_or_renamed_is_gone_or_renamed(base: Path):
    first, second = keep(make_run(0), base), keep(make_run(1), base)
    listed(base)
    shutil.rmtree(first)
    second.rename(second.with_name("renamed"))
    (row,) = listed(base)
    assert row.path == str(base / "renamed")


def test_an_empty_and_a_missing_folder_have_no_runs(base: Path):
    assert listed(base) == ()
    assert listed(base / "nowhere") == ()
    keep(make_run(0), base)
    listed(base)
    shutil.rmtree(base)
    assert listed(base) == ()


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all", None])
def test_a_damaged_cache_is_made_again(base: Path, damage: bytes | None):
    keep(make_run(0), base)
    before = listed(base)
    file = cache_file(base)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] if damage is None else damage)
    assert listed(base) == before
    assert read_again(base) == []


def test_a_cache_of_the_same_name_with_other_columns_is_made_again(base: Path):
    keep(make_run(0), base)
    before = listed(base)
    with History(base) as history:
        history.connection.execute(f"COPY (SELECT 1 AS name, 2 AS mark) TO '{cache_file(base)}' (FORMAT parquet)")
    assert listed(base) == before


def test_few_new_runs_among_many_are_read_each_time_until_there_are_more(base: Path):
    for number in range(45):
        keep(make_run(number), base)
    listed(base)
    before = cache_file(base).stat().st_ino
    keep(make_run(45), base)
    assert len(listed(base)) == 46
    assert cache_file(base).stat().st_ino == before
    keep(make_run(46), base)
    keep(make_run(47), base)
    assert len(listed(base)) == 48
    assert cache_file(base).stat().st_ino != before
    assert read_again(base) == []


def test_a_file_that_is_damaged_inside_is_named_with_what_to_do(base: Path):
    keep(make_run(0), base)
    listed(base)
    with History(base) as history:
        history.renew(())
        with pytest.raises(RunError, match="cannot ask what is kept"):
            history.ask("SELECT nothing FROM runs")


def test_folders_that_may_only_be_read_are_read(base: Path):
    keep(make_run(0), base)
    base.chmod(0o500)
    cache = base.parent / "cache"
    cache.mkdir()
    cache.chmod(0o500)
    # Root may write everywhere, but for what it gives away.
    as_others = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    try:
        done = subprocess.run(
            [*as_others, sys.executable, "-m", "busbw", "runs", "--json"],
            capture_output=True,
            text=True,
            env={**os.environ, "BUSBW_RUNS": str(base), "XDG_CACHE_HOME": str(cache)},
            check=False,
        )
    finally:
        base.chmod(0o700)
        cache.chmod(0o700)
    assert [row["run_id"][-4:] for row in json.loads(done.stdout)] == ["0000"], done
    assert list(cache.iterdir()) == []


def test_where_the_cache_folder_cannot_be_made_runs_are_read_each_time(base: Path):
    keep(make_run(0), base)
    (base.parent / "cache").write_text("a file")
    assert names(base) == ["0000"]
    assert len(read_again(base)) == 1


def test_a_user_without_a_home_has_runs_all_the_same(base: Path, monkeypatch: pytest.MonkeyPatch):
    keep(make_run(0), base)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _user: {}["nobody"])
    with pytest.raises(RuntimeError):
        Path.home()
    assert names(base) == ["0000"]
    assert len(read_again(base)) == 1


def test_a_full_disk_is_said_and_leaves_nothing(base: Path):
    directory = keep(make_run(0), base)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A file that may not grow is refused as a full disk is, once the signal that would end the process is ignored.
    kept = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(RunError, match="cannot keep what was read"):
            listed(base)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, kept)
    assert not [path for path in (base.parent / "cache").rglob("*") if path.is_file()]
    assert directory.exists()


def test_the_cache_is_its_owners_alone(base: Path):
    keep(make_run(0), base)
    listed(base)
    assert stat.S_IMODE(cache_file(base).parent.stat().st_mode) == 0o700


def test_what_a_killed_writer_left_is_removed_after_a_day(base: Path):
    keep(make_run(0), base)
    listed(base)
    file = cache_file(base)
    old, young = file.with_name(f"{file.name}.1.a.part"), file.with_name(f"{file.name}.2.b.part")
    for part in (old, young):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    keep(make_run(1), base)
    assert names(base) == ["0000", "0001"]
    assert (old.exists(), young.exists()) == (False, True)


def test_readers_at_once_while_runs_come_and_go_see_whole_lists(base: Path):
    for number in range(10):
        keep(make_run(number), base)
    wrong: list[object] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            try:
                seen = names(base)
                if seen[:10] != [f"{number:04d}" for number in range(10)]:
                    wrong.append(seen)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
                wrong.append(error)
                return

    readers = [threading.Thread(target=ask) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(10, 25):
        keep(make_run(number), base)
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert len(names(base)) == 25


def test_what_is_neither_a_run_nor_was_one_is_not_listed(base: Path):
    (base / "notes.txt").write_text("mine")
    (base / "results" / "raw").mkdir(parents=True)
    (base / "results" / "raw" / "mine.csv").write_text("1,2")
    (base / ".hidden").mkdir()
    keep(make_run(1), base).rename(base / os.fsdecode(b"\xff\xfe"))
    directory = keep(make_run(0), base)
    (base / f"{directory.name}.job").mkdir()
    tags.add(directory, "a")
    assert names(base) == ["0000"]


def test_tags_are_files_beside_the_run_and_the_run_stays_as_it_is(base: Path):
    directory = keep(make_run(0, tag="nightly"), base)
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    tags.add(directory, "a")
    tags.add(directory, "a")
    tags.add(directory, "2.28=x")
    assert tags.tags_of(directory) == ("2.28=x", "a")
    assert read_again(base) == [directory.name]
    listed(base)
    assert tags.remove(directory, "a")
    assert not tags.remove(directory, "a")
    assert listed(base)[0].tags == ("nightly", "2.28=x")
    assert read_again(base) == []
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before


@pytest.mark.parametrize(
    "tag", ["", ".", "..", "a/b", "-x", "_x", "a b", "a\n", "x" * 65, "\x1b[31m", "a\u202e", "a'b"]
)
def test_what_could_be_a_path_or_a_control_code_is_no_tag(base: Path, tag: str):
    directory = keep(make_run(0), base)
    with pytest.raises(InputError, match="is not a tag"):
        tags.add(directory, tag)
    assert not list(base.glob("*.tags"))


def test_files_of_other_names_among_tags_are_no_tags(base: Path):
    directory = keep(make_run(0), base)
    tags.add(directory, "a")
    (base / f"{directory.name}.tags" / "\x1b[31mred").touch()
    (base / f"{directory.name}.tags" / ".nfs0001").touch()
    assert listed(base)[0].tags == ("a",)


def test_threads_that_write_the_same_file_at_once_each_write_it_whole(tmp_path: Path):
    path = tmp_path / "run.json"
    contents = [bytes([digit]) * 100_000 for digit in b"0123"]

    def write(content: bytes) -> None:
        for _ in range(20):
            write_whole(path, content)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, contents))
    assert path.read_bytes() in contents
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]
