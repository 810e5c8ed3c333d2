"""An anonymous snapshot identifies nobody, and still reads as the same machine."""

import msgspec
import pytest
from tests.cost import check_growth

from busbw.machine.capture.anonymous import anonymous
from busbw.machine.read.hardware import hardware_of
from busbw.model.host import Answer, CapturedFile, Snapshot

from .hosts import snapshot_of
from .machines import MACHINES


def snapshot(
    *, hostname: str = "gpunode17.cluster.example.org", output: str = "", path: str = "/etc/x", text: str = ""
):
    return Snapshot(
        busbw_version="0.1.0",
        captured="2026-11-21T12:00:00+00:00",
        hostname=hostname,
        root=False,
        files=(CapturedFile(path=path, text=text),),
        answers=(Answer(name="any", argv=("any",), ended="ok", exit_code=0, output=output),),
        environment={"SLURM_JOB_NODELIST": "gpunode[17-24]", "NCCL_SOCKET_IFNAME": "eth0"},
    )


def cleaned(text: str, **more: str) -> str:
    return anonymous(snapshot(output=text, **more), user=("alice",)).answers[0].output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on gpunode17.cluster.example.org and gpunode17:", "on name1 and name2:"),
        ("/home/bob/x and /users/bob/y, /home/carol", "/home/user1/x and /users/user1/y, /home/user2"),
        ("/lustre/alice/topo.xml", "/lustre/name1/topo.xml"),
        ("malice is not a name", "malice is not a name"),
        ("GPU-6968dfc2-d444-d92c-c36b-6abe53445cb9", "GPU-00000000-0000-0000-0000-000000000001"),
        ("Node GUID: 0x506B4b0300cc1a2c", "Node GUID: 0x0000000000000001"),
        ("506b:4b03:00cc:1a2c", "0000:0000:0000:0001"),
        ("0000:0000:0000:0000", "0000:0000:0000:0000"),
        ("max_mr_size: 0xffffffffffffffff", "max_mr_size: 0xffffffffffffffff"),
        ("fe80:0000:0000:0000:506b:4b03:00cc:1a2c", "2001:db8::1"),
        ("inet6 fe80::506b:4bff:fecc:1a2c/64", "inet6 2001:db8::1/64"),
        ("MAC: 02:00:00:04:aa:f2", "MAC: 02:00:00:00:00:01"),
        ("10.10.72.1 and 127.0.0.1", "192.0.2.1 and 127.0.0.1"),
        ("Serial Number: GR22210036", "Serial Number: serial1"),
        ("<serial>1650123456789</serial>", "<serial>serial1</serial>"),
        ("<serial>N/A</serial>", "<serial>N/A</serial>"),
        ('<info name="DMIProductSerial" value="J1234"/>', '<info name="DMIProductSerial" value="serial1"/>'),
        ("NID: 305906 (0x4aaf2)", "NID: serial1"),
        ("GPU[0] : GUID: 7848959733474673756", "GPU[0] : GUID: serial1"),
        ("instance i-0123456789abcdef0", "instance id1"),
        ("ocid1.instance.oc1.phx.abcdefgh", "id1"),
    ],
)
def test_what_identifies_is_replaced(text: str, expected: str) -> None:
    assert cleaned(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "0000:0f:00.0",
        "00000000:0F:00.0",
        "10de:2330",
        "580.159.03.04",
        "libibverbs.so.1.14.39.0",
        "7783-7084-3265-9085-8269-3286-77",
        "0-47,96-143",
        "00000000,0000ffff,ffffffff",
        "NVIDIA H100 80GB HBM3",
        "96.00.5E.00.01",
        "28.39.1002",
        "2026-11-21T12:00:00",
        "root:x:0",
        "Flags: fpu sse2 aes",
    ],
)
def test_what_says_nothing_about_anybody_stays(text: str) -> None:
    assert cleaned(text) == text


def test_the_same_is_replaced_by_the_same_everywhere() -> None:
    shared = "506b:4b03:00cc:1a2c"
    made = anonymous(snapshot(text=shared, output="System image GUID: 0x506b4b0300cc1a2c\n0xaaaaaaaaaaaaaaaa"))
    assert made.files[0].text == "0000:0000:0000:0001"
    assert made.answers[0].output == "System image GUID: 0x0000000000000001\n0x0000000000000002"


def test_host_names_in_the_environment_go_and_settings_stay() -> None:
    made = anonymous(snapshot())
    assert made.environment == {"SLURM_JOB_NODELIST": "<hosts>", "NCCL_SOCKET_IFNAME": "eth0"}
    assert (made.hostname, made.anonymous) == ("host1", True)


@pytest.mark.parametrize(
    ("hostname", "text"),
    [
        ("vm", "VM exit, kvm, vm"),
        ("node1", "NUMA node1 CPU(s): 0-3"),
        ("nvidia", "NVIDIA H100"),
        ("ib0", "mlx5_0 ==> ib0"),
    ],
)
def test_a_host_called_as_something_else_does_not_take_that_along(hostname: str, text: str) -> None:
    assert cleaned(text, hostname=hostname) == text


def test_names_of_the_kernel_stay_whatever_the_host_is_called() -> None:
    made = anonymous(snapshot(hostname="driver", path="/proc/driver/nvidia/version", text="driver"))
    assert (made.files[0].path, made.files[0].text) == ("/proc/driver/nvidia/version", "name1")


def test_hwloc_says_the_name_of_the_host_in_a_field_of_its_own() -> None:
    assert cleaned('<info name="HostName" value="vm"/>', hostname="vm") == '<info name="HostName" value="host1"/>'


def test_a_home_folder_in_a_path_is_replaced() -> None:
    made = anonymous(snapshot(path="/home/bob/.nccl.conf", text="NCCL_TOPO_FILE=/home/bob/t.xml"))
    assert made.files[0].path == "/home/user1/.nccl.conf"
    assert made.files[0].text == "NCCL_TOPO_FILE=/home/user1/t.xml"


@pytest.mark.parametrize(
    ("tag", "kept"),
    [("7783-7084-3265-9085-8269-3286-77", True), ("OracleCloud.com", True), ("ASSET-00417", False)],
)
def test_the_tag_of_a_cloud_stays_and_one_of_an_inventory_goes(tag: str, kept: bool) -> None:
    made = anonymous(snapshot(path="/sys/class/dmi/id/chassis_asset_tag", text=f"{tag}\n"))
    assert (made.files[0].text == f"{tag}\n") is kept


@pytest.mark.parametrize("name", MACHINES)
def test_an_anonymous_machine_reads_as_the_same(name: str) -> None:
    original = snapshot_of(MACHINES[name])
    read = msgspec.to_builtins(hardware_of(anonymous(original)))
    expected = msgspec.to_builtins(hardware_of(original))
    for both in (read, expected):
        both["hostname"] = ""
        both["dmi"].pop("board_asset_tag", None)
        for gpu in both["gpus"]:
            gpu["uuid"] = gpu["uuid"] is not None
        guids = [port["guid"] for port in both["ports"]]
        for port in both["ports"]:
            port["guid"] = guids.index(port["guid"])
    assert read == expected


def test_no_serial_number_or_uuid_of_a_gpu_is_left() -> None:
    made = anonymous(snapshot_of(MACHINES["aws-p5"]))
    everything = msgspec.json.encode(made).decode()
    assert "1650000000000" not in everything
    assert "1111-2222" not in everything
    assert "i-0123456789abcdef0" not in everything


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpunode17-ib0 and gpunode17_ib0", "name1-ib0 and name1_ib0"),
        ("gpunode17.other.example.org", "name1"),
        ("GPUNODE17:4791", "name1:4791"),
        ("gpunode170 is another", "gpunode170 is another"),
        ("/lustre/gpunode17.xml", "/lustre/name1.xml"),
    ],
)
def test_a_host_is_found_inside_the_names_of_its_interfaces_and_domains(text: str, expected: str) -> None:
    assert cleaned(text) == expected


def test_a_hardware_address_is_replaced_however_it_is_written() -> None:
    assert cleaned("50-6B-4B-A1-B2-C3 is 50:6b:4b:a1:b2:c3") == "02:00:00:00:00:01 is 02:00:00:00:00:01"


@pytest.mark.parametrize("hostname", ["h100", "H200", "gh200", "epyc", "dgx", "microsoft", "system"])
def test_a_host_called_as_what_is_in_it_is_still_read_as_the_same_machine(hostname: str) -> None:
    for machine in MACHINES.values():
        named = msgspec.structs.replace(snapshot_of(machine), hostname=hostname)
        here, there = hardware_of(named), hardware_of(anonymous(named))
        assert [gpu.name for gpu in there.gpus] == [gpu.name for gpu in here.gpus]
        assert there.cpu_model == here.cpu_model
        assert there.matrix == here.matrix


def test_variables_that_name_other_hosts_are_left_out() -> None:
    named = msgspec.structs.replace(
        snapshot(), environment={"NCCL_HOSTID": "gpunode18", "NCCL_COMM_ID": "gpunode18:1234", "NCCL_DEBUG": "INFO"}
    )
    assert anonymous(named).environment == {
        "NCCL_HOSTID": "<hosts>", "NCCL_COMM_ID": "<hosts>", "NCCL_DEBUG": "INFO",
    }  # fmt: skip


def test_many_addresses_take_no_longer_each_than_few() -> None:
    addresses = [f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}" for number in range(60_000)]
    few, many = "\n".join(addresses[: 60_000 // 8]), "\n".join(addresses)
    assert cleaned(many).count("192.0.2.") == 60_000
    check_growth(cleaned, few, many, most=24)
