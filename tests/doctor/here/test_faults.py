"""A healthy node has no finding, and each fault that is planted in it gives exactly its own."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from tests.probe.hosts import snapshot_of
from tests.probe.machines import MACHINES

from busbw.facts.rules import rules
from busbw.model.finding import counts_of
from busbw.model.host import FoundLibrary, NcclKind, Snapshot

from .nodes import (
    BARE,
    EFA,
    SUPERCHIP,
    VIRTUAL,
    check,
    codes,
    examined,
    healthy,
    in_smi,
    peers,
    with_answer,
    with_files,
    without_files,
)

Fault = Callable[[Snapshot], Snapshot]
_PCI = "/sys/bus/pci/devices"
_PORT = "/sys/class/infiniband/mlx5_6/ports/1"
_IB = "/sys/class/infiniband/mlx5_ib3/ports/1"
_BREAK = "\n\t\t\t"
_CLOCK = f"{_BREAK}<graphics_clock>"
_BRIDGE = "0000:01:00.0"


def file(path: str, text: str) -> Fault:
    return lambda node: with_files(node, {path: text})


def smi(old: str, new: str) -> Fault:
    return lambda node: in_smi(node, old, new)


def said(name: str, output: str) -> Fault:
    return lambda node: with_answer(node, name, output)


def libraries(*kept: FoundLibrary) -> Fault:
    return lambda node: msgspec.structs.replace(node, libraries=kept)


def set_to(name: str, value: str) -> Fault:
    return lambda node: msgspec.structs.replace(node, environment={**node.environment, name: value})


def in_file(ending: str, old: str, new: str) -> Fault:
    """Return a fault in the first file whose path ends so and that has `old` in it."""

    def plant(node: Snapshot) -> Snapshot:
        path, text = next(
            (each.path, each.text)
            for each in node.files
            if each.path.endswith(ending) and each.text is not None and old in each.text
        )
        return with_files(node, {path: text.replace(old, new)})

    return plant


def _column(value: str, unit: str) -> str:
    return f"{value:<20} {value:<20} {unit}"


def library(name: str, version: str | None = None, unresolved: tuple[str, ...] | None = ()) -> FoundLibrary:
    return FoundLibrary(name=name, path=f"/opt/{name}.so", version=version, found_by="loader", unresolved=unresolved)


def with_nccl(kind: NcclKind) -> Fault:
    """Return what puts a library in NCCL's place; it is no fault by itself."""
    first = msgspec.structs.replace(library("libnccl", "2.27.3"), kind=kind)
    return libraries(first, library("libibverbs"))


FAULTS: dict[str, tuple[str, str, Fault]] = {
    "little locked memory": (
        "HOST001",
        BARE,
        in_file("/limits", _column("unlimited", "bytes"), _column("65536", "bytes")),
    ),
    "docker's shared memory": ("HOST002", BARE, said("df-shm", "Filesystem 1K\nshm 65536 0 65536 0% /dev/shm\n")),
    "few files": ("HOST003", BARE, in_file("/limits", _column("1048576", "files"), _column("1024", "files"))),
    "NUMA balancing": ("HOST004", BARE, file("/proc/sys/kernel/numa_balancing", "1\n")),
    "a governor that saves": ("HOST005", BARE, in_file("/scaling_governor", "performance", "powersave")),
    "a clock on its own": ("HOST006", BARE, said("timedatectl", "no\n")),
    "some CPUs": ("HOST007", BARE, file("/proc/self/status", "Cpus_allowed_list:\t0-7\n")),
    "ACS on a switch": ("HOST010", BARE, file(f"{_PCI}/{_BRIDGE}/config", "001d\n")),
    "an IOMMU that translates": ("HOST011", BARE, file("/sys/kernel/iommu_groups/7/type", "DMA-FQ\n")),
    "GPUs that are no peers": ("HOST012", BARE, said("nvidia-smi-p2p", peers(8, "CNS"))),
    "a GPU with half its lanes": (
        "HOST013",
        BARE,
        smi("<current_link_width>16x</current_link_width>", "<current_link_width>8x</current_link_width>"),
    ),
    "a NIC in an old slot": (
        "HOST014",
        BARE,
        file(f"{_PCI}/0000:0c:00.0/current_link_speed", "8.0 GT/s PCIe\n"),
    ),
    "a GPU at rest": (
        "HOST015",
        BARE,
        smi("<current_link_gen>4</current_link_gen>", "<current_link_gen>1</current_link_gen>"),
    ),
    "no peer memory": ("HOST020", BARE, file("/proc/modules", "nvidia 1 1\nmlx5_core 1 1\n")),
    "a port that is down": ("HOST021", BARE, file(f"{_PORT}/state", "1: DOWN\n")),
    "a port without a subnet manager": ("HOST021", VIRTUAL, file(f"{_IB}/state", "2: INIT\n")),
    "a port at a quarter of its rate": ("HOST022", VIRTUAL, file(f"{_IB}/rate", "100 Gb/sec (4X HDR)\n")),
    "symbol errors": ("HOST023", BARE, file(f"{_PORT}/counters/symbol_error", "4181\n")),
    "an MTU of 1500": ("HOST024", BARE, in_file("/mtu", "4220", "1500")),
    "no verbs devices": ("HOST025", BARE, said("ls-infiniband", "total 0\n")),
    "memory errors": ("HOST031", BARE, smi("<dram_uncorrectable>0<", "<dram_uncorrectable>2<")),
    "a repair that is pending": ("HOST032", BARE, smi("<remapped_row_pending>No<", "<remapped_row_pending>Yes<")),
    "a repair that failed": ("HOST032", BARE, smi("<remapped_row_failure>No<", "<remapped_row_failure>Yes<")),
    "heat": (
        "HOST033",
        BARE,
        smi("hw_thermal_slowdown>Not Active<", "hw_thermal_slowdown>Active<"),
    ),
    "lowered clocks": ("HOST034", BARE, smi(f"<applications_clocks>{_CLOCK}19", f"<applications_clocks>{_CLOCK}12")),
    "no persistence": ("HOST035", BARE, smi("<persistence_mode>Enabled<", "<persistence_mode>Disabled<")),
    "a partitioned GPU": ("HOST036", BARE, smi("<current_mig>Disabled<", "<current_mig>Enabled<")),
    "switches that are not set up": (
        "HOST037",
        BARE,
        smi(f"<state>Completed</state>{_BREAK}<status>Success", f"<state>In Progress</state>{_BREAK}<status>N/A"),
    ),
    "a plug-in that does not load": (
        "HOST040",
        BARE,
        libraries(library("libnccl", "2.27.3"), library("libnccl-net", None, ("libfabric.so.1",))),
    ),
    "EFA without its plug-in": ("HOST041", EFA, libraries(library("libnccl", "2.27.3"), library("libibverbs"))),
    "Slingshot without its plug-in": ("HOST041", SUPERCHIP, libraries(library("libnccl", "2.27.3"))),
    "InfiniBand without libibverbs": ("HOST042", VIRTUAL, libraries(library("libnccl", "2.27.3"))),
    "a plug-in that is nowhere": ("HOST043", BARE, set_to("NCCL_NET_PLUGIN", "gib")),
    "two versions of NCCL": (
        "HOST044",
        BARE,
        libraries(library("libnccl", "2.27.3"), library("libnccl", "2.21.5"), library("libibverbs")),
    ),
    "algorithms that NCCL does not read": (
        "HOST046",
        BARE,
        lambda node: set_to("MSCCL_XML_FILES", "two-step.xml")(with_nccl("NCCL")(node)),
    ),
    "a topology file that is not there": ("HOST045", BARE, set_to("NCCL_TOPO_FILE", "/opt/nowhere.xml")),
}  # fmt: skip


def test_error_counters_are_told_with_the_rate_they_come_to_at_least_and_with_their_end(tmp_path):
    node = with_files(healthy(BARE), {f"{_PORT}/counters/symbol_error": "65535\n"})

    (found,) = check(examined(node, tmp_path), "fabric errors").findings
    rate = "853 an hour since the host came up 3.2 days ago, and more if they were set to 0 after that"
    assert found.evidence == f"symbol_error 65535, its maximum: it may have been more; {rate}"


def test_congestion_is_no_fault_and_is_told(tmp_path):
    node = with_files(healthy(BARE), {f"{_PORT}/hw_counters/np_cnp_sent": "5123\n"})

    done = check(examined(node, tmp_path), "fabric errors")
    assert done.outcome == "ok"
    assert (done.because or "").endswith("congestion since they were 0: mlx5_6 np_cnp_sent 5123")


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_a_healthy_node_has_no_finding(name, tmp_path):
    diagnosis = examined(healthy(name), tmp_path)

    assert codes(diagnosis) == []
    assert diagnosis.counts == counts_of(())


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("MSCCL", "MSCCL_XML_FILES", None),
        ("MSCCL", "MSCCL_ALGO_DIR", "HOST046"),
        ("msccl-executor-nccl", "MSCCL_ALGO_DIR", None),
        ("msccl-executor-nccl", "MSCCL_CONFIG", "HOST046"),
    ],
)
def test_each_library_made_from_nccl_reads_its_own_setting(kind, name, code, tmp_path):
    diagnosis = examined(set_to(name, "/opt/algorithms")(with_nccl(kind)(healthy(BARE))), tmp_path)

    assert codes(diagnosis) == ([code] if code else [])
    (told,) = [each for each in diagnosis.checks if each.name == "NCCL versions"]
    assert told.because == f"2.27.3, {kind}"


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_planted_fault_is_found_and_nothing_else(fault, tmp_path):
    code, machine, plant = FAULTS[fault]

    diagnosis = examined(plant(healthy(machine)), tmp_path)

    assert set(codes(diagnosis)) == {code}
    for found in [each for one in diagnosis.checks for each in one.findings]:
        assert found.evidence
        assert found.fix
        assert found.look
        assert found.effect
        assert found.confidence
        assert found.source


def test_every_rule_has_a_planted_fault():
    # Those of the network's features are planted in test_network.py.
    elsewhere = {"HOST026", "HOST027", "HOST028", "HOST030", "HOST038", "HOST050"}

    assert {code for code in rules() if code.startswith("HOST")} == {
        code for code, _m, _f in FAULTS.values()
    } | elsewhere


def test_a_node_without_one_of_its_nics_is_not_what_its_platform_is(tmp_path):
    machine = MACHINES[VIRTUAL]
    fewer = tuple(one for one in machine.functions if one.bus_id != "0101:00:00.0")
    node = snapshot_of(replace(machine, functions=fewer))

    (found,) = check(examined(node, tmp_path), "platform").findings

    assert (found.code, VIRTUAL in found.title) == ("HOST050", True)


def test_a_gpu_on_the_bus_that_the_driver_does_not_show_is_lost(tmp_path):
    node = healthy(BARE)
    text = next(answer.output for answer in node.answers if answer.name == "nvidia-smi-xml")
    head, first, rest = text.partition("\t<gpu id=")
    lost = with_answer(node, "nvidia-smi-xml", head + first + rest.partition("\t<gpu id=")[2])

    diagnosis = examined(lost, tmp_path)

    assert set(codes(diagnosis)) == {"HOST030"}
    assert "0000:0f:00.0" in check(diagnosis, "GPUs on the bus").findings[0].title


def test_a_container_may_be_given_fewer_gpus_than_its_host_has(tmp_path):
    node = msgspec.structs.replace(healthy(BARE), container="docker")
    text = next(answer.output for answer in node.answers if answer.name == "nvidia-smi-xml")
    head, first, rest = text.partition("\t<gpu id=")
    fewer = with_answer(node, "nvidia-smi-xml", head + first + rest.partition("\t<gpu id=")[2])

    assert check(examined(fewer, tmp_path), "GPUs on the bus").outcome == "cannot_tell"


def test_dead_nvlinks_are_named(tmp_path):
    node = healthy(BARE)
    text = next(answer.output for answer in node.answers if answer.name == "nvidia-smi-nvlink")
    lines = text.splitlines()
    place = next(number for number, line in enumerate(lines) if "Link 4:" in line)
    lines[place] = "\t Link 4: <inactive>"

    diagnosis = examined(with_answer(node, "nvidia-smi-nvlink", "\n".join(lines) + "\n"), tmp_path)

    assert codes(diagnosis) == ["HOST038"]
    assert check(diagnosis, "NVLink").findings[0].evidence == "inactive: 4"


def test_a_narrow_link_of_a_nic_is_named_by_its_device(tmp_path):
    node = with_files(healthy(BARE), {f"{_PCI}/0000:0c:00.0/current_link_width": "8\n"})

    (found,) = check(examined(node, tmp_path), "PCIe links").findings

    assert (found.code, "8 of 16" in found.title, "0000:0c:00.0" in found.title) == ("HOST013", True, True)


def test_the_rate_that_is_published_is_named(tmp_path):
    node = FAULTS["a port at a quarter of its rate"][2](healthy(VIRTUAL))

    (found,) = check(examined(node, tmp_path), "fabric rates").findings

    assert "runs at 100 of 400 Gb/s" in found.title
    assert "azure-nd-h100-v5" in found.evidence


def test_a_port_that_waits_for_its_subnet_manager_is_told_from_a_dead_cable(tmp_path):
    waiting = examined(FAULTS["a port without a subnet manager"][2](healthy(VIRTUAL)), tmp_path)
    dead = examined(FAULTS["a port that is down"][2](healthy(BARE)), tmp_path)

    assert "subnet manager" in (check(waiting, "fabric ports").findings[0].fix or "")
    assert "cable" in (check(dead, "fabric ports").findings[0].fix or "")


@pytest.mark.parametrize(
    ("module", "kernel", "outcome"),
    [
        ("Open Kernel Module for x86_64", "Linux 6.8.0 x86_64", "ok"),
        ("Open Kernel Module for x86_64", "Linux 4.18.0 x86_64", "found"),
        ("x86_64 Kernel Module", "Linux 6.8.0 x86_64", "found"),
    ],
)
def test_dma_buf_needs_the_open_module_and_a_kernel_that_has_it(module, kernel, outcome, tmp_path):
    version = f"NVRM version: NVIDIA UNIX {module}  570.86.15  Release Build\n"
    node = with_files(healthy(BARE), {"/proc/modules": "nvidia 1 1\n", "/proc/driver/nvidia/version": version})

    assert check(examined(with_answer(node, "uname", kernel), tmp_path), "GPUDirect RDMA").outcome == outcome


@pytest.mark.parametrize(
    ("ending", "name"),
    [
        ("/limits", "locked memory"),
        ("/numa_balancing", "NUMA balancing"),
        ("/config", "PCI access control (ACS)"),
        ("/uptime", "IOMMU"),
        ("/modules", "GPUDirect RDMA"),
        ("/counters/symbol_error", "fabric errors"),
        ("/ports/1/rate", "fabric rates"),
        ("/ports/1/state", "fabric ports"),
        ("/scaling_governor", "CPU governor"),
        ("/status", "CPUs of this process"),
    ],
)
def test_what_is_absent_cannot_be_told_and_is_never_ok(ending, name, tmp_path):
    node = without_files(healthy(BARE), ending)
    node = without_files(node, "/counters/link_downed") if "symbol" in ending else node

    found = check(examined(node, tmp_path), name)

    assert (found.outcome, bool(found.because), bool(found.look)) == ("cannot_tell", True, True)


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("nvidia-smi-xml", ("GPU memory (ECC)", "GPU clocks", "GPU persistence", "MIG", "GPUs on the bus")),
        ("nvidia-smi-p2p", ("GPU peer access",)),
        ("df-shm", ("shared memory",)),
        ("timedatectl", ("clock",)),
    ],
)
def test_what_a_command_did_not_say_cannot_be_told(answer, names, tmp_path):
    diagnosis = examined(with_answer(healthy(BARE), answer, ""), tmp_path)

    assert {check(diagnosis, name).outcome for name in names} == {"cannot_tell"}


def test_access_control_in_a_virtual_machine_cannot_be_told(tmp_path):
    assert check(examined(healthy(VIRTUAL), tmp_path), "PCI access control (ACS)").outcome == "cannot_tell"


def test_source_validation_alone_sends_nothing_through_the_cpu(tmp_path):
    node = with_files(healthy(BARE), {f"{_PCI}/{_BRIDGE}/config": "0001\n"})

    assert check(examined(node, tmp_path), "PCI access control (ACS)").outcome == "ok"


def test_a_runtime_that_the_program_brings_is_not_missed(tmp_path):
    kept = (library("libcudart", "12.4"), library("libnccl-net", None, ("libcudart.so.12",)))

    diagnosis = examined(libraries(*kept)(healthy(EFA)), tmp_path)

    assert check(diagnosis, "libraries resolve").outcome == "ok"


def test_the_platform_that_somebody_names_is_the_one_it_is_held_against(tmp_path):
    diagnosis = examined(healthy(BARE), tmp_path, platform="azure-nd-h100-v5")

    assert diagnosis.platform == "azure-nd-h100-v5"
    assert "HOST022" in codes(diagnosis)


def test_gpus_that_are_made_without_peer_access_are_no_fault(tmp_path):
    diagnosis = examined(with_answer(healthy(BARE), "nvidia-smi-p2p", peers(2, "GNS")), tmp_path)

    assert check(diagnosis, "GPU peer access").outcome == "skipped"
