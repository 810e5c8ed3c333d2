"""Pairs of the GPUs of one host as a fabric: alike from start to start, and a GPU with other work is told."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .conftest import GUARDS

# How far the same pair may lie apart in starts of a few seconds each.
TIGHT = 1.05


def pairs(folder: Path, *words: str) -> dict[str, Any]:
    """Measure the pair of the two GPUs and return how it is judged."""
    argv = [
        sys.executable, "-c", "from busbw.cli import main; main()", "fabric", "--over", "nccl",
        "--ranks", "2", "--pairs", "0-1", "--time-limit", "6", "--out", str(folder), "--json", *words,
    ]  # fmt: skip
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=150, check=False, env={**os.environ, **GUARDS}
    )  # fmt: skip
    assert done.returncode in (0, 1, 4), done.stdout + done.stderr
    for hello in json.loads((folder / "run.json").read_text())["ranks"]:
        seen = dict(hello["gpu"]["environment"])
        assert {name: seen.get(name) for name in GUARDS} == GUARDS
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_the_pair_of_two_gpus_is_alike_from_start_to_start(tmp_path: Path) -> None:
    reports = [pairs(tmp_path / f"start{number}") for number in range(3)]

    assert all(each["are_gpus"] and each["metric"] == "bibandwidth" for each in reports)
    assert all(each["nodes"] == 2 and each["unanswered"] == 0 for each in reports)
    assert not [one for each in reports for one in each["findings"] if one["code"] == "RUN027"]
    medians = [each["median"] for each in reports]
    assert max(medians) <= TIGHT * min(medians), medians


def test_a_gpu_that_another_process_loads_is_told_beside_its_pairs(tmp_path: Path, loaded: int) -> None:
    report = pairs(tmp_path / "loaded")

    named = [one["title"] for one in report["findings"] if one["code"] == "RUN027"]
    assert len(named) == 1, report["findings"]
    assert f"GPU {loaded} on " in named[0]
    assert f"GPU {1 - loaded} on " not in named[0]
