"""A snapshot reads as the machine it is of."""

from dataclasses import replace

import msgspec
import pytest

from busbw.base.cpus import format_cpu_list
from busbw.machine.read.hardware import hardware_of
from busbw.model.host import Answer, CapturedFile, Hardware, Snapshot
from busbw.topo.origins.from_hardware import topology_of_hardware
from busbw.topo.paths.view import view_of

from .hosts import GEN4, Function, Gpu, Machine, Numa, snapshot_of
from .machines import MACHINES


def read(name: str) -> Hardware:
    return hardware_of(snapshot_of(MACHINES[name]))


def without_answers(snapshot: Snapshot, *names: str) -> Snapshot:
    answers = tuple(
        Answer(name=answer.name, argv=answer.argv, ended="absent") if answer.name in names else answer
        for answer in snapshot.answers
    )
    return replace_fields(snapshot, answers=answers)


def replace_fields(snapshot: Snapshot, **fields) -> Snapshot:
    return msgspec.structs.replace(snapshot, **fields)


def test_an_azure_machine_reads_as_published() -> None:
    hardware = read("azure-nd-h100-v5")
    assert hardware.hypervisor == "Microsoft"
    assert hardware.dmi["chassis_asset_tag"] == "7783-7084-3265-9085-8269-3286-77"
    assert (hardware.sockets, hardware.cores, len(hardware.cpus)) == (2, 96, 96)
    assert [(node.id, format_cpu_list(node.cpus)) for node in hardware.numa] == [(0, "0-47"), (1, "48-95")]
    assert [gpu.bus_id[:4] for gpu in hardware.gpus] == ["0001", "0002", "0003", "0008", "0009", "000a", "000b", "000c"]
    assert [gpu.numa for gpu in hardware.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert {(gpu.name, gpu.sm, gpu.mig, len(gpu.nvlinks)) for gpu in hardware.gpus} == {
        ("NVIDIA H100 80GB HBM3", 90, False, 18)
    }
    compute = [port for port in hardware.ports if port.kind == "InfiniBand"]
    assert [(port.name, port.bus_id, port.interface) for port in compute[:2]] == [
        ("mlx5_ib0", "0101:00:00.0", "ib0"),
        ("mlx5_ib1", "0102:00:00.0", "ib1"),
    ]
    assert {(port.rate_bps, port.up) for port in compute} == {(400e9, True)}
    assert compute[0].guid == "0x00155dfffe33ff00"
    assert [port.name for port in hardware.ports if port.kind == "RoCE"] == ["mlx5_an0"]


def test_gpus_of_an_oci_machine_sit_below_switches_on_odd_numa_nodes() -> None:
    hardware = read("oci-bm-gpu4-8")
    assert [gpu.numa for gpu in hardware.gpus] == [3, 3, 1, 1, 7, 7, 5, 5]
    assert len(hardware.numa) == 8
    pci = {function.bus_id: function for function in hardware.pci}
    assert pci["0000:0f:00.0"].parent == "0000:01:00.0"
    assert pci["0000:01:00.0"].parent == "0000:00:01.1"
    assert pci["0000:00:01.1"].parent is None
    assert pci["0000:0f:00.0"].link_speed == GEN4
    assert [port.name for port in hardware.ports] == [f"mlx5_{place}" for place in (0, 1, 2, 3, *range(6, 18))]
    assert (hardware.cpu_family, hardware.cpu_model_number, hardware.cpu_vendor) == (23, 49, "AuthenticAMD")
    assert (len(hardware.cpus), hardware.cores) == (128, 64)
    nearest = [cell.column for cell in hardware.matrix if cell.row == "GPU0" and cell.path == "PIX"]
    assert nearest == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]


def test_elastic_adapters_are_in_the_order_of_their_numbers() -> None:
    hardware = read("aws-p5")
    assert {port.kind for port in hardware.ports} == {"EFA"}
    assert [port.name for port in hardware.ports][:5] == [
        "rdmap79s0",
        "rdmap80s0",
        "rdmap81s0",
        "rdmap82s0",
        "rdmap96s0",
    ]
    assert len(hardware.ports) == 32
    assert hardware.dmi["product_name"] == "p5.48xlarge"


def test_a_superchip_has_links_to_its_processor_and_nodes_of_gpu_memory() -> None:
    hardware = read("gh200-slingshot")
    assert (hardware.architecture, hardware.cpu_model, hardware.cpu_vendor) == ("aarch64", "Neoverse-V2", None)
    assert [(node.id, len(node.cpus)) for node in hardware.numa if not node.cpus] == [(4, 0), (12, 0), (20, 0), (28, 0)]
    first = hardware.gpus[0]
    assert len(first.chip_links) == 10
    assert {link.target for link in first.nvlinks} == {"0019:01:00.0", "0029:01:00.0", "0039:01:00.0"}
    assert {link.target_kind for link in first.nvlinks} == {"gpu"}
    assert [(port.name, port.interface, port.kind) for port in hardware.ports][:1] == [("cxi0", "hsn0", "Slingshot")]
    assert {(port.rate_bps, port.mtu_bytes) for port in hardware.ports} == {(200e9, 9000)}


def test_a_virtual_machine_that_hides_its_buses_says_so_by_unknown_values() -> None:
    hardware = read("h200-vm")
    assert [gpu.bus_id for gpu in hardware.gpus] == ["0000:00:06.0", "0000:00:07.0", "0000:00:08.0", "0000:00:09.0"]
    assert {gpu.numa for gpu in hardware.gpus} == {-1}
    gpu = next(function for function in hardware.pci if function.bus_id == "0000:00:06.0")
    assert (gpu.parent, gpu.link_speed, gpu.link_width, gpu.subsystem_device) == (None, None, None, "0x18bf")
    assert hardware.gpus[0].memory_bytes == 143771 * 2**20
    assert hardware.gpus[0].driver == "580.159.03"
    (port,) = hardware.ports
    assert (port.name, port.kind, port.bus_id, port.rate_bps) == ("eth0", "Ethernet", "0000:00:03.0", None)


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_important_is_missing_from_a_whole_machine(name: str) -> None:
    missing = read(name).missing
    assert [text for text in missing if "DMI" not in text] == []


def test_without_nvidia_smi_gpus_are_those_that_the_driver_shows() -> None:
    machine = MACHINES["h200-vm"]
    whole = snapshot_of(machine)
    snapshot = without_answers(whole, "nvidia-smi-xml", "nvidia-smi-query", "nvidia-smi-topo")
    shown = tuple(
        CapturedFile(
            path=f"/proc/driver/nvidia/gpus/{gpu.bus_id}/information",
            text=f"Model: \t\t NVIDIA H200\nIRQ:   \t\t 11\nGPU UUID: \t GPU-1\nBus Location: \t {gpu.bus_id}\n",
        )
        for gpu in machine.gpus[:3]
    )
    version = CapturedFile(
        path="/proc/driver/nvidia/version",
        text="NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\nGCC version: x\n",
    )
    hardware = hardware_of(replace_fields(snapshot, files=(*snapshot.files, *shown, version)))
    assert [(gpu.index, gpu.bus_id, gpu.name) for gpu in hardware.gpus] == [
        (0, "0000:00:06.0", "NVIDIA H200"),
        (1, "0000:00:07.0", "NVIDIA H200"),
        (2, "0000:00:08.0", "NVIDIA H200"),
    ]
    assert hardware.gpus[0].driver == "580.159.03"
    assert (
        "on the PCI bus, and the driver does not show it (lost, or not given to us): GPU 0000:00:09.0"
        in hardware.missing
    )
    assert any(text.startswith("no nvidia-smi, which tells names") for text in hardware.missing)


def test_without_any_driver_gpus_are_those_of_the_bus() -> None:
    snapshot = without_answers(snapshot_of(MACHINES["h200-vm"]), "nvidia-smi-xml", "nvidia-smi-query")
    hardware = hardware_of(snapshot)
    assert [(gpu.index, gpu.bus_id, gpu.name) for gpu in hardware.gpus][:1] == [(0, "0000:00:06.0", None)]


def test_a_gpu_that_fell_off_is_noticed() -> None:
    machine = MACHINES["azure-nd-h100-v5"]
    lost = replace(machine, functions=tuple(one for one in machine.functions if one.bus_id != "0009:00:00.0"))
    snapshot = replace_fields(snapshot_of(machine), answers=snapshot_of(lost).answers)
    hardware = hardware_of(snapshot)
    assert len(hardware.gpus) == 7
    assert hardware.missing == (
        "on the PCI bus, and the driver does not show it (lost, or not given to us): GPU 0009:00:00.0",
    )


def test_a_tool_that_fails_is_named_with_what_it_said() -> None:
    snapshot = snapshot_of(MACHINES["h200-vm"])
    failed = tuple(
        Answer(
            name=answer.name,
            argv=answer.argv,
            ended="failed",
            exit_code=9,
            error="Unable to determine the device handle",
        )
        if answer.name == "nvidia-smi-xml"
        else answer
        for answer in snapshot.answers
    )
    hardware = hardware_of(replace_fields(snapshot, answers=failed))
    assert any(
        "`nvidia-smi -q -x` failed with code 9 (Unable to determine the device handle)" in text
        for text in hardware.missing
    )


def test_gpus_of_amd_have_the_names_and_numbers_of_rocm_smi() -> None:
    functions = tuple(
        Function(
            bus_id=f"{place + 1:04x}:00:00.0",
            vendor="0x1002",
            device="0x74b5",
            device_class="0x120000",
            numa=place // 4,
        )
        for place in range(8)
    )
    said = "".join(
        f"GPU[{place}]\t\t: PCI Bus: {place + 1:04X}:00:00.0\n"
        f"GPU[{place}]\t\t: Card Series: \t\tAMD Instinct MI300X VF\n"
        for place in range(8)
    )
    machine = Machine(
        name="mi300x",
        numa=(Numa(id=0, cpus="0-47"), Numa(id=1, cpus="48-95")),
        functions=functions,
        more_answers={"rocm-smi-product": said, "rocm-smi-topo": "x"},
    )
    gpus = hardware_of(snapshot_of(machine)).gpus
    assert [(gpu.index, gpu.bus_id, gpu.name, gpu.numa) for gpu in gpus][:1] == [
        (0, "0001:00:00.0", "AMD Instinct MI300X VF", 0)
    ]
    assert len(gpus) == 8


def amd_machine(processor: str, count: int, kinds: str = "XGMI") -> Machine:
    """Return GPUs of AMD with what rocm-smi says of them and the links between them."""
    functions = tuple(
        Function(bus_id=f"{place + 1:04x}:00:00.0", vendor="0x1002", device="0x74b5", device_class="0x120000", numa=0)
        for place in range(count)
    )
    said = "".join(
        f"GPU[{place}]\t\t: PCI Bus: {function.bus_id}\nGPU[{place}]\t\t: GFX Version: \t\t{processor}\n"
        for place, function in enumerate(functions)
    )
    heads = "".join(f"GPU{place:<10}" for place in range(count))
    weights, types = (
        "".join(
            f"GPU{row}   {''.join('0 '.ljust(13) if row == column else word.ljust(13) for column in range(count))}\n"
            for row in range(count)
        )
        for word in ("15", kinds)
    )
    topology = (
        "\n============================ ROCm System Management Interface ============================\n"
        f"================================ Weight between two GPUs =================================\n       {heads}\n"
        f"{weights}\n=============================== Link Type between two GPUs ===============================\n"
        f"       {heads}\n{types}\n======================================= Numa Nodes =====================\n"
        "GPU[0]\t\t: (Topology) Numa Node: 0\n"
    )
    return Machine(
        name="amd",
        numa=(Numa(id=0, cpus="0-47"),),
        functions=functions,
        more_answers={"rocm-smi-product": said, "rocm-smi-topo": topology},
    )


def test_eight_gpus_of_amd_are_joined_by_a_link_each() -> None:
    hardware = hardware_of(snapshot_of(amd_machine("gfx942", 8)))
    topology = topology_of_hardware(hardware)
    assert [gpu.gcn for gpu in topology.gpus] == ["gfx942"] * 8
    assert {(link.count, link.kind, link.target_class) for link in topology.nvlinks} == {(1, "xgmi", "0x120000")}
    assert len(topology.nvlinks) == 56
    assert view_of(topology).ceilings[0].busbw_Bps == 7 * 48e9


@pytest.mark.parametrize(
    ("processor", "count", "kinds"),
    [
        # rocm-smi says XGMI also of pairs of MI250X that no link joins, and never how many there are.
        ("gfx90a", 8, "XGMI"),
        # Four MI300A have several links a pair.
        ("gfx942", 4, "XGMI"),
        ("gfx942", 8, "PCIE"),
        ("gfx942; rm", 8, "XGMI"),
    ],
)
def test_links_that_rocm_smi_does_not_count_are_not_made_up(processor: str, count: int, kinds: str) -> None:
    topology = topology_of_hardware(hardware_of(snapshot_of(amd_machine(processor, count, kinds))))
    assert topology.nvlinks == ()
    assert any(note.startswith("no XGMI links are listed") for note in view_of(topology).notes)


def test_the_graphics_adapter_of_a_server_is_no_lost_gpu() -> None:
    machine = MACHINES["h200-vm"]
    screen = Function(bus_id="0000:02:00.0", vendor="0x1a03", device="0x2000", device_class="0x030000")
    hardware = hardware_of(snapshot_of(replace(machine, functions=(*machine.functions, screen))))
    assert len(hardware.gpus) == 4
    assert not [text for text in hardware.missing if "PCI bus" in text]


def test_an_interface_on_a_vmbus_has_no_address() -> None:
    snapshot = snapshot_of(MACHINES["azure-hbv4"])
    link = type(snapshot.links[0])(
        path="/sys/class/net/eth0", target="../../devices/LNXSYSTM:00/VMBUS:00/000d3a12-0000/net/eth0"
    )
    hardware = hardware_of(replace_fields(snapshot, links=(*snapshot.links, link)))
    assert [(port.name, port.bus_id) for port in hardware.ports if port.kind == "Ethernet"] == [("eth0", None)]


def test_ports_are_those_of_ibstat_where_the_kernel_shows_none() -> None:
    ibstat = (
        "CA 'mlx5_0'\n\tCA type: MT4129\n\tFirmware version: 28.39.1002\n\tNode GUID: 0xa088c20300e07c20\n"
        "\tSystem image GUID: 0xa088c20300e07c20\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n"
        "\t\tRate: 400\n\t\tLink layer: InfiniBand\n"
    )
    machine = Machine(
        name="masked",
        numa=(Numa(id=0, cpus="0-1"),),
        more_answers={"ibstat": ibstat, "ibdev2netdev": "mlx5_0 port 1 ==> ib0 (Up)\n"},
    )
    (port,) = hardware_of(snapshot_of(machine)).ports
    assert (port.name, port.rate_bps, port.up, port.interface) == ("mlx5_0", 400e9, True, "ib0")
    assert port.guid == "0xa088c20300e07c20"


def test_a_second_port_is_a_port_of_the_same_device() -> None:
    snapshot = snapshot_of(MACHINES["azure-hbv4"])
    second = tuple(
        CapturedFile(
            path=file.path.replace("/ports/1/", "/ports/2/"), text="1: DOWN\n" if "state" in file.path else file.text
        )
        for file in snapshot.files
        if "mlx5_ib0/ports/1/" in file.path
    )
    hardware = hardware_of(replace_fields(snapshot, files=(*snapshot.files, *second)))
    assert [(port.name, port.port, port.up) for port in hardware.ports if port.name == "mlx5_ib0"] == [
        ("mlx5_ib0", 1, True),
        ("mlx5_ib0", 2, False),
    ]


def test_an_empty_snapshot_reads_as_a_host_that_nothing_is_known_of() -> None:
    empty = Snapshot(busbw_version="1", captured="", hostname="h", root=False)
    hardware = hardware_of(empty)
    assert (hardware.gpus, hardware.ports, hardware.numa, hardware.cpus) == ((), (), (), ())
    assert len(hardware.missing) == 4


def test_a_gpu_without_links_is_no_error() -> None:
    machine = Machine(
        name="pcie",
        numa=(Numa(id=0, cpus="0-3"),),
        functions=(Gpu(bus_id="0000:01:00.0", numa=0, targets=(), name="NVIDIA L4", sm=89),),
    )
    (gpu,) = hardware_of(snapshot_of(machine)).gpus
    assert (gpu.name, gpu.sm, gpu.nvlinks) == ("NVIDIA L4", 89, ())


def test_files_that_this_user_may_not_read_are_named() -> None:
    paths = [f"/sys/bus/pci/devices/0000:0{place}:00.0/class" for place in range(5)]
    files = tuple(CapturedFile(path=path, text=None, reason="permission denied") for path in paths)
    hardware = hardware_of(Snapshot(busbw_version="1", captured="", hostname="h", root=False, files=files))
    assert f"not allowed to read {', '.join(paths[:3])} and 2 more" in hardware.missing
