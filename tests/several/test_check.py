"""`busbw check` over hosts whose links differ: from one host, and as a program of Slurm's health check."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.runner import clean_environment, environment_of, program
from tests.lab.host import ENVIRONMENT
from tests.lab.lab import Lab
from tests.lab.slurm import Cluster
from tests.patience import wait_until

pytestmark = pytest.mark.root

# A sound link of the lab carries Gb/s, also on busy cores; a throttled one is far below what is asked for.
THROTTLE = "10mbit"
PROFILE = """
title = "the hosts of the lab"
stages = ["screening"]
time_limit_s = 30
when_cannot_tell = "pass"
[screening]
parts = ["transfer"]
[transfer]
partners = "n[0-3]"
seconds = 0.3
[[threshold]]
measure = "send"
at_least = "60Mb/s"
source = "tc tbf, in this test"
[[threshold]]
measure = "receive"
at_least = "60Mb/s"
source = "tc tbf, in this test"
"""

PAIRS = """
title = "pairs of the hosts of the lab"
stages = ["fabric"]
time_limit_s = 100
[screening]
parts = []
[fabric]
metrics = ["bandwidth"]
size = "8K"
pair_s = 0.05
severity = "error"
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "quick.toml"
    path.write_text(PROFILE)
    return path


def environment(folder: Path) -> dict[str, str]:
    """Return what a command on a host gets."""
    path = clean_environment(environment_of("Open MPI"), folder)["PATH"]
    return {**ENVIRONMENT, "PATH": path, "BUSBW_RUNS": str(folder / "runs"), "NO_COLOR": "1"}


def checked(lab: Lab, folder: Path, *arguments: object) -> tuple[int, str, str]:
    busbw = environment_of("Open MPI") / "bin" / "busbw"
    done = lab.run("n0", [busbw, "check", *map(str, arguments)], env=environment(folder), cwd=folder, timeout_s=120)
    assert "Traceback" not in done.stderr, done
    return done.returncode, done.stdout, done.stderr


def test_a_throttled_host_is_named_a_silent_one_is_told_and_the_others_are_fit(
    lab: Lab, tmp_path: Path, profile: Path
) -> None:
    lab.shape("n2", THROTTLE)
    lab.cut("n3")
    asked = ("--profile", profile, "--hosts", "n[0-3]", "--interface", "eth0", "--spares", "n7")
    where = tmp_path / "check"

    code, out, err = checked(lab, tmp_path, *asked, "--out", where, "--drain-list", "drain", "--json")

    report = json.loads(out)
    assert (code, report["outcome"]) == (1, "not_fit"), (out, err)
    found = {node["host"]: (node["outcome"], {each["code"] for each in node["findings"]}) for node in report["nodes"]}
    assert found == {
        "n0": ("ok", set()), "n1": ("ok", set()), "n2": ("error", {"CHK004"}), "n3": ("error", {"CHK005"}),
    }  # fmt: skip
    drain = (tmp_path / "drain").read_text()
    assert [line for line in drain.splitlines() if not line.startswith("#")] == ["n2", "n3"]
    assert "# in the place of n2: n7" in drain

    # Whole already: nothing is measured again, and other hosts are another check.
    lab.shape("n2", None)
    assert checked(lab, tmp_path, "--resume", where)[0] == 1
    code, _out, err = checked(lab, tmp_path, "--resume", where, "--hosts", "n[0-2]")
    assert code == 2
    assert "this check belongs to n[0-3]" in err


def test_a_throttled_host_is_named_by_the_stage_fabric_and_drained(lab: Lab, tmp_path: Path) -> None:
    lab.shape("n1", "4mbit")
    (tmp_path / "pairs.toml").write_text(PAIRS)
    asked = ("--profile", "pairs.toml", "--hosts", "n[0-3]", "--interface", "eth0")

    code, out, err = checked(lab, tmp_path, *asked, "--out", "check", "--drain-list", "drain", "--json")

    report = json.loads(out)
    assert (code, report["outcome"]) == (1, "not_fit"), (out, err)
    (stage,) = report["stages"]
    assert (stage["name"], stage["state"], stage["suspects"]) == ("fabric", "done", ["n1"]), stage
    assert [each["host"] for each in report["drain"]] == ["n1"]
    assert "fabric: FAB" in (tmp_path / "drain").read_text()


@pytest.fixture
def health_check(slurm_cluster: Cluster, lab: Lab, tmp_path: Path, profile: Path) -> Iterator[Path]:
    """Have Slurm start the check on every node every ten seconds, as the documentation says; return where runs are."""
    busbw = environment_of("Open MPI") / "bin" / "busbw"
    wrapper = program(
        tmp_path / "busbw-health",
        f"#!/bin/sh\nexport BUSBW_RUNS={shlex.quote(str(tmp_path / 'runs'))}\n"
        f"export PATH={shlex.quote(environment(tmp_path)['PATH'])}:$PATH\n"
        f"{busbw} check --profile {shlex.quote(str(profile))} --drain-list - --drain-form scontrol "
        f"2>> {shlex.quote(str(tmp_path))}/err-$(hostname) | sh\n",
    )
    conf = lab.folder / "slurm" / "slurm.conf"
    before = conf.read_text(encoding="ascii")
    lines = f"HealthCheckProgram={wrapper}\nHealthCheckInterval=10\nHealthCheckNodeState=ANY\n"
    conf.write_text(before + lines, encoding="ascii")
    slurm_cluster.run(["scontrol", "reconfigure"])
    yield tmp_path / "runs"
    conf.write_text(before, encoding="ascii")
    slurm_cluster.run(["scontrol", "reconfigure"])
    # What was begun ends by itself.
    wait_until(lambda: not any(lab.processes(host) for host in lab.hosts), 60, "the end of the checks")


def test_slurms_health_check_drains_the_throttled_host_and_leaves_the_others(
    slurm_cluster: Cluster, lab: Lab, tmp_path: Path, health_check: Path
) -> None:
    lab.shape("n2", THROTTLE)

    def outcomes(host: str) -> list[str]:
        path = health_check / "checks" / "history" / f"{host}.jsonl"
        return [json.loads(line)["outcome"] for line in path.read_text().splitlines()] if path.is_file() else []

    def said() -> str:
        texts = [f"{path.name}: {path.read_text()}" for path in tmp_path.glob("err-*")]
        return "\n".join([str(slurm_cluster.states()), *texts, slurm_cluster.log()[-3000:]])

    wait_until(lambda: slurm_cluster.states()["n2"].startswith("drain"), 90, said)
    wait_until(lambda: all("ok" in outcomes(host) for host in ("n0", "n1", "n3")), 90, said)
    assert {host: state for host, state in slurm_cluster.states().items() if host != "n2"} == {
        "n0": "idle", "n1": "idle", "n3": "idle",
    }  # fmt: skip
    reason = slurm_cluster.run(["sinfo", "--noheader", "--nodes=n2", "--format=%E"]).stdout
    assert reason.startswith("busbw check: CHK004 n2 is slow in"), reason
