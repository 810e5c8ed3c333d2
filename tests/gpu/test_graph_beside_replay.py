"""A step launched as one CUDA graph held against its replay: TP, EP and DP of two GPUs, each alone.

Both call the same collectives with the same sizes, experts evenly loaded. Compared is what the step's large calls take.
In the graph that lies between two times: with the wait for the other rank, and the shorter of both ranks' times, which
for an exchange is too short, as the later rank finds data that were sent before it came. Each kind of call is printed.
Not compared is computing, which a replay does by products at an assumed rate.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from busbw.model import codec
from busbw.model.train.proxy import ProxyResult

from .conftest import GUARDS
from .test_proxy_on_gpus import LAYOUTS, WORKLOAD, trained

WITHIN = 0.10
# Smaller calls take microseconds, most of which are a kernel's start, and are printed alone.
LEAST_BYTES = 64 * 2**10


def replayed(folder: Path, *arguments: str) -> dict[str, dict]:
    """Return the calls of a replayed step, by name."""
    (folder / "replayed.toml").write_text(WORKLOAD, encoding="utf-8")
    argv = [sys.executable, "-c", "from busbw.cli import main; main()", "train", "run", str(folder / "replayed.toml")]
    argv += ["--ranks", "2", "--backend", "native-nccl", "--no-multicast", "--time-limit", "6", "--json"]
    done = subprocess.run(
        [*argv, "--out", str(folder / "run"), *arguments],
        capture_output=True, text=True, timeout=150, check=False, env={**os.environ, **GUARDS},
    )  # fmt: skip
    assert done.returncode in (0, 1, 4), f"{done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    found = json.loads(done.stdout)
    for hello in found["ranks"]:
        seen = dict(hello["gpu"]["environment"])
        assert {name: seen.get(name) for name in GUARDS} == GUARDS
    return {call["name"]: call for call in found["step"]["calls"]}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> ProxyResult:
    """Return what one GPU comes to, launched as a graph too."""
    pytest.importorskip("torch")
    return trained(tmp_path_factory.mktemp("alone"), "--gpus", "1", "--graph", "--layout", "ep=1,global_batch=8")


# Three starts in BF16; FP8 sends the same bytes, and only its computing differs.
@pytest.mark.parametrize("start", [1, 2, 3, "fp8"])
@pytest.mark.parametrize("kind", ["tp", "ep", "dp"])
def test_the_replay_takes_what_the_graph_takes(kind: str, start: object, tmp_path: Path, alone: ProxyResult) -> None:
    layout, _name = LAYOUTS[kind]
    dtype = "fp8" if start == "fp8" else "bf16"
    asked = ("--dtype", dtype, "--layout", f"{layout},global_batch=8")

    graph = trained(tmp_path, "--gpus", "2", "--graph", *asked)
    replay = replayed(tmp_path, *asked)

    print(f"{kind}=2 {dtype} start {start}: step {graph.median_step_s * 1e3:.2f} ms as a graph, {graph.devices[0]}")
    pairs = [(call, replay[call.name]) for call in graph.calls if call.name in replay]
    for call, other in pairs:
        print(
            f"  {call.name}: {call.calls} x {call.size_bytes:.0f} B, graph {call.time_s / call.calls * 1e6:.1f} us, "
            f"{call.transfer_s / call.calls * 1e6:.1f} us without waiting, "
            f"replay {other['in_step_s'] * 1e6:.1f} us in the step, {(other['alone_s'] or 0) * 1e6:.1f} us alone"
        )
    # It is the same model: losses are those of one GPU, a rounding apart.
    assert graph.losses[:3] == pytest.approx(alone.losses[:3], rel=0.02 if dtype == "bf16" else 0.06)
    assert graph.losses[-1] < graph.losses[0]
    assert not any(call.name == "how many tokens go where" for call in graph.calls), "a graph knows it before"
    large = [(call, other) for call, other in pairs if call.size_bytes >= LEAST_BYTES]
    for call, other in large:
        assert call.calls == other["calls"], call.name
        assert call.size_bytes == other["size_bytes"], call.name
    waited_s, least_s = (sum(getattr(call, name) or 0 for call, _ in large) for name in ("time_s", "transfer_s"))
    theirs_s = sum(other["alone_s"] * other["calls"] for _, other in large)
    beside = f"{100 * (theirs_s / least_s - 1):+.1f} % and {100 * (theirs_s / waited_s - 1):+.1f} %"
    print(f"  together: graph {least_s * 1e3:.3f} to {waited_s * 1e3:.3f} ms, replay {theirs_s * 1e3:.3f} ms, {beside}")
    assert (1 - WITHIN) * least_s <= theirs_s <= (1 + WITHIN) * waited_s


def test_the_result_says_that_it_was_a_graph(alone: ProxyResult) -> None:
    assert alone.plan.graph
    assert ("NCCL_GRAPH_MIXING_SUPPORT", "0") in alone.settings
    assert codec.decode(codec.encode(alone), ProxyResult, where="test") == alone
