"""An import that takes long says how far it is, on standard error; one that is quick says nothing."""

import io
import sys
from pathlib import Path

import pytest

from busbw.api.importing import ImportProgress, import_files
from busbw.cli import progress

from .reading import sample


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, screen: io.StringIO, at_s: list[float]) -> str:
    """Return what is printed where the listener is told at these times after the beginning."""
    times = iter([0.0, *at_s])
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with progress.import_progress() as told:
        for number, _ in enumerate(at_s):
            told(ImportProgress("job.log", 1, 2, (number + 1) * 2**20, number))
    return screen.getvalue()


def test_five_seconds_pass_without_a_word(monkeypatch: pytest.MonkeyPatch):
    assert shown(monkeypatch, io.StringIO(), [0.1, 3.0, 4.9]) == ""
    assert shown(monkeypatch, Terminal(), [0.1, 3.0, 4.9]) == ""


def test_then_there_is_a_line_and_one_every_ten_seconds(monkeypatch: pytest.MonkeyPatch):
    said = shown(monkeypatch, io.StringIO(), [1.0, 5.1, 6.0, 14.9, 15.2])

    assert said.splitlines() == [
        "job.log (1 of 2): 2 MiB read in 5 s, 1 readings",
        "job.log (1 of 2): 5 MiB read in 15 s, 4 readings",
    ]


def test_a_terminal_has_one_line_that_goes_again(monkeypatch: pytest.MonkeyPatch):
    said = shown(monkeypatch, Terminal(), [5.1, 5.2, 5.5])

    assert "\n" not in said
    assert said.count("MiB read") == 2
    assert said.endswith("\r\x1b[K")


def test_an_import_tells_after_every_block(tmp_path: Path):
    (tmp_path / "one.log").write_bytes(sample("nccl-tests-2.17.9.log"))
    (tmp_path / "two.log").write_bytes(sample("nccl-tests-2.14.1.log"))
    told: list[ImportProgress] = []

    done = import_files(
        [str(tmp_path / "one.log"), str(tmp_path / "two.log")], tmp_path / "i", tmp_path, told=told.append
    )

    assert [(each.number, each.files) for each in told] == [(1, 2), (2, 2)]
    assert told[0].read_bytes == (tmp_path / "one.log").stat().st_size
    assert told[-1].readings <= done.imported.readings
