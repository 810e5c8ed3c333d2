"""A real trace of two GPUs: what `busbw train read` says of it, beside what was laid out and measured untraced."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import GUARDS
from .traced_steps import STEPS

PROGRAM = Path(__file__).parent / "traced_steps.py"


def test_a_trace_tells_what_is_hidden_and_what_is_exposed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    files = [tmp_path / f"rank{rank}.pt.trace.json" for rank in range(2)]
    started = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(rank), address, str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **GUARDS},
        )
        for rank, file in enumerate(files)
    ]
    try:
        answers = [each.communicate(timeout=120) for each in started]
    finally:
        for each in started:
            each.kill()
    assert [each.returncode for each in started] == [0, 0], answers[0][1][-3000:]
    measured = json.loads(answers[0][0].splitlines()[-1])
    read = subprocess.run(
        [sys.executable, "-c", "from busbw.cli import main; main()", "train", "read", *map(str, files), "--json"],
        capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **GUARDS},
    )  # fmt: skip
    assert read.returncode == 0, read.stderr[-2000:]

    for rank, share in enumerate(json.loads(read.stdout)["traces"]):
        groups = {each["group"]: each for each in share["groups"]}
        steps_s = [each["time_s"] for each in share["steps"]]
        print(f"PyTorch {measured['torch']}, rank {rank}: {share['sentence']}")
        print(
            f"  steps {[f'{each * 1e3:.3f}' for each in steps_s]} ms, without profiler {measured['step_s'] * 1e3:.3f}"
        )
        print(f"  exchange without profiler {measured['exchange_s'] * 1e6:.1f} us; {json.dumps(groups)}")
        data, experts = groups.pop("data (1), 2 ranks"), groups.pop("experts (2), 2 ranks")
        assert not groups
        assert (share["rank"], share["gpus"], share["has_steps"]) == (rank, 2, True)
        assert len(steps_s) == data["kernels"] == experts["kernels"] == STEPS
        assert share["communication"] == pytest.approx(share["exposed"] + share["hidden"])
        assert share["step_s"]["value"] == pytest.approx(measured["step_s"], rel=0.10)
        # The sum ends before the products do; nothing computes beside an exchange.
        assert data["exposed_s"] <= 0.05 * data["busy_s"]
        assert experts["exposed_s"] >= 0.95 * experts["busy_s"]
