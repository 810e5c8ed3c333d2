"""What the tools print is read in every form they have had; what is no output of theirs is read as nothing."""

import pytest

from busbw.base.errors import InputError
from busbw.machine.read.index import bus_id, natural
from busbw.machine.read.nvidia_smi import capabilities, gpu_fields, links, matrix
from busbw.machine.read.pci import cxi_devices, ibdev2netdev, ibstat_ports, ibv_mtus
from busbw.model.host import HostNvLink, MatrixCell

NEW_MATRIX = (
    "\x1b[4m\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tPIX\tSYS\t0-55,112-167\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\tPIX\t56-111,168-223\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tPIX\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n\n"
    "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_0\n"
)
OLD_MATRIX = (
    "\tGPU0\tGPU1\tmlx5_0\tmlx5_1\tCPU Affinity\n"
    "GPU0\t X \tNV1\tPIX\tPHB\t0-19,40-59\n"
    "GPU1\tNV1\t X \tPIX\tPHB\t0-19,40-59\n"
    "mlx5_0\tPIX\tPIX\t X \tPHB\t\n"
    "mlx5_1\tPHB\tPHB\tPHB\t X \t\n"
)


def paths(text: str) -> dict[tuple[str, str], str]:
    return {(cell.row, cell.column): cell.path for cell in matrix(text)}


def test_the_matrix_has_nics_by_name_and_no_affinities() -> None:
    read = paths(NEW_MATRIX)
    assert len(read) == 16
    assert read["GPU0", "mlx5_0"] == "PIX"
    assert read["mlx5_bond_0", "GPU1"] == "PIX"
    assert read["GPU0", "GPU1"] == "NV18"
    assert read["mlx5_0", "mlx5_0"] == "X"


def test_a_matrix_of_an_old_driver_names_nics_in_its_columns() -> None:
    read = paths(OLD_MATRIX)
    assert len(read) == 16
    assert read["GPU1", "mlx5_1"] == "PHB"


def test_a_matrix_with_columns_set_by_spaces_is_the_same() -> None:
    assert matrix(NEW_MATRIX.replace("\t", "     ")) == matrix(NEW_MATRIX)


def test_a_single_gpu_has_a_matrix_of_itself() -> None:
    text = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-251\t0\t\tN/A\n"
    assert matrix(text) == (MatrixCell(row="GPU0", column="GPU0", path="X"),)


def test_rows_that_are_cut_off_are_left_out() -> None:
    assert {row for row, _column in paths(NEW_MATRIX.replace("NIC0\tPIX\tSYS\t X \tSYS", "NIC0\tPIX"))} == {
        "GPU0",
        "GPU1",
        "mlx5_bond_0",
    }


@pytest.mark.parametrize(
    "text", ["", "No devices were found\n", "GPU0\n", "Failed to initialize NVML: Driver mismatch\n"]
)
def test_what_is_no_matrix_has_no_cells(text: str) -> None:
    assert matrix(text) == ()


def test_links_have_rates_states_and_far_ends() -> None:
    status = (
        "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n"
        "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n\t Link 0: 26.562 GB/s\n"
    )
    remote = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: Remote Device 00000008:00:00.0: Link 29\n"
    assert links(status, remote) == {
        0: (
            HostNvLink(link=0, rate_Bps=25e9, active=True, target="0008:00:00.0"),
            HostNvLink(link=1, rate_Bps=None, active=False),
        ),
        1: (HostNvLink(link=0, rate_Bps=26.562e9, active=True),),
    }


def test_links_to_the_processor_are_read_alike() -> None:
    text = "GPU 0: NVIDIA GH200 480GB (UUID: x)\n    C2C Link 0: 44.712 GB/s\n    C2C Link 1: 44.712 GB/s\n"
    assert [link.rate_Bps for link in links(text, "")[0]] == [44.712e9, 44.712e9]
    assert links("No Devices support C2C.\n", "") == {}


def test_compute_capability_is_ten_times_what_is_printed() -> None:
    text = "0, 00000000:0F:00.0, 9.0\n1, 00000001:15:00.0, 10.3\n2, 00000000:16:00.0, [N/A]\nnonsense\n"
    assert capabilities(text) == {"0000:0f:00.0": (0, 90), "0001:15:00.0": (1, 103), "0000:16:00.0": (2, None)}


def test_gpus_in_xml_are_read_by_the_path_of_their_elements() -> None:
    text = (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>'
        "<driver_version>550.54.15</driver_version>"
        '<gpu id="00000000:0F:00.0"><product_name>A &amp; B</product_name>'
        "<pci><pci_bus_id>00000000:0F:00.0</pci_bus_id></pci></gpu></nvidia_smi_log>"
    )
    head, gpus = gpu_fields(text)
    assert head == {("driver_version",): "550.54.15"}
    assert gpus == (("00000000:0F:00.0", {("product_name",): "A & B", ("pci", "pci_bus_id"): "00000000:0F:00.0"}),)


BOMB = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><nvidia_smi_log><gpu id="1">&b;</gpu></nvidia_smi_log>'
EXTERNAL = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><nvidia_smi_log>&a;</nvidia_smi_log>'


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (BOMB, "declares the entity 'a'"),
        (EXTERNAL, "declares the entity 'a'"),
        ("<a>" * 100, "elements 32 deep"),
        ("<nvidia_smi_log><gpu id='1'></nvidia_smi_log>", "not XML"),
        ("Unable to determine the device handle", "not XML"),
        ("<l>" + '<gpu id="1"/>' * 2000 + "</l>", "more than 1024 GPUs"),
    ],
)
def test_xml_that_nvidia_smi_never_writes_is_refused(text: str, cause: str) -> None:
    with pytest.raises(InputError, match="nvidia-smi") as caught:
        gpu_fields(text)
    assert cause in caught.value.cause


def test_slingshot_devices_are_read() -> None:
    text = (
        "Device: cxi0\n    Description: SS11 200Gb 2P NIC Mezz\n    FW Version: 1.5.41\n    Network device: hsn0\n"
        "    PCIE speed/width: 16.0 GT/s PCIe x16\n    PCIE slot: 0000:21:00.0\n        Link MTU: 2112\n"
        "        Link speed: BS_200G\n        Link state: up\nDevice: cxi1\n        Link speed: CK_400G\n"
        "        Link state: down\n"
    )
    first, second = cxi_devices(text)
    assert (first.name, first.bus_id, first.interface, first.rate_bps, first.up) == (
        "cxi0", "0000:21:00.0", "hsn0", 200e9, True,
    )  # fmt: skip
    assert (second.rate_bps, second.up, second.bus_id) == (400e9, False, None)


def test_interfaces_of_devices_are_read() -> None:
    text = "mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> eth2 (Down)\n"
    assert ibdev2netdev(text) == {("mlx5_0", 1): "ib0", ("mlx5_1", 1): "eth2"}


def test_ports_of_a_device_are_read_with_the_state_of_each() -> None:
    text = (
        "CA 'mlx4_0'\n\tCA type: MT4103\n\tSystem image GUID: 0x480fcffffff09143\n"
        "\tPort 1:\n\t\tState: Active\n\t\tRate: 40\n\t\tLink layer: InfiniBand\n"
        "\tPort 2:\n\t\tState: Down\n\t\tRate: 10\n\t\tLink layer: Ethernet\n"
    )
    ports = ibstat_ports(text, {})
    assert [(port.port, port.up, port.rate_bps, port.kind) for port in ports] == [
        (1, True, 40e9, "InfiniBand"),
        (2, False, 10e9, "RoCE"),
    ]
    assert {port.guid for port in ports} == {"0x480fcffffff09143"}


def test_the_active_mtu_is_the_one_that_counts() -> None:
    text = "hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tmax_mtu:\t4096 (5)\n\t\t\tactive_mtu:\t2048 (4)\n"
    assert ibv_mtus(text) == {("mlx5_0", 1): 2048}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00000000:0F:00.0", "0000:0f:00.0"),
        ("0000:0f:00.0", "0000:0f:00.0"),
        ("00010000:e1:00.0", "10000:e1:00.0"),
        ("0f:00.0", None),
        ("0000:0f:00.8", None),
        ("", None),
    ],
)
def test_addresses_are_spelt_as_the_kernel_does(text: str, expected: str | None) -> None:
    assert bus_id(text) == expected


def test_names_sort_by_their_numbers() -> None:
    names = ["mlx5_10", "mlx5_2", "rdmap200s0", "rdmap79s0", "mlx5_bond_0", "eth0"]
    assert sorted(names, key=natural) == ["eth0", "mlx5_2", "mlx5_10", "mlx5_bond_0", "rdmap79s0", "rdmap200s0"]
