"""A machine whose files lie in a folder as the kernel shows them is captured from there, and reads as that machine."""

from pathlib import Path

import msgspec
import pytest
from tests.cost import check_cost

from busbw.machine.capture.files import Collection
from busbw.machine.capture.snapshot import take_kernel
from busbw.machine.read.hardware import hardware_of
from busbw.model.host import Snapshot

from .hosts import snapshot_of
from .machines import MACHINES


def build(root: Path, snapshot: Snapshot) -> None:
    """Write the files and links of a snapshot below `root`; what links point to is there, as in sysfs."""
    for link in sorted(snapshot.links, key=lambda link: link.path.count("/")):
        at = root / link.path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(link.target)
        (at.parent.resolve() / link.target).resolve().mkdir(parents=True, exist_ok=True)
        if link.path.startswith("/sys/class/net/"):
            (at / "device").symlink_to("../..")
    for file in snapshot.files:
        at = root / file.path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(file.text or "")


def captured(root: Path, snapshot: Snapshot) -> Snapshot:
    """Return what is captured below `root`, with the answers of `snapshot`."""
    taken = Collection(root, timeout_s=30)
    take_kernel(taken)
    return msgspec.structs.replace(snapshot, files=taken.files, links=taken.links)


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_is_captured_from_its_files(name: str, tmp_path: Path) -> None:
    snapshot = snapshot_of(MACHINES[name])
    build(tmp_path, snapshot)
    assert hardware_of(captured(tmp_path, snapshot)) == hardware_of(snapshot)


def test_a_large_machine_is_captured_in_seconds(tmp_path: Path) -> None:
    snapshot = snapshot_of(MACHINES["gh200-slingshot"])
    build(tmp_path, snapshot)
    folder = tmp_path / "sys/bus/pci/devices"
    for bus in range(200):
        for function in range(4):
            device = folder / f"0100:{bus:02x}:00.{function}"
            device.mkdir()
            for name in ("class", "vendor", "device", "numa_node", "local_cpulist", "max_link_speed"):
                (device / name).write_text("0x060400\n")
    hardware = check_cost(lambda: hardware_of(captured(tmp_path, snapshot)), most_s=5)
    assert len(hardware.pci) == 816
