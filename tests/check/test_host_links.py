"""Copies between the host and GPUs: over the stand-in of the driver, and the way of links as the kernel shows it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.nccl.conftest import standin  # noqa: F401 - a fixture
from tests.standin.build import StandIn

from busbw.api.nodes.screenings import screen_here
from busbw.model.check.screening import Screening
from busbw.rank.screening.host_links import pci_links


def linked(driver: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    words = (sys.executable, "-P", "-m", "busbw.rank.screening.host_links", str(driver), "0.05", "60")
    given = {**os.environ, "STANDIN_GPUS": "2", **environment}
    return subprocess.run(words, env=given, capture_output=True, text=True, timeout=60, check=False)


def test_each_gpu_is_measured_in_both_directions_and_a_slow_link_shows(standin: StandIn) -> None:  # noqa: F811
    done = linked(standin.cuda, STANDIN_SLOW_LINK="1")

    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert (first["gpu"], first["bus_id"], first["intact"], len(first["to_gpu"])) == (0, "0000:10:00.0", True, 5)
    for direction in ("to_gpu", "from_gpu"):
        assert max(second[direction]) < 0.6 * max(first[direction]), (first, second)


def test_a_driver_that_refuses_is_told_with_what_was_measured_before(standin: StandIn) -> None:  # noqa: F811
    done = linked(standin.cuda, STANDIN_REFUSE="cuMemHostAlloc=2")

    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr.startswith("cannot measure: cuMemHostAlloc")


def test_a_host_without_a_driver_has_no_gpu_and_is_not_open() -> None:
    found = screen_here(Screening(parts=("pcie",), time_limit_s=30.0))

    assert [(each.part, each.because, each.absent) for each in found.unscreened] == [
        ("pcie", "no GPU that the kernel shows", True)
    ]


def test_gpus_of_this_host_are_screened_one_by_one(standin: StandIn, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setenv("LD_LIBRARY_PATH", str(standin.folder))
    monkeypatch.setenv("STANDIN_GPUS", "2")

    found = screen_here(Screening(parts=("pcie",), time_limit_s=30.0, pcie_s=0.05))

    assert [(each.measure, each.partner) for each in found.readings] == [
        ("to_gpu", "GPU 0 (0000:10:00.0)"), ("from_gpu", "GPU 0 (0000:10:00.0)"),
        ("to_gpu", "GPU 1 (0000:11:00.0)"), ("from_gpu", "GPU 1 (0000:11:00.0)"),
    ]  # fmt: skip
    assert (found.unscreened, found.changed) == ((), ())


def test_the_way_of_a_gpu_is_its_link_and_those_of_the_bridges_above_it(tmp_path: Path) -> None:
    gpu = tmp_path / "pci0000:00" / "0000:00:01.0" / "0000:01:00.0" / "0000:02:00.0"
    gpu.mkdir(parents=True)
    for folder, speed in ((gpu, "32.0 GT/s PCIe"), (gpu.parent, "16.0 GT/s PCIe")):
        (folder / "max_link_speed").write_text(f"{speed}\n")
        (folder / "max_link_width").write_text("16\n")
    devices = tmp_path / "devices"
    devices.mkdir()
    (devices / "0000:02:00.0").symlink_to(gpu)

    found = pci_links("0000:02:00.0", devices)

    assert [(each["bus_id"], each["most_speed"], each["most_width"]) for each in found] == [
        ("0000:02:00.0", "32.0 GT/s PCIe", "16"), ("0000:01:00.0", "16.0 GT/s PCIe", "16"),
        ("0000:00:01.0", None, None),
    ]  # fmt: skip
    assert pci_links("0000:ff:00.0", devices) == []
