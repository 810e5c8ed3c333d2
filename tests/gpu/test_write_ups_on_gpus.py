"""What the pages of the write-ups do on GPUs: goals, a bad binding against the launcher's own, and what is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import GUARDS

SHORT = ("-b", "1M", "-e", "64M", "-f", "64", "--time-limit", "3", "--min-samples", "5")
# Any platform with such GPUs: what is recommended for it is applied, kept or told, whatever machine this is.
H100 = ("--platform", "azure-nd-h100-v5")
OURS = (sys.executable, "-c", "from busbw.cli import main; main()")


def standings(run: dict) -> dict[str, str]:
    return {each["setting"]["name"]: each["standing"] for each in run["plan"]["recommended"]["settings"]}


@pytest.mark.parametrize("goal", ["nvlink-check", "bandwidth"])
def test_a_goal_is_applied_and_what_is_set_here_stays(run, goal: str) -> None:
    found = run("all_reduce", "--ranks", "2", "--goal", goal, *H100, *SHORT)

    assert found.run["plan"]["recommended"]["goal"] == goal
    assert standings(found.run)["CUDA_DEVICE_ORDER"] in ("applied", "already", "kept")
    # Multicast stays off, whatever is recommended.
    assert standings(found.run).get("NCCL_NVLS_ENABLE", "kept") == "kept"
    assert all(point["verified"] and point["wrong"] is None for point in found.points)


def test_a_loopback_on_a_host_without_nics_is_not_called_ok(run) -> None:
    if any(Path("/sys/class/infiniband").glob("*")):
        pytest.skip("this host has NICs for a loopback")
    found = run("all_reduce", "--ranks", "2", "--goal", "nic-check", *H100, *SHORT)

    assert standings(found.run)["NCCL_P2P_DISABLE"] == "applied"
    assert standings(found.run)["NCCL_SHM_DISABLE"] == "applied"
    assert found.run["verdict"]["outcome"] in ("slow", "cannot_tell")


def test_algorithms_of_msccl_are_refused_where_the_library_does_not_read_them(run) -> None:
    found = run("alltoall", "--ranks", "2", *SHORT, code=(2,), MSCCL_XML_FILES="two-step.xml")

    assert "it is for MSCCL" in found.stderr


def test_a_check_of_gpus_is_no_run_over_mpi(tmp_path: Path) -> None:
    argv = [*OURS, "run", "all_reduce", "-n", "2", "--goal", "nvlink-check", *H100, "--out", str(tmp_path / "run")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 2
    assert "this run measures MPI" in done.stderr


def test_a_bad_binding_is_seen_in_the_placement_and_never_called_faster(tmp_path: Path) -> None:
    """Cut short: too few launches to claim anything; STUDY=1 of scripts/gpu_check.sh has the whole study."""
    argv = [*OURS, "compare", "all_reduce", "--backend", "native-nccl", "--ranks", "2", "--no-multicast", "-R", "1"]
    argv += ["-b", "4K", "-e", "4K", "--time-limit", "2", "--min-samples", "5", "--blocks", "3", "--seed", "1"]
    argv += ["--set", "--bind-to default", "--set", "--bind-to masks --cpus 0 --cpus 0"]
    argv += ["--out", str(tmp_path / "pinning"), "--json"]

    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, **GUARDS})

    assert done.returncode in (0, 1, 4), done.stderr[-2000:]
    comparison = json.loads(done.stdout)
    bad = comparison["sides"][1]["rank_placements"]
    assert {tuple(rank["cpus"]) for rank in bad} == {(0,)}
    assert "shown faster" not in done.stdout
