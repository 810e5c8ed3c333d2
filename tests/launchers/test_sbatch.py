"""The script that sbatch is given."""

import shutil
import subprocess
from pathlib import Path

import pytest

from busbw.base.errors import InputError
from busbw.measure.launchers import sbatch
from busbw.model.launch import Batch

from .starts import make_start

FULL = Batch(
    name="busbw-x.1",
    nodes=4,
    tasks_per_node=8,
    gpus_per_node=8,
    cpus_per_task=12,
    partition="hpc,gpu",
    account="a1",
    qos="high",
    reservation="r",
    time_s=90_061,
    exclusive=True,
    requeue=True,
    warning_s=120,
    array="0-5:2,9%2",
    options=("--constraint=h100&nvme", "--mem=0"),
)
SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=busbw-x.1
#SBATCH --partition=hpc,gpu
#SBATCH --account=a1
#SBATCH --qos=high
#SBATCH --reservation=r
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=1-01:02:00
#SBATCH --signal=B:USR1@120
#SBATCH --array=0-5:2,9%2
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=/runs/x/slurm-%A_%a.out
#SBATCH --error=/runs/x/slurm-%A_%a.err
#SBATCH --constraint=h100&nvme
#SBATCH --mem=0

unset OLD
export NCCL_IB_HCA='=mlx5_0,mlx5_1'
export LD_LIBRARY_PATH=/opt/l"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
cd -- /runs/x || exit
exec /bin/busbw run 'all reduce'
"""


def full_script() -> str:
    start = make_start(
        ("/bin/busbw", "run", "all reduce"),
        (("NCCL_IB_HCA", "=mlx5_0,mlx5_1"),),
        batch=FULL,
        unset=("OLD",),
        prepend=(("LD_LIBRARY_PATH", "/opt/l"),),
    )
    job = sbatch.job(start)
    assert job.argv == ("sbatch", "--parsable", "/runs/x/job.sh")
    return job.files[0].text


def test_a_script_is_complete():
    assert full_script() == SCRIPT


@pytest.mark.parametrize("text", [SCRIPT, sbatch.job(make_start(("p", "$x `y` \\ 'z'"), batch=FULL)).files[0].text])
def test_shellcheck_finds_nothing_in_it(text: str, tmp_path: Path):
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here: apt-get install shellcheck")
    script = tmp_path / "job.sh"
    script.write_text(text, encoding="utf-8")

    assert subprocess.run(["shellcheck", str(script)], capture_output=True, text=True, check=False).stdout == ""


def test_a_job_that_must_not_start_twice_says_so():
    text = sbatch.job(make_start(batch=Batch(name="x", nodes=1))).files[0].text

    assert "#SBATCH --no-requeue\n" in text
    assert "#SBATCH --output=/runs/x/slurm-%j.out\n" in text


@pytest.mark.parametrize(
    ("time_s", "wanted"), [(1, "00:01:00"), (60, "00:01:00"), (3601, "01:01:00"), (172_800, "2-00:00:00")]
)
def test_times_are_whole_minutes(time_s: int, wanted: str):
    text = sbatch.job(make_start(batch=Batch(name="x", nodes=1, time_s=time_s))).files[0].text

    assert f"#SBATCH --time={wanted}\n" in text


@pytest.mark.parametrize(
    ("changes", "directory", "reason"),
    [
        ({"name": "a b"}, "/runs/x", "name of the job"),
        ({"name": "-x"}, "/runs/x", "name of the job"),
        ({"partition": "a;b"}, "/runs/x", "partition"),
        ({"nodes": 0}, "/runs/x", "nodes"),
        ({"array": "0-"}, "/runs/x", "array"),
        ({"options": ("-x",)}, "/runs/x", "not a directive"),
        ({"options": ("--comment=a b",)}, "/runs/x", "as it is"),
        ({}, "/runs/a b", "this path"),
        ({}, "runs", "this path"),
    ],
)
def test_what_a_directive_cannot_say_is_refused(changes: dict[str, object], directory: str, reason: str):
    batch = Batch(**({"name": "x", "nodes": 1} | changes))  # type: ignore[arg-type]

    with pytest.raises(InputError, match=reason):
        sbatch.job(make_start(batch=batch, directory=directory))


def test_without_a_description_there_is_no_job():
    with pytest.raises(InputError, match="no batch job"):
        sbatch.job(make_start())
