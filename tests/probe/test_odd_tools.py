"""Tools of machines that are not well: whole answers with warnings around them, and parts that the driver has lost."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from busbw.machine.named import host_of
from busbw.machine.read.hardware import hardware_of
from busbw.machine.read.nvidia_smi import matrix
from busbw.machine.read.pci import ibstat_ports
from busbw.model.host import Answer, Hardware, Snapshot
from busbw.store.snapshots import write_snapshot
from busbw.topo.origins.from_hardware import topology_of_hardware
from busbw.topo.paths.view import view_of

from .hosts import Function, Gpu, Machine, Numa, smi_xml, snapshot_of

WARNING = "WARNING: infoROM is corrupted at gpu 0000:01:00.0"


def machine(**change: object) -> Machine:
    gpus = tuple(Gpu(bus_id=f"0000:{bus:02x}:00.0", numa=0, targets=(None,) * 4) for bus in (1, 2))
    node = Machine(name="node", numa=(Numa(id=0, cpus="0-7"),), functions=gpus)
    return dataclasses.replace(node, **change)  # type: ignore[arg-type]


def answered(snapshot: Snapshot, name: str, **change: object) -> Snapshot:
    answers = tuple(
        msgspec.structs.replace(answer, **change) if answer.name == name else answer for answer in snapshot.answers
    )
    assert any(isinstance(answer, Answer) and answer.name == name for answer in answers)
    return msgspec.structs.replace(snapshot, answers=answers)


def names(hardware: Hardware) -> list[str | None]:
    return [gpu.name for gpu in hardware.gpus]


@pytest.mark.parametrize(
    "text",
    [
        smi_xml(machine()) + f"{WARNING}\n",
        f"{WARNING}\n" + smi_xml(machine()),
        f"{WARNING}\n{smi_xml(machine())}{WARNING}\n".replace("\n", "\r\n"),
    ],
    ids=["behind", "before", "around, with the line ends of Windows"],
)
def test_warnings_around_what_the_driver_says_of_the_gpus_are_no_part_of_it(text: str) -> None:
    read = hardware_of(answered(snapshot_of(machine()), "nvidia-smi-xml", output=text))
    assert names(read) == ["NVIDIA H100 80GB HBM3"] * 2
    assert not [note for note in read.missing if "cannot be read" in note]


def test_gpus_are_read_where_nvidia_smi_ends_with_the_code_of_a_warning() -> None:
    snapshot = snapshot_of(machine())
    for name in ("nvidia-smi-xml", "nvidia-smi-query", "nvidia-smi-topo", "nvidia-smi-nvlink"):
        said = next(answer.output for answer in snapshot.answers if answer.name == name)
        snapshot = answered(snapshot, name, ended="failed", exit_code=14, output=f"{said}{WARNING}\n")
    read = hardware_of(snapshot)
    assert names(read) == ["NVIDIA H100 80GB HBM3"] * 2
    assert [gpu.sm for gpu in read.gpus] == [90, 90]
    assert [len(gpu.nvlinks) for gpu in read.gpus] == [4, 4]
    assert len(read.matrix) == 4
    (note,) = (note for note in read.missing if "nvidia-smi" in note)
    assert note.startswith(f"`nvidia-smi -q -x` and 3 more failed with code 14 ({WARNING})")


def test_a_driver_that_fits_no_library_is_one_note() -> None:
    snapshot = snapshot_of(machine())
    said = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.90\n"
    for name in ("nvidia-smi-xml", "nvidia-smi-query", "nvidia-smi-topo", "nvidia-smi-nvlink"):
        snapshot = answered(snapshot, name, ended="failed", exit_code=18, output=said)
    read = hardware_of(snapshot)
    assert [gpu.bus_id for gpu in read.gpus] == ["0000:01:00.0", "0000:02:00.0"]
    (note,) = (note for note in read.missing if "NVML" in note or "XML" in note)
    assert note == (
        "`nvidia-smi -q -x` and 3 more failed with code 18 (Failed to initialize NVML: Driver/library version mismatch)"
        "; it tells names, memory, PCIe links and state of the GPUs; compute capability of the GPUs; "
        "how the driver sees the paths between GPUs and NICs; state and rate of each NVLink"
    )


@pytest.mark.parametrize("value", ["GPU is lost", "Unknown Error", "[Unknown Error]", "ERR!", "N/A"])
def test_what_the_driver_says_instead_of_a_name_is_no_name(value: str) -> None:
    text = smi_xml(machine()).replace("NVIDIA H100 80GB HBM3", value, 1)
    read = hardware_of(answered(snapshot_of(machine()), "nvidia-smi-xml", output=text))
    assert names(read) == [None, "NVIDIA H100 80GB HBM3"]
    assert any("0000:01:00.0" in note and "lost" in note for note in read.missing)


def test_a_gpu_without_links_beside_one_with_links_is_told() -> None:
    # As the driver says of a B200 that has not joined its NVSwitch.
    said = (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
        "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"
        "NVML: Unable to retrieve NVLink information as all links are inActive\n"
    )
    remarks = host_of(answered(snapshot_of(machine()), "nvidia-smi-nvlink", output=said)).remarks
    assert any(remark.startswith("GPU 1 (0000:02:00.0)") and "NVLink" in remark for remark in remarks)
    assert not any(remark.startswith("GPU 0 ") and "NVLink" in remark for remark in remarks)


def test_a_matrix_begins_with_the_first_gpu_that_the_driver_has_not_lost() -> None:
    text = "\tGPU1\tGPU2\tCPU Affinity\nGPU1\t X \tPHB\t0-11\nGPU2\tPHB\t X \t0-11\n"
    assert [(cell.row, cell.column, cell.path) for cell in matrix(text)][1] == ("GPU1", "GPU2", "PHB")


def test_a_gpu_that_rocm_smi_has_no_name_of_has_none() -> None:
    said = (
        "GPU[0]\t\t: PCI Bus: 0000:05:00.0\nGPU[1]\t\t: PCI Bus: 0000:26:00.0\n"
        "GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X\nGPU[1]\t\t: Card Series: \t\tN/A\n"
        "WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status\n"
    )
    gpus = tuple(
        Function(bus_id=bus_id, numa=0, vendor="0x1002", device="0x74a1", device_class="0x120000")
        for bus_id in ("0000:05:00.0", "0000:26:00.0")
    )
    read = hardware_of(snapshot_of(machine(functions=gpus, more_answers={"rocm-smi-product": said})))
    assert names(read) == ["AMD Instinct MI300X", None]
    notes = view_of(topology_of_hardware(read)).notes
    assert any("XGMI" in note for note in notes)
    assert not any("NVLink" in note for note in notes)


def test_a_port_that_is_down_has_the_rate_of_one_slow_lane() -> None:
    said = "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Down\n\t\tRate: 2.5\n\t\tLink layer: InfiniBand\n"
    assert [port.rate_bps for port in ibstat_ports(said, {})] == [2.5e9]


def test_empty_nodes_of_gpu_memory_are_one_row_and_an_unused_link_is_no_fault(tmp_path: Path) -> None:
    # As on Grace: GPU and CPU talk over C2C, and most nodes for partitions of the GPU's memory hold nothing.
    empty = tuple(Numa(id=node, cpus="", memory_gibibytes=0) for node in (*range(2, 8), 9))
    gpu = Gpu(bus_id="0009:01:00.0", numa=0, chip_links=10, width=1, max_width=16)
    numa = (Numa(id=0, cpus="0-71"), *empty, Numa(id=8, cpus="", memory_gibibytes=96))
    snapshot = snapshot_of(machine(architecture="aarch64", functions=(gpu,), numa=numa))
    assert not [remark for remark in host_of(snapshot).remarks if "lanes" in remark]
    write_snapshot(tmp_path / "host.tar", snapshot)
    page = subprocess.run(
        [Path(sys.executable).with_name("busbw"), "probe", tmp_path / "host.tar"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    rows = [line.split() for line in page.splitlines()]
    assert ["2-7,9", "-", "none"] in rows
    assert ["8", "-", "96", "GiB"] in rows
