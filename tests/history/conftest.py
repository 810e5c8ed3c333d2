"""A folder of runs of a test's own, and a cache folder of its own."""

from pathlib import Path

import pytest


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that busbw takes for the folder of runs."""
    runs = tmp_path / "runs"
    runs.mkdir()
    monkeypatch.setenv("BUSBW_RUNS", str(runs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return runs
