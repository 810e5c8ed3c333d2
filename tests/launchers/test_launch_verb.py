"""`busbw launch` prints a script, for every platform and launcher, that bash, shellcheck and lint accept."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.api.launches import launch_line
from busbw.api.settings import lint_file
from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.machine.named import platforms
from busbw.measure.launchers.registry import writing
from busbw.model.launch import LaunchRequest
from busbw.show.text.recommendation import launch_script

from .starts import MANAGERS

LAUNCHERS = writing()
GPU_PLATFORMS = [each.platform.id for each in platforms() if each.platform.kind == "gpu" and each.platform.gpu.count]
# Settings differ by platform, and these hand them on as srun does: three platforms are enough for their words.
PAIRS = [
    (platform, launcher)
    for launcher in LAUNCHERS
    for platform in (GPU_PLATFORMS[:3] if launcher in MANAGERS else GPU_PLATFORMS)
]
PROGRAM = ("/opt/nccl-tests/build/all_reduce_perf", "-b", "8", "-e", "8G", "-f", "2")


def script_of(platform: str, launcher: str, folder: str = "/runs/1", **changes: object) -> str:
    asked = {"image": "registry.example/nccl:1"} if launcher in ("mpijob", "kubernetes-job") else {}
    request = LaunchRequest(program=PROGRAM, platform=platform, nodes=2, launcher=launcher, **asked, **changes)
    return launch_script(launch_line(request, folder), folder, with_files=True)


@pytest.mark.parametrize(("platform", "launcher"), PAIRS)
def test_the_script_is_one_and_nothing_is_wrong_with_its_settings(platform: str, launcher: str, tmp_path: Path) -> None:
    path = tmp_path / "launch.sh"
    path.write_text(script_of(platform, launcher))

    done = subprocess.run(["bash", "-n", path], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found = lint_file(str(path), platform=platform)
    assert [each for each in found.findings if each.severity in ("error", "warning")] == []


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_shellcheck_accepts_the_script(launcher: str, tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("needs shellcheck")
    path = tmp_path / "launch.sh"
    path.write_text(script_of("azure-nd-h100-v5", launcher))

    done = subprocess.run(["shellcheck", path], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


def test_files_and_script_are_written_and_start_from_any_folder(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        busbw,
        ["launch", "--platform", "azure-nd-h100-v5", "--nodes", "2", "-o", str(tmp_path / "a b"), "--", *PROGRAM],
    )

    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "a b").iterdir()) == ["hosts", "launch.sh", "on-cpus"]
    assert (tmp_path / "a b" / "hosts").read_text() == "HOST1 slots=8\nHOST2 slots=8\n"
    assert f"'{tmp_path}/a b/hosts'" in (tmp_path / "a b" / "launch.sh").read_text()


def test_json_has_the_job_and_the_reasons() -> None:
    done = CliRunner().invoke(busbw, ["launch", "--platform", "azure-ndv4", "--json", "--", "./train"])

    line = json.loads(done.output)
    assert line["job"]["argv"][-1] == "./train"
    assert {setting["name"] for setting in line["recommendation"]["settings"]} >= {"NCCL_TOPO_FILE"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"launcher": "qsub"}, "there is no launcher"),
        ({"mpi": "lam"}, "is no MPI that is known"),
        ({"launcher": "mpijob"}, "pods need an image"),
        ({"nodes": 0}, "0 nodes"),
        ({"hosts": "n[0-2]", "nodes": 2}, "3 hosts are named for 2 nodes"),
        ({"binding": "masks", "ranks_per_node": 3}, "cannot tell which CPUs"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        launch_line(LaunchRequest(program=PROGRAM, platform="azure-nd-h100-v5", **changes), "/runs/1")
