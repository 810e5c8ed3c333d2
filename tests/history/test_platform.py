"""The platform of a run: asked for or recognised when it is planned, and what the history makes of it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.probe import machines
from tests.probe.hosts import Machine, snapshot_of

from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.machine.capture.host import shows_platform
from busbw.measure.plan.platform import with_platform
from busbw.model.settings import JobEnvironment

from .stored import keep, make_run

HERE = JobEnvironment(where="here", environment={"A": "1"})


def kernel_of(machine: Machine, root: Path) -> Path:
    """Lay out what the kernel of a machine shows, below `root`."""
    snapshot = snapshot_of(machine)
    for link in snapshot.links:
        path = root / link.path.lstrip("/")
        (path.parent / link.target).mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(link.target)
    for file in snapshot.files:
        path = root / file.path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text or "")
    return root


def test_a_platform_that_is_asked_for_is_recorded_by_its_id(tmp_path: Path):
    found = with_platform(HERE, "NDv5", tmp_path)

    assert (found.platform, found.platform_from) == ("azure-nd-h100-v5", "asked")
    assert found.environment == HERE.environment


def test_a_platform_that_there_is_not_is_an_error(tmp_path: Path):
    with pytest.raises(InputError, match="no platform is called 'nonsense'"):
        with_platform(HERE, "nonsense", tmp_path)


def test_a_host_is_recognised_by_what_its_kernel_shows(tmp_path: Path):
    found = with_platform(HERE, None, kernel_of(machines.MACHINES["aws-p5"], tmp_path))

    assert (found.platform, found.platform_from) == ("aws-p5", "firmware")


@pytest.mark.parametrize("name", machines.MACHINES)
def test_a_host_that_is_a_platform_shows_it_at_a_glance(name: str, tmp_path: Path):
    root = kernel_of(machines.MACHINES[name], tmp_path)
    is_known = with_platform(HERE, None, root).platform is not None

    assert shows_platform(root) or not is_known


def test_a_host_without_gpus_and_fabric_is_no_platform(tmp_path: Path):
    assert with_platform(HERE, None, tmp_path) == HERE
    assert not shows_platform(tmp_path)


def test_a_run_says_its_platform_and_is_found_by_it(base: Path):
    keep(make_run(0, platform="aws-p5"), base)
    keep(make_run(1), base)

    def call(*arguments: str) -> str:
        return CliRunner().invoke(busbw, arguments).stdout

    assert [row["platform"] for row in json.loads(call("runs", "--platform", "aws*", "--json"))] == ["aws-p5"]
    assert "platform: aws-p5\n" in call("show", "20260101T000000-0000")
    assert "platform:" not in call("show", "20260102T000000-0001")
    assert json.loads(call("judge", "20260101T000000-0000", "--json"))["machine"] == "aws-p5"
    assert json.loads(call("judge", "20260102T000000-0001", "--json"))["machine"] is None
