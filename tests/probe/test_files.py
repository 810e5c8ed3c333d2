"""Files of the machine are taken as they are, within bounds, and what cannot be read is recorded."""

import os
from pathlib import Path

from busbw.machine.capture.files import Collection
from busbw.machine.capture.snapshot import take_kernel
from busbw.model.host import CapturedFile, CapturedLink


def collection(root: Path) -> Collection:
    return Collection(root, timeout_s=10)


def test_a_file_keeps_its_text_under_its_path_on_the_host(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text('ID="x"\n')
    taken = collection(tmp_path)
    assert taken.file("/etc/os-release") == 'ID="x"\n'
    assert taken.file("/etc/absent") is None
    assert taken.files == (CapturedFile(path="/etc/os-release", text='ID="x"\n'),)


def test_what_is_there_and_is_no_file_is_recorded_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    taken = collection(tmp_path)
    taken.file("/folder")
    assert taken.files == (CapturedFile(path="/folder", text=None, reason="is not a file"),)


def test_a_pipe_without_a_writer_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    taken = collection(tmp_path)
    assert taken.file("/pipe") is None
    assert taken.files == (CapturedFile(path="/pipe", text=None, reason="is not a file"),)


def test_a_large_file_is_cut(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 2**20)
    assert len(collection(tmp_path).file("/large") or "") == 2**16


def test_a_link_is_taken_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("../nowhere/0000:0f:00.0")
    taken = collection(tmp_path)
    assert taken.link("/link") == "../nowhere/0000:0f:00.0"
    assert taken.link("/absent") is None
    assert taken.links == (CapturedLink(path="/link", target="../nowhere/0000:0f:00.0"),)


def test_when_the_time_is_over_nothing_more_is_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    late = Collection(tmp_path, timeout_s=-1)
    assert late.file("/file") is None
    assert (late.files, late.is_full) == ((), True)


def test_one_processor_stands_for_all_and_its_serial_number_stays(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    one = "processor\t: {}\nmodel name\t: X\nSerial\t\t: 00000000abcdef\n\n"
    (tmp_path / "proc" / "cpuinfo").write_text("".join(one.format(cpu) for cpu in range(512)))
    (tmp_path / "proc" / "modules").write_text("nvidia 1 2 - Live 0xffffffffc0000000 (POE)\next4 1 2 - Live 0x0\n")
    taken = collection(tmp_path)
    take_kernel(taken)
    texts = {file.path: file.text for file in taken.files}
    assert texts["/proc/cpuinfo"] == "processor\t: 0\nmodel name\t: X\n"
    assert texts["/proc/modules"] == "nvidia 1 2\n"


def test_interfaces_without_a_device_are_left_out(tmp_path: Path) -> None:
    for name in ("eth0/device", "veth1"):
        (tmp_path / "sys/class/net" / name).mkdir(parents=True)
    (tmp_path / "sys/class/net/eth0/device/vendor").write_text("0x1af4\n")
    for name in ("eth0", "veth1"):
        (tmp_path / "sys/class/net" / name / "speed").write_text("10000\n")
    taken = collection(tmp_path)
    take_kernel(taken)
    assert [file.path for file in taken.files] == ["/sys/class/net/eth0/speed"]


def test_serial_numbers_of_the_firmware_are_left_where_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "sys/class/dmi/id"
    folder.mkdir(parents=True)
    for name in ("sys_vendor", "product_serial", "product_uuid", "board_serial", "chassis_serial"):
        (folder / name).write_text("value\n")
    taken = collection(tmp_path)
    take_kernel(taken)
    assert [file.path for file in taken.files] == ["/sys/class/dmi/id/sys_vendor"]
