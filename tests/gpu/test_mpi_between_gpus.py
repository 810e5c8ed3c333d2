"""MPI between memory of real GPUs, where the MPI here takes it; skipped with what it said where it does not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REFUSED = 2
SHORT = ("-n", "2", "-b", "1K", "-e", "4M", "-f", "64", "--time-limit", "10", "--min-samples", "3")


def test_every_element_between_gpus_is_right(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "from busbw.cli import main; main()", "run", "all_reduce", "sendrecv", *SHORT]
    argv += ["--gpu-buffers", "--out", str(tmp_path / "run"), "--json"]

    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))

    if done.returncode == REFUSED or "CUDA memory" in done.stdout + done.stderr:
        pytest.skip(f"this MPI does not take memory of GPUs: {(done.stderr or done.stdout).strip()[:200]}")
    assert done.returncode in (0, 1, 4), done.stderr[-2000:]
    points = json.loads(done.stdout)["measurements"]
    assert {one["collective"] for one in points} == {"all_reduce", "sendrecv"}
    assert all(one["verified"] and one["wrong"] is None for one in points)
