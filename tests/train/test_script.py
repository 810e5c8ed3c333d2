"""The job of a training run: the write-up's masks and environment, its container, checked by env lint."""

from pathlib import Path

import pytest
from tests.warm import warm_busbw

from busbw.api.training.scripts import ScriptRequest, training_script
from busbw.base.errors import InputError

# As the interconnect study prints it, --cpu-bind=mask_cpu of its launch.sh.
PUBLISHED = ",".join(f"fff{'000' * place}" for place in range(8))


def asked(folder: Path, **fields: object) -> ScriptRequest:
    told = {"workload": "grok1-314b", "platform": "azure-nd-h100-v5", "gpus": 64, "stage": "/shared/grok1", **fields}
    return ScriptRequest(directory=folder, **told)  # type: ignore[arg-type]


def test_the_job_has_the_masks_and_the_environment_of_the_write_up(tmp_path: Path) -> None:
    made = training_script(asked(tmp_path / "job", dtype="fp8", partition="hpc"))
    job, launch = ((tmp_path / "job" / name).read_text() for name in ("job.sh", "launch.sh"))
    even, numa = made.masks
    assert (even.cpus_each, even.chosen, numa.cpus_each, numa.chosen) == (12, True, 48, False)
    assert ",".join(even.masks) == PUBLISHED
    assert f"--cpu-bind=mask_cpu:{PUBLISHED} " in job
    assert "--container-image=/shared/grok1/nvidia+nemo+dev.sqsh" in job
    assert "#SBATCH --nodes=8" in job
    assert "#SBATCH --partition=hpc" in job
    assert "DTYPE=fp8" in launch
    assert "FP8_ENABLED=true" in launch
    assert f"RESULT_DIR={tmp_path / 'job'}" in launch
    assert made.checked.counts.errors + made.checked.counts.warnings == 0


def test_the_whole_numa_node_can_be_asked_for(tmp_path: Path) -> None:
    made = training_script(asked(tmp_path / "job", cpus="numa", dtype="bf16"))
    job = (tmp_path / "job" / "job.sh").read_text()
    assert f"--cpu-bind=mask_cpu:{','.join(made.masks[1].masks)} " in job
    assert dict(made.environment)["FP8_ENABLED"] == "false"


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"stage": None}, "folder that all nodes see"),
        ({"workload": "llama3-70b"}, "name the program"),
        ({"workload": "toy-moe", "gpus": None, "program": ("./train",)}, "2 GPUs are no whole nodes"),
        ({"gpus": 100}, "do not divide"),
        ({"dtype": "fp16"}, "grok1-314b has no fp16"),
    ],
)
def test_a_job_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, fields: dict[str, object], cause: str
) -> None:
    with pytest.raises(InputError, match=cause):
        training_script(asked(tmp_path / "job", **fields))
    assert list(tmp_path.iterdir()) == []


def test_a_program_of_ones_own_is_started_with_its_data_type(tmp_path: Path) -> None:
    done = warm_busbw(
        "train", "script", "llama3-70b", "--platform", "azure-nd-h100-v5", "-o", str(tmp_path / "job"), "--",
        "python", "train.py",
    )  # fmt: skip
    assert done.returncode == 0
    assert "12 CPUs a process" in done.stdout
    assert "DTYPE=bf16" in (tmp_path / "job" / "launch.sh").read_text()
    assert (tmp_path / "job" / "job.sh").read_text().rstrip().endswith("python train.py")
