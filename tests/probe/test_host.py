"""What is unusual on a host is said, and nothing is said where nothing is."""

from dataclasses import replace

import msgspec
import pytest

from busbw.machine.named import host_of
from busbw.model.host import CapturedFile, FoundLibrary

from .hosts import GEN3, GEN5, Gpu, Machine, Nic, snapshot_of
from .machines import MACHINES


def remarks(machine: Machine) -> tuple[str, ...]:
    return host_of(snapshot_of(machine)).remarks


def changed(name: str, kind: type, **fields) -> Machine:
    """Return a machine with its first GPU or NIC changed."""
    machine = MACHINES[name]
    first = next(one for one in machine.functions if isinstance(one, kind))
    functions = tuple(replace(one, **fields) if one is first else one for one in machine.functions)
    return replace(machine, functions=functions)


@pytest.mark.parametrize("name", [name for name in MACHINES if name != "azure-nd-h100-v5"])
def test_a_healthy_machine_has_no_remarks(name: str) -> None:
    assert remarks(MACHINES[name]) == ()


def test_a_topology_file_that_is_named_and_not_there_is_said() -> None:
    (remark,) = remarks(MACHINES["azure-nd-h100-v5"])
    assert 'NCCL_TOPO_FILE = "/opt/microsoft/ndv5-topo.xml" (/etc/nccl.conf): no such file here' in remark


def test_a_topology_file_that_cannot_be_read_is_another_thing() -> None:
    snapshot = snapshot_of(MACHINES["azure-nd-h100-v5"])
    file = CapturedFile(path="/opt/microsoft/ndv5-topo.xml", text=None, reason="permission denied")
    (remark,) = host_of(msgspec.structs.replace(snapshot, files=(*snapshot.files, file))).remarks
    assert remark.endswith("permission denied")


def test_a_container_without_the_settings_of_its_host_is_said() -> None:
    machine = replace(MACHINES["azure-nd-h100-v5"], container="docker", more_files={})
    assert remarks(machine) == ("a container (docker) without /etc/nccl.conf: settings of its host do not reach it",)


def test_a_gpu_on_fewer_lanes_than_it_has_is_said() -> None:
    machine = changed("aws-p5", Gpu, width=8, max_width=16)
    assert remarks(machine) == ("GPU 0 (0000:53:00.0) has 8 of 16 PCIe lanes: its slot has no more, or it is loose",)


def test_a_slow_link_of_a_gpu_may_be_rest_and_of_a_nic_is_not() -> None:
    (gpu,) = remarks(changed("aws-p5", Gpu, speed=GEN3, max_speed=GEN5))
    (nic,) = remarks(changed("aws-p5", Nic, speed=GEN3, max_speed=GEN5))
    assert "normal while idle" in gpu
    assert nic == "rdmap79s0 (0000:4f:00.0) runs at 8.0 GT/s a lane, and could at 32.0 GT/s"


def test_a_port_that_is_down_is_said() -> None:
    assert remarks(changed("oci-bm-gpu4-8", Nic, up=False)) == ("mlx5_0 port 1 is down",)


def test_links_that_are_off_are_named() -> None:
    machine = MACHINES["h200-vm"]
    snapshot = snapshot_of(machine)
    off = {"\t Link 3: 26.562 GB/s": "\t Link 3: <inactive>", "\t Link 4: 26.562 GB/s": "\t Link 4: <inactive>"}
    answers = []
    for answer in snapshot.answers:
        output = answer.output
        if answer.name == "nvidia-smi-nvlink":
            for old, new in off.items():
                output = output.replace(old, new, 1)
        answers.append(msgspec.structs.replace(answer, output=output))
    host = host_of(msgspec.structs.replace(snapshot, answers=tuple(answers)))
    assert host.remarks == ("GPU 0 (0000:00:06.0): NVLink 3-4 of 18 inactive",)


def test_small_shared_memory_and_locked_memory_are_said_where_they_matter() -> None:
    machine = replace(
        MACHINES["oci-bm-gpu4-8"],
        more_answers={
            "df-shm": "Filesystem 1024-blocks Used Available Capacity Mounted on\nshm 65536 0 65536 0% /dev/shm\n"
        },
        more_files={
            "/proc/self/limits": "Limit Soft Limit Hard Limit Units\nMax locked memory 8388608 8388608 bytes\n",
            "/proc/self/status": "Cpus_allowed:\tff\nCpus_allowed_list:\t0-7\n",
        },
    )
    assert remarks(machine) == (
        "shared memory has 64 MiB: NCCL may find no room in it; docker run --shm-size=8g",
        "locked memory is limited to 8 MiB: RDMA needs it unlimited (ulimit -l)",
        "this process may use CPUs 0-7 of 0-127 only",
    )


def test_devices_that_programs_cannot_open_are_said() -> None:
    machine = replace(MACHINES["oci-bm-gpu4-8"], more_answers={"ls-infiniband": "total 0\n"})
    assert remarks(machine) == ("RDMA devices, but none under /dev/infiniband: programs here cannot use them",)


def test_two_versions_of_nccl_are_said_in_the_order_of_the_search() -> None:
    libraries = tuple(
        FoundLibrary(name="libnccl", path=f"/{version}/libnccl.so.2", version=version, found_by="wheel")
        for version in ("2.28.9", "2.21.5", "2.28.9")
    )
    (remark,) = remarks(replace(MACHINES["h200-vm"], libraries=libraries))
    assert remark == "2 versions of NCCL here (2.28.9, 2.21.5): the first in the search order is loaded"


def test_settings_are_listed_with_where_they_stand() -> None:
    settings = host_of(snapshot_of(MACHINES["azure-nd-h100-v5"])).settings
    assert [(one.name, one.value, one.path) for one in settings][-2:] == [
        ("NCCL_IGNORE_CPU_AFFINITY", "1", "/etc/nccl.conf"),
        ("NCCL_DEBUG", "INFO", None),
    ]
