"""Whatever stands in a snapshot or in a library, reading it ends in a value or a refusal, never in a crash."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from busbw.machine.health.node import node_of
from busbw.machine.health.system import CHECKS, examine
from busbw.machine.named import host_of
from busbw.machine.read.elf import dynamic_of
from busbw.machine.read.pci import acs_of
from busbw.machine.read.state import peers_denied, state_of
from busbw.model.host import Answer, CapturedFile, CapturedLink, Snapshot

_PATHS = (
    "/proc/self/limits", "/proc/self/status", "/proc/uptime", "/proc/modules", "/proc/cmdline",
    "/proc/driver/nvidia/version", "/proc/sys/kernel/numa_balancing", "/sys/bus/pci/devices/0000:01:00.0/config",
    "/sys/class/infiniband/mlx5_0/ports/1/state", "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error",
    "/sys/class/infiniband/mlx5_0/ports/1/rate", "/sys/kernel/iommu_groups/7/type",
    "/sys/class/infiniband/mlx5_0/ports/1/link_layer", "/sys/class/infiniband/mlx5_0/ports/1/pkeys/0",
    "/sys/bus/pci/devices/0000:01:00.0/sriov_totalvfs", "/sys/bus/pci/devices/0000:01:00.0/device",
)  # fmt: skip
_ANSWERS = ("nvidia-smi-xml", "nvidia-smi-p2p", "df-shm", "timedatectl", "ls-infiniband", "uname", "ibv_devinfo")
_WORDS = (
    "Max locked memory",
    "unlimited",
    "GPU0",
    "GPU1",
    "OK",
    "CNS",
    "<nvidia_smi_log>",
    "<gpu>",
    "</gpu>",
    "\n",
    "4: ",
)
_TEXT = st.one_of(
    st.text("0123456789abc: \n\t\x00<>é", max_size=200), st.lists(st.sampled_from(_WORDS), max_size=20).map("  ".join)
)


@given(st.dictionaries(st.sampled_from(_PATHS), _TEXT), st.dictionaries(st.sampled_from(_ANSWERS), _TEXT))
def test_any_snapshot_is_examined(files: dict[str, str], answers: dict[str, str]) -> None:
    snapshot = Snapshot(
        busbw_version="0",
        captured="",
        hostname="host",
        root=False,
        files=tuple(CapturedFile(path=path, text=text) for path, text in files.items()),
        links=(CapturedLink(path="/sys/bus/pci/devices/0000:01:00.0/iommu_group", target="../7"),),
        answers=tuple(
            Answer(name=name, argv=(), ended="ok", exit_code=0, output=text) for name, text in answers.items()
        ),
    )
    probe = host_of(snapshot)

    checks = examine(node_of(probe, state_of(snapshot, probe.settings), None, ()))

    assert len(checks) == len(CHECKS)
    assert all(check.because or check.findings for check in checks)


@given(st.binary(max_size=5000))
def test_any_configuration_space_is_read(raw: bytes) -> None:
    assert acs_of(raw)


@given(_TEXT)
def test_any_matrix_of_peers_is_read(text: str) -> None:
    peers_denied(text)


_HEADER = struct.Struct("<4sBBBBB7sHHIQQQIHHHHHH")


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**16 - 1), st.binary(max_size=2000), st.sampled_from([32, 56]))
def test_any_library_is_read(table: int, count: int, rest: bytes, each_bytes: int) -> None:
    head = _HEADER.pack(b"\x7fELF", 2, 1, 1, 0, 0, bytes(7), 3, 62, 1, 0, table, 0, 0, 64, each_bytes, count, 0, 0, 0)
    for raw in (head + rest, head[:4] + b"\x01\x02" + head[6:] + rest, rest):
        dynamic_of(lambda offset, size_bytes, raw=raw: raw[offset : offset + size_bytes])


@given(st.lists(st.tuples(st.integers(-40, 40), st.integers(0, 2**64 - 1)), max_size=30), st.integers(0, 600))
def test_any_dynamic_section_is_read(entries: list[tuple[int, int]], strings: int) -> None:
    segments = struct.pack("<2I6Q", 1, 0, 0, 0, 0, 4096, 4096, 0) + struct.pack("<2I6Q", 2, 0, 176, 0, 0, 4096, 0, 0)
    section = b"".join(struct.pack("<qQ", tag, value) for tag, value in [(5, strings), *entries])
    head = _HEADER.pack(b"\x7fELF", 2, 1, 1, 0, 0, bytes(7), 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    raw = head + segments + section

    found = dynamic_of(lambda offset, size_bytes: raw[offset : offset + size_bytes])

    assert found is None or found.machine == (62, 2)
