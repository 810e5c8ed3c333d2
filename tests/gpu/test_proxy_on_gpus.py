"""The small transformer on two GPUs: TP, EP and DP each alone, in bf16 and fp8; what communication takes, by events."""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from busbw.model import codec
from busbw.model.train.proxy import ProxyResult
from busbw.model.train.trace import TrainReadReport

from .conftest import GUARDS

WORKLOAD = """
id = "moe-of-two-gpus"
title = "A mixture of 8 experts for two GPUs"
dtypes = ["bf16", "fp8"]

[model]
layers = 4
hidden = 2048
heads = 16
key_value_heads = 8
ffn = 8192
vocabulary = 32768
experts = { number = 8, top_k = 2, ffn = 4096 }

[[configuration]]
gpus = 2
sequence = 2048
micro_batch = 1
global_batch = 8
parallelism = { ep = 2 }
"""
LAYOUTS = {
    "tp": ("tp=2,ep=1", "sums of tensor parallelism"),
    "ep": ("tp=1,ep=2", "tokens to experts and back"),
    "dp": ("tp=1,ep=1", "gradients of experts"),
}


def trained(folder: Path, *arguments: str) -> ProxyResult:
    workload = folder / "moe.toml"
    workload.write_text(WORKLOAD, encoding="utf-8")
    argv = [sys.executable, "-c", "from busbw.cli import main; main()", "train", "proxy", str(workload)]
    done = subprocess.run(
        [*argv, "--device", "gpu", "--steps", "20", "-o", str(folder / "out"), "--json", *arguments],
        capture_output=True, text=True, timeout=200, check=False, env={**os.environ, **GUARDS},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    result = codec.decode(done.stdout.encode(), ProxyResult, where="stdout")
    # Every process had them.
    assert GUARDS.items() <= dict(result.settings).items()
    return result


def reads_as_measured(path: Path, result: ProxyResult) -> None:
    """`busbw train read` says of the kept log what the program measured: each step, throughput, what is exposed."""
    argv = [sys.executable, "-c", "from busbw.cli import main; main()", "train", "read", str(path), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    # Steps that drift with a shared machine may leave too few for a verdict; what is read is the same.
    assert done.returncode in (0, 1, 4), done.stderr[-3000:]
    (log,) = codec.decode(done.stdout.encode(), TrainReadReport, where="stdout").logs
    assert log.program == "busbw train proxy"
    assert log.columns.numbers == tuple(range(1, result.plan.steps + 1))
    assert log.columns.times_s == pytest.approx(result.step_s, rel=1e-9)
    assert log.window is not None
    steady = slice(log.window.first_step - 1, log.window.last_step)
    step_s = median(result.step_s[steady])
    shares = [part / whole for part, whole in zip(result.communication_s, result.step_s, strict=True)]
    tokens = result.plan.sequence * result.plan.global_batch
    print(
        f"  read: {log.window.step_s.value * 1e3:.3f} ms, steps {log.window.first_step} to {log.window.last_step};"
        f" measured {step_s * 1e3:.3f} ms there, {result.median_step_s * 1e3:.3f} ms over all"
    )
    assert log.window.step_s.value == pytest.approx(step_s, rel=1e-6)
    assert log.throughput.tokens_per_s is not None
    assert log.throughput.tokens_per_s.value == pytest.approx(tokens / step_s, rel=1e-6)
    assert log.exposed is not None
    assert log.exposed.value == pytest.approx(median(shares[steady]), rel=1e-6)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> ProxyResult:
    """Return what one GPU comes to."""
    pytest.importorskip("torch")
    return trained(tmp_path_factory.mktemp("alone"), "--gpus", "1", "--layout", "ep=1,global_batch=8")


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
@pytest.mark.parametrize("kind", ["tp", "ep", "dp"])
def test_a_step_on_two_gpus(kind: str, dtype: str, tmp_path: Path, alone: ProxyResult) -> None:
    layout, name = LAYOUTS[kind]

    result = trained(tmp_path, "--gpus", "2", "--dtype", dtype, "--layout", f"{layout},global_batch=8")

    calls = {call.name: call for call in result.calls}
    print(
        f"{kind}=2 {dtype}: step {result.median_step_s * 1e3:.2f} ms, communication {100 * result.communication:.1f} %,"
        f" one GPU in bf16 {alone.median_step_s * 1e3:.2f} ms, PyTorch {result.torch}, {result.devices}"
    )
    for call in result.calls:
        print(
            f"  {call.name}: {call.group} {call.collective} {call.calls} x {call.size_bytes:.0f} B {call.time_s:.6f} s"
        )
    assert result.backend == "nccl"
    assert "events" in result.clock
    assert 0 < result.communication < 1
    assert calls[name].ranks == 2
    assert calls[name].time_s > 0
    # The same model, a rounding apart, which every step then multiplies.
    assert result.losses[:3] == pytest.approx(alone.losses[:3], rel=0.02 if dtype == "bf16" else 0.06)
    assert result.losses[-1] < result.losses[0]
    reads_as_measured(tmp_path / "out" / "train.log", result)
