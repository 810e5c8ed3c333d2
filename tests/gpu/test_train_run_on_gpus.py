"""A step replayed over NCCL on two real GPUs: tensor, expert and data parallelism, each alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import GUARDS

# Messages of 32 MiB and more, and enough computing between that products have the right size.
WORKLOAD = """\
id = "two-gpus"
title = "A few wide layers with experts for two GPUs"
dtypes = ["bf16"]

[model]
layers = 4
hidden = 4096
heads = 32
key_value_heads = 8
ffn = 8192
vocabulary = 32000
experts = { number = 8, top_k = 2, ffn = 8192 }

[[configuration]]
gpus = 2
sequence = 4096
micro_batch = 1
global_batch = 4
parallelism = { ep = 2, sequence_parallel = false }
"""


def replayed(folder: Path, *arguments: str) -> dict:
    """Return what `busbw train run` with multicast off says."""
    (folder / "two-gpus.toml").write_text(WORKLOAD)
    argv = [sys.executable, "-c", "from busbw.cli import main; main()", "train", "run", str(folder / "two-gpus.toml")]
    argv += ["--ranks", "2", "--backend", "native-nccl", "--no-multicast", "--time-limit", "12", "--json"]
    done = subprocess.run(
        [*argv, "--out", str(folder / "run"), *arguments],
        capture_output=True, text=True, timeout=150, check=False, env={**os.environ, **GUARDS},
    )  # fmt: skip
    assert done.returncode in (0, 1), f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    found = json.loads(done.stdout)
    for hello in found["ranks"]:
        seen = dict(hello["gpu"]["environment"])
        assert {name: seen.get(name) for name in GUARDS} == GUARDS
    return found


@pytest.mark.parametrize(
    ("layout", "group", "collective"),
    [
        ("tp=2,ep=1", "TP", "all_reduce"),
        ("ep=2", "EP", "alltoall"),
        ("ep=1", "DP", "all_reduce"),
    ],
)
def test_a_step_with_one_kind_of_parallelism_is_replayed(
    tmp_path: Path, layout: str, group: str, collective: str
) -> None:
    found = replayed(tmp_path, "--layout", layout)
    step, plan = found["step"], found["plan"]["step"]
    print(json.dumps({"layout": layout, **step}, indent=1))
    assert (group, collective) in {(call["group"], call["collective"]) for call in step["calls"]}
    assert all(call["verified"] and call["alone_s"] > 0 and call["busy_s"] > 0 for call in step["calls"])
    assert step["steps"] >= 3
    assert step["product_s"] > 0
    # Products fill the computing that is planned, and a step is computing and what nothing hides.
    assert step["compute_s"] == pytest.approx(plan["compute_s"], rel=0.25)
    assert step["compute_s"] + step["exposed_s"] == pytest.approx(step["step_s"], rel=0.05)
    # A large message takes in the step what it takes alone.
    largest = max(step["calls"], key=lambda call: call["size_bytes"])
    assert largest["in_step_s"] == pytest.approx(largest["alone_s"], rel=0.3)


def test_gradients_that_are_overlapped_cost_less_than_they_take(tmp_path: Path) -> None:
    overlapped = WORKLOAD.replace("sequence_parallel = false", 'overlap = ["dp"]')
    (tmp_path / "overlapped.toml").write_text(overlapped.replace('id = "two-gpus"', 'id = "overlapped"'))
    argv = [
        sys.executable,
        "-c",
        "from busbw.cli import main; main()",
        "train",
        "run",
        str(tmp_path / "overlapped.toml"),
    ]
    argv += ["--ranks", "2", "--backend", "native-nccl", "--no-multicast", "--time-limit", "12", "--json"]
    done = subprocess.run(
        [*argv, "--layout", "ep=1", "--out", str(tmp_path / "run")],
        capture_output=True, text=True, timeout=150, check=False, env={**os.environ, **GUARDS},
    )  # fmt: skip
    assert done.returncode in (0, 1), f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    step = json.loads(done.stdout)["step"]
    gradients = next(call for call in step["calls"] if call["name"] == "gradients")
    print(json.dumps(step, indent=1))
    assert gradients["exposed_s"] < 0.5 * gradients["busy_s"]
