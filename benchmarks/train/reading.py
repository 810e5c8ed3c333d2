"""How fast `busbw train read` reads a log, and in how much memory.

    python benchmarks/train/reading.py [--size 100M] [--every 20] [--keep FILE]
    python benchmarks/train/reading.py --forms [--size 10M]

The log is made with a fixed seed: steps as Megatron-LM prints them, with so many other lines between two of them (0:
every line is a step). CPU time counts, of the reader alone, in one process. `grep -c` reads the same file in the same
run, which is in the page cache for both. With --forms it is a log of each form instead, whose every line is a step: of
the releases in tests/train/releases.py, and a progress bar.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from busbw.api.training.reading import TrainReadRequest, train_read
from busbw.base.units import parse_size
from busbw.train.reading.reader import StepReader

OTHERS = (
    "[NeMo W 2026-11-21 12:34:56 nemo_logging:361] a warning about a thing that does not matter at all in this place",
    "node017:12345:12399 [3] NCCL INFO Channel 07/24 : 3[3] -> 4[4] via P2P/CUMEM",
    "W1121 12:34:56.123 torch/distributed/run.py:766] Setting OMP_NUM_THREADS environment variable for each process",
)
BLOCK_BYTES = 2**20
STEP = (
    " [2026-11-21 12:34:56.123456] iteration {step:8d}/  500000 | consumed samples: {samples:12d} | elapsed time per "
    "iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): 401.2 | learning rate: 1.500000E-04 | global batch "
    "size:  1024 | lm loss: 7.123456E+00 | loss scale: 1.0 | grad norm: 0.931 | number of skipped iterations:   0 |"
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--size", default="100M", help="of the log")
    arguments.add_argument("--every", type=int, default=20, help="lines between two steps")
    arguments.add_argument("--keep", type=Path, help="keep the log here")
    arguments.add_argument("--forms", action="store_true", help="a dense log of each form")
    chosen = arguments.parse_args()
    if chosen.forms:
        time_forms(parse_size(chosen.size))
        return
    with tempfile.TemporaryDirectory() as folder:
        log = chosen.keep or Path(folder, "job.log")
        steps = write_log(log, parse_size(chosen.size), chosen.every)
        megabytes = log.stat().st_size / 1e6
        print(f"{megabytes:.0f} MB, {steps} steps, {chosen.every} lines between two of them")
        start_s = time.process_time()
        (read,) = train_read(TrainReadRequest(sources=(str(log),))).logs
        spent_s = time.process_time() - start_s
        assert len(read.columns.numbers) == steps
        most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"busbw train read: {spent_s:.2f} s of CPU, {megabytes / spent_s:.0f} MB/s, {most_mb:.0f} MB of memory")
        before_s = time.perf_counter()
        subprocess.run(["grep", "-c", "elapsed time per iteration", log], check=True, stdout=subprocess.PIPE)
        print(f"grep -c: {megabytes / (time.perf_counter() - before_s):.0f} MB/s")


def time_forms(size_bytes: int) -> None:
    """Print how fast a dense log of each form is read: megabytes a second of CPU, and bytes a line."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.train.releases import RELEASES  # noqa: PLC0415 - from the folder above

    forms = {name: line for name, (_program, line) in RELEASES.items()}
    forms["progress bar"] = lambda n, _s: (
        f" 50%|#     | {n}/9000000 [{n // 3600:02d}:{n % 3600 // 60:02d}:{n % 60:02d}<26:00,  1.64s/it]"
    )
    for name, line in forms.items():
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "job.log")
            count = max(size_bytes // len(line(1000, 20.48)), 100)
            log.write_text("".join(f"{line(n, 20.48 + n % 7 * 1e-3)}\n" for n in range(1, count + 1)))
            reader = StepReader(source=name)
            start_s = time.process_time()
            with log.open("rb") as file:
                while block := file.read(BLOCK_BYTES):
                    reader.feed(block)
            reader.finish()
            spent_s = time.process_time() - start_s
            size = log.stat().st_size
            print(f"{name:24} {size / spent_s / 1e6:6.1f} MB/s, {size / count:4.0f} B a line", flush=True)


def write_log(path: Path, size_bytes: int, every: int) -> int:
    """Write a log of about that size, and return how many steps are in it."""
    draw = random.Random(3)  # noqa: S311 - a log, not a secret
    written, step = 0, 0
    with path.open("w") as file:
        while written < size_bytes:
            step += 1
            for _ in range(every):
                written += file.write(f"{draw.choice(OTHERS)}\n")
            written += file.write(STEP.format(step=step, samples=step * 1024, ms=draw.gauss(18400, 50)) + "\n")
    return step


if __name__ == "__main__":
    main()
