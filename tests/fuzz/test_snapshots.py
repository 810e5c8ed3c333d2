"""Reading a tar ends in a snapshot or an InputError, whatever it holds; and a host comes of every snapshot."""

import contextlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_cost, check_growth
from tests.probe.hosts import snapshot_of
from tests.probe.machines import MACHINES

from busbw.base.errors import InputError
from busbw.machine.capture.anonymous import anonymous
from busbw.machine.named import host_of
from busbw.machine.read.hardware import hardware_of
from busbw.machine.read.nvidia_smi import gpu_fields
from busbw.model import codec
from busbw.model.host import Answer, CapturedFile, CapturedLink, Hardware, Probe, Snapshot
from busbw.store.snapshots import members, read_snapshot, write_snapshot

from .in_memory import fresh_folder

QUICK = settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
FRAGMENTS = st.sampled_from(
    [
        "", "\0", "\n", "-1", "9" * 30, "0-65535", "65535-0", "N/A", "Unknown", "0x", "<", "<!DOCTYPE", "&a;", "::",
        "/../", "\x1b[4m", "GPU0", "NIC0: x", "\ud7ff", "é", "255", "Link 0: ", "00000000:0F:00.0", "1e999", "nan",
    ]
)  # fmt: skip


def tar() -> bytes:
    with fresh_folder() as folder:
        write_snapshot(Path(folder, "host.tar"), snapshot_of(MACHINES["h200-vm"]))
        return Path(folder, "host.tar").read_bytes()


TAR = tar()


@st.composite
def damaged_bytes(draw: st.DrawFn, valid: bytes) -> bytes:
    data = valid
    for _ in range(draw(st.integers(1, 4))):
        # Headers are where it is dangerous.
        start = 512 * draw(st.integers(0, len(valid) // 512)) + draw(st.integers(0, 511))
        data = data[:start] + draw(st.binary(max_size=12)) + data[start + draw(st.integers(0, 12)) :]
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


@st.composite
def damaged_text(draw: st.DrawFn, text: str) -> str:
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        text = text[:start] + draw(FRAGMENTS) + text[start + draw(st.integers(0, 20)) :]
    return text


@st.composite
def damaged_snapshots(draw: st.DrawFn) -> Snapshot:
    """A machine with some of its files, links and answers damaged."""
    snapshot = snapshot_of(MACHINES[draw(st.sampled_from(["h200-vm", "gh200-slingshot", "azure-hbv4"]))])
    files, links, answers = list(snapshot.files), list(snapshot.links), list(snapshot.answers)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(files) - 1))
        files[place] = msgspec.structs.replace(files[place], text=draw(damaged_text(files[place].text or "")))
    if links:
        place = draw(st.integers(0, len(links) - 1))
        links[place] = CapturedLink(path=links[place].path, target=draw(damaged_text(links[place].target)))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(answers) - 1))
        output = draw(damaged_text(answers[place].output))
        answers[place] = msgspec.structs.replace(answers[place], output=output, ended="ok")
    return msgspec.structs.replace(snapshot, files=tuple(files), links=tuple(links), answers=tuple(answers))


@QUICK
@given(st.binary(max_size=2000) | damaged_bytes(TAR))
def test_a_tar_is_read_or_refused(data: bytes) -> None:
    with fresh_folder() as folder:
        path = Path(folder, "host.tar")
        path.write_bytes(data)
        with contextlib.suppress(InputError):
            read_snapshot(path)


@QUICK
@given(damaged_bytes(TAR))
def test_no_name_of_a_member_leads_elsewhere(data: bytes) -> None:
    try:
        found = members(data, where="fuzz")
    except InputError:
        return
    assert not [name for name in found if name.startswith("/") or ".." in name.split("/")]


@QUICK
@given(damaged_snapshots())
def test_a_host_comes_of_every_snapshot_and_survives_being_written(snapshot: Snapshot) -> None:
    host = host_of(snapshot)
    assert codec.decode(codec.encode(host), Probe, where="again") == host


@settings(QUICK, max_examples=40)
@given(damaged_snapshots())
def test_every_snapshot_can_be_made_anonymous_and_written(snapshot: Snapshot) -> None:
    made = anonymous(snapshot)
    with fresh_folder() as folder:
        write_snapshot(Path(folder, "host.tar"), made)
        assert read_snapshot(Path(folder, "host.tar")) == made


@QUICK
@given(
    st.text(max_size=300)
    | damaged_text(next(a.output for a in snapshot_of(MACHINES["h200-vm"]).answers if "xml" in a.name))
)
def test_xml_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        gpu_fields(text)


def big(**texts: str) -> Snapshot:
    """Return a snapshot of thousands of devices, with the same hostile text wherever a list of its kind is read."""
    files = [CapturedFile(path="/sys/devices/system/cpu/online", text=texts.get("online", "0-8191"))]
    for place in range(4000):
        path = f"/sys/devices/system/cpu/cpu{place}/topology/thread_siblings_list"
        files.append(CapturedFile(path=path, text=texts["list"].format(place)))
    links = []
    for place in range(2000):
        address = f"{place:04x}:00:00.0"
        folder = f"/sys/bus/pci/devices/{address}"
        files += [CapturedFile(path=f"{folder}/{name}", text="0x030200") for name in ("class", "vendor", "device")]
        files.append(CapturedFile(path=f"{folder}/local_cpulist", text=texts["list"].format(place)))
        links.append(CapturedLink(path=f"/sys/class/net/n{place}", target=f"../../devices/{address}/net/n{place}"))
        links.append(CapturedLink(path=f"/sys/class/infiniband/m{place}", target=f"../../{address}/infiniband/m"))
        files.append(CapturedFile(path=f"/sys/class/infiniband/m{place}/ports/1/state", text="4: ACTIVE"))
        files.append(
            CapturedFile(path=f"/sys/devices/system/node/node{place}/cpulist", text=texts["list"].format(place))
        )
        files.append(CapturedFile(path=f"/sys/devices/system/node/node{place}/distance", text="10 " * 5000))
    rows = "\tGPU0\t" + "\t".join(f"NIC{place}" for place in range(500)) + "\n"
    rows += ("GPU0\t X " + "\tSYS" * 500 + "\n") * 2000
    links_of = "GPU 0: x\n" + "Link 0: 25 GB/s\n" * 100_000
    answers = (
        Answer(name="nvidia-smi-topo", argv=("x",), ended="ok", output=rows),
        Answer(name="nvidia-smi-nvlink", argv=("x",), ended="ok", output=links_of),
        Answer(name="ibstat", argv=("x",), ended="ok", output="CA 'x'\nPort 1:\n" * 50_000),
        Answer(name="cxi_stat", argv=("x",), ended="ok", output="Device: x\n" * 50_000),
        Answer(name="ibv_devinfo", argv=("x",), ended="ok", output="hca_id: x\nport: 1\n" * 50_000),
    )
    return Snapshot(
        busbw_version="1", captured="", hostname="h", root=True, files=tuple(files), links=tuple(links), answers=answers
    )


@pytest.mark.parametrize("hostile", ["0-8191", "{}-8191", "0-65535", "{}," + "1," * 500])
def test_a_large_and_hostile_snapshot_is_read_in_seconds(hostile: str) -> None:
    snapshot = big(list=hostile)
    assert isinstance(check_cost(lambda: hardware_of(snapshot), most_s=15), Hardware)


@pytest.mark.parametrize("pattern", ["0:", "a", "f:", "00:", "1.", "-", "serial:", "/home/", "0x", "::", "abcd:", "i-"])
def test_a_long_text_is_made_anonymous_in_time_that_grows_with_its_length(pattern: str) -> None:
    def long(length: int) -> Snapshot:
        text = pattern * (length // len(pattern))
        return Snapshot(
            busbw_version="1",
            captured="",
            hostname="host-of-many-names",
            root=True,
            answers=(Answer(name="x", argv=("x",), ended="ok", output=text),),
        )

    check_growth(anonymous, long(20_000), long(160_000), most=24)
