"""How fast `busbw env lint` reads and checks shell, beside `bash -n`, which parses the same file and checks nothing.

    python benchmarks/env/lint.py [FILE] [--size 1M] [--rounds 7]

Both are run in turn, round by round, so that a busy machine slows them alike; the median of the time on a CPU counts.
What `busbw --version` takes, nearly all of it start-up, stands beside them. Without a file one is made of batch
scripts, each with settings, branches, a loop, three launches and a here-document. The aim is 1 s for 1 MB.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from busbw.base.units import parse_size

AIM_S_PER_MB = 1.0
JOB = """\
#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=8 --gpus-per-node=8
# settings of job {n}
module load openmpi/5.0
set -euo pipefail
HERE="$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)"
OUT=${{OUT:-/scratch/$USER/run-{n}}}
mkdir -p "$OUT" && cd "$OUT" || exit 1
export NCCL_DEBUG=WARN NCCL_IB_HCA==mlx5_0,mlx5_1
export NCCL_SOCKET_IFNAME="eth{n}"
ARGS=(--epochs 10 --lr 1e-3 --name "job {n}")
if [ -n "$VERBOSE" ]; then
  export NCCL_DEBUG=INFO
  echo "job {n} on $(hostname)" >> log.txt
else
  export NCCL_DEBUG=VERSION
fi
case "$MODE" in
  ring) export NCCL_ALGO=Ring ;;
  *) export NCCL_ALGO=Tree ;;
esac
for size in 8 16 32; do
  srun --mpi=pmix -n $size --export=ALL,OMP_NUM_THREADS=4 ./app --size "$size" "${{ARGS[@]}}" 2>&1 | tee -a out.log
done
mpirun -np 32 --map-by ppr:8:node \\
  -x NCCL_DEBUG -x LD_LIBRARY_PATH \\
  --mca pml ucx --mca btl ^openib \\
  python train.py --data /data/set-{n} --steps $((100 * {n}))
cat > run-{n}.conf <<EOF
name = job-{n}
path = $OUT/result
EOF
awk '{{ print $1, $2 }}' out.log | sort -k2 -n > sorted-{n}.txt
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("file", nargs="?", type=Path, help="a shell script")
    arguments.add_argument("--size", default="1M", help="of the script that is made")
    arguments.add_argument("--rounds", type=int, default=7)
    chosen = arguments.parse_args()
    busbw = str(Path(sys.executable).with_name("busbw"))
    with tempfile.TemporaryDirectory() as folder:
        file = chosen.file or written(Path(folder, "jobs.sh"), parse_size(chosen.size))
        commands = {
            "bash -n": ["bash", "-n", str(file)],
            "busbw --version": [busbw, "--version"],
            "busbw env lint": [busbw, "env", "lint", str(file), "--as", "shell"],
        }
        times_s: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(chosen.rounds):
            for name, argv in commands.items():
                times_s[name].append(cpu_s(argv))
        megabytes = file.stat().st_size / 1e6
    medians_s = {name: statistics.median(each) for name, each in times_s.items()}
    print(f"{megabytes:.2f} MB of shell, median of {chosen.rounds} rounds")
    for name, time_s in medians_s.items():
        print(f"{name:<16} {time_s:7.3f} s on a CPU")
    lint_s = medians_s["busbw env lint"]
    print(f"busbw env lint takes {lint_s / medians_s['bash -n']:.0f} times as long as bash -n")
    print(f"aim: {AIM_S_PER_MB} s/MB; {lint_s / megabytes:.2f} s/MB")


def written(path: Path, size: int) -> Path:
    """Write batch scripts one after the other until the size is reached."""
    count = size // len(JOB) + 1
    path.write_text("".join(JOB.format(n=number) for number in range(count)))
    return path


def cpu_s(argv: list[str]) -> float:
    """Run a command; return how long it was on a CPU, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"{argv[0]} failed: {done.stderr.decode(errors='replace')}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
