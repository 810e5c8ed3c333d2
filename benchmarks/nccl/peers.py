"""Starting nccl-tests and busbw on the same GPUs, and reading their times."""

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

GUARDS = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
_ROW = re.compile(r"^\s*\d+\s+\d+\s+\w+\s+\w+\s+-?\d+\s+[\d.e+]+\s")


@dataclass(frozen=True)
class Stage:
    """What both measure with: the folder of nccl-tests' programs, the NCCL, the ranks."""

    nccl_tests: Path
    nccl: Path
    ranks: int

    def environment(self) -> dict[str, str]:
        """Return the environment of both: multicast off, this NCCL first."""
        for name, value in GUARDS.items():
            assert os.environ.get(name, value) == value, f"{name} must be {value}"
        folders = [str(self.nccl.parent), os.environ.get("LD_LIBRARY_PATH", "")]
        return {**os.environ, **GUARDS, "LD_LIBRARY_PATH": ":".join(folder for folder in folders if folder)}


def run_nccl_tests(stage: Stage, collective: str, options: list[str], limit_s: float) -> tuple[list[list[str]], float]:
    """Return nccl-tests' rows as tokens, and the seconds it took. Raises when it fails or finds wrong data."""
    argv = ["mpirun", "-n", str(stage.ranks), "--bind-to", "none"]
    argv += [str(stage.nccl_tests / f"{collective}_perf"), *options, "-g", "1"]
    began_s = time.monotonic()
    answer = subprocess.run(
        argv, capture_output=True, text=True, timeout=limit_s, check=False, env=stage.environment(),
    )  # fmt: skip
    took_s = time.monotonic() - began_s
    if answer.returncode != 0:
        raise RuntimeError(f"{collective}: nccl-tests ended with {answer.returncode}: {answer.stdout[-2000:]}")
    rows = [line.split() for line in answer.stdout.splitlines() if _ROW.match(line)]
    wrong = [row for row in rows if row[8] not in ("0", "N/A")]
    assert not wrong, f"{collective}: nccl-tests finds wrong data: {wrong[0]}"
    return rows, took_s


def run_busbw(stage: Stage, arguments: list[str], folder: Path, limit_s: float) -> tuple[dict[str, object], float]:
    """Return the content of run.json of one `busbw run`, and the seconds it took."""
    argv = ["busbw", "run", *arguments, "--backend", "native-nccl", "--nccl", str(stage.nccl), "--no-multicast"]
    argv += ["--ranks", str(stage.ranks), "--out", str(folder), "--json"]
    began_s = time.monotonic()
    answer = subprocess.run(
        argv, capture_output=True, text=True, timeout=limit_s, check=False, env=stage.environment(),
    )  # fmt: skip
    took_s = time.monotonic() - began_s
    if answer.returncode not in (0, 1, 4):
        raise RuntimeError(f"busbw ended with {answer.returncode}: {answer.stderr[-2000:]}")
    run = json.loads(answer.stdout)
    for hello in run["ranks"]:
        seen = dict(hello["gpu"]["environment"])
        assert all(seen.get(name) == value for name, value in GUARDS.items()), "a rank had multicast on"
    assert all(point["wrong"] is None and point["verified"] for point in run["measurements"]), "not all verified"
    return run, took_s
