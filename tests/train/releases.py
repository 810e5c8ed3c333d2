"""Lines of a step as releases of each program print them, some years apart. Steps are 20.48 s and a bit by number."""

import json
from collections.abc import Callable

# By program, release, and how `busbw train read` calls the program: the line of a step, its number and seconds given.
Line = Callable[[int, float], str]


def _stamp(second: int) -> str:
    return f"2026-11-21 {12 + second // 3600:02d}:{second % 3600 // 60:02d}:{second % 60:02d}"


RELEASES: dict[str, tuple[str, Line]] = {
    # megatron/training.py of 2020, of 2021 (v2), and megatron/training/training.py of core 0.8 and later.
    "Megatron-LM 1": (
        "Megatron-LM",
        lambda n, s: f" iteration {n:8d}/  500000 | elapsed time per iteration (ms): {s * 1e3:.1f} | learning rate "
        "1.500E-04 | lm loss 7.123456E+00 | loss scale 1.0 |",
    ),
    "Megatron-LM 2": (
        "Megatron-LM",
        lambda n, s: f" iteration {n:8d}/  500000 | consumed samples: {n * 512:12d} | elapsed time per iteration (ms): "
        f"{s * 1e3:.1f} | learning rate: 1.500E-04 | global batch size:   512 | lm loss: 7.1E+00 | loss scale: 1.0 |",
    ),
    "Megatron-LM core": (
        "Megatron-LM",
        lambda n, s: f" [{_stamp(n)}.123456] iteration {n:8d}/  500000 | consumed samples: {n * 512:12d} | skipped "
        f"samples:            0 | elapsed time per iteration (ms): {s * 1e3:.1f} | throughput per GPU (TFLOP/s/GPU): "
        "375.2 | learning rate: 1.500000E-04 | global batch size:   512 | lm loss: 7.1E+00 | grad norm: 0.931 |",
    ),
    # AMD's Primus has running means, and other fields between.
    "Megatron-LM Primus": (
        "Megatron-LM",
        lambda n, s: f" [{_stamp(n)}] iteration {n:8d}/  500000 | consumed samples: {n * 512:12d} | elapsed time per "
        f"iteration (ms): {s * 1e3:.1f}/{s * 1e3:.1f} | hip mem usages: 61.33 | throughput per GPU (TFLOP/s/GPU): "
        "375.2/374.8 | tokens per GPU (tokens/s/GPU): 3200.0/3199.1 | global batch size:   512 | lm loss: 7.1E+00 |",
    ),
    # megatron/bridge/training/utils/train_utils.py, with what NeMo-Run writes in front.
    "Megatron-Bridge": (
        "Megatron-LM",
        lambda n, s: f"ain_fp8_mx/0 Step Time : {s:.2f}s GPU utilization: 375.2MODEL_TFLOP/s/GPU\nain_fp8_mx/0  "
        f"[{_stamp(n)}] iteration {n:8d}/    5000 | consumed samples: {n * 512:12d} | elapsed time per iteration (ms): "
        f"{s * 1e3:.1f} | learning rate: 3.0E-05 | global batch size:   512 | lm loss: 8.1E+00 | grad norm: 0.042 |",
    ),
    "NeMo 1": (
        "NeMo",
        lambda n, s: f"Epoch 0: :   2%|#         | {n}/5000 [05:10<4:12:00, v_num=0, reduced_train_loss=7.130, "
        f"global_step={n}.0, consumed_samples={n * 512}.0, train_step_timing in s={s:.3f}]",
    ),
    "NeMo 2": (
        "NeMo",
        lambda n, s: f"Training epoch 0, iteration {n}/4999 | lr: 1.9e-06 | global_batch_size: 512 | global_step: {n} "
        f"| reduced_train_loss: 1.315 | train_step_timing in s: {s:.3f} | consumed_samples: {n * 512}",
    ),
    "DeepSpeed 0.6": (
        "DeepSpeed",
        lambda n, s: f"[{_stamp(n)},646] [INFO] [timer.py:193:stop] 0/{n}, RunningAvgSamplesPerSec=25.0123, "
        f"CurrSamplesPerSec={512 / s}, MemAllocated=6.01GB, MaxMemAllocated=19.52GB",
    ),
    "DeepSpeed 0.16": (
        "DeepSpeed",
        lambda n, s: f"worker-0: [{_stamp(n)},646] [INFO] [timer.py:260:stop] epoch=0/micro_step={n}/global_step={n}, "
        f"RunningAvgSamplesPerSec=25.0123, CurrSamplesPerSec={512 / s}, MemAllocated=6.01GB, MaxMemAllocated=19.52GB",
    ),
    "DeepSpeed pipeline 0.3": (
        "DeepSpeed",
        lambda n, s: f"steps: {n} loss: 2.3456 iter time (s): {s:.3f} samples/sec: {512 / s:.3f}",
    ),
    "DeepSpeed pipeline 0.16": (
        "DeepSpeed",
        lambda n, s: f"steps: {n} loss: 2.3456 moe_loss: 0.0123 iter time (s): {s:.3f} samples/sec: {512 / s:.3f}",
    ),
    "torchtitan 2024": (
        "torchtitan",
        lambda n, s: f"{_stamp(n)},123 - root - INFO - step: {n:2d}  loss:  7.1000  memory: 34.10GiB(43.1%)  wps: "
        f"{65536 / s:,.0f}  mfu: 37.90%",
    ),
    "torchtitan 2025": (
        "torchtitan",
        lambda n, s: f"[titan] {_stamp(n)},123 - root - INFO - \x1b[31mstep: {n:2d}  \x1b[32mloss:  7.1000  "
        f"\x1b[38;2;180;60;0mgrad_norm:  0.5300  \x1b[38;2;54;234;195mmemory: 34.10GiB(43.1%)  \x1b[34mtps: "
        f"{65536 / s:,.0f}  \x1b[36mtflops: 1,375.20  \x1b[35mmfu: 37.90%\x1b[39m",
    ),
    "MaxText 2023": (
        "MaxText",
        lambda n, s: f"completed step: {n}, seconds: {s:.3f}, TFLOP/s: 375.000, loss: 7.034",
    ),
    "MaxText 2026": (
        "MaxText",
        lambda n, s: f"I0804 08:14:00.000000 1 metric_logger.py:196] completed step: {n}, seconds: {s:.3f}, "
        "TFLOP/s/device: 375.000, Tokens/s/device: 3200.000, total_weights: 393216, loss: 7.034, lm_loss: 7.034",
    ),
    "MLPerf": (
        "MLPerf",
        lambda n, s: ":::MLLOG " + json.dumps(
            {
                "namespace": "", "time_ms": 1732191234000 + n * 20480, "event_type": "POINT_IN_TIME",
                "key": "tracked_stats", "value": {"train_step_time": s}, "metadata": {"file": "/w/c.py", "step": n},
            }
        ),
    ),
}  # fmt: skip


def log_of(release: str, steps: int) -> str:
    """Return a log of so many steps."""
    _program, line = RELEASES[release]
    return "".join(f"{line(number, 20.48 + number % 7 * 1e-3)}\n" for number in range(1, steps + 1))
