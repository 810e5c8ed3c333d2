"""A snapshot into a host: the kernel's files first, the tools for what these do not say."""

import re

from busbw.base.text import listed
from busbw.machine.read import nvidia_smi
from busbw.machine.read.commands import COMMANDS, FILES, Command
from busbw.machine.read.gpus import gpus
from busbw.machine.read.index import SnapshotIndex
from busbw.machine.read.kernel import bytes_of, hypervisor, numa_nodes, processors
from busbw.machine.read.pci import pci_functions, ports
from busbw.model.host import Answer, Hardware, HostNuma, HostPort, PciFunction, Snapshot

_COMPLAINT = re.compile(r"\s*(?:warning|error|failed|unable|cannot|could not)\b", re.IGNORECASE)
_LONGEST_SAID = 160
_MOST_NAMED = 3


def missing(
    index: SnapshotIndex, pci: tuple[PciFunction, ...], numa: tuple[HostNuma, ...], ports: tuple[HostPort, ...]
) -> tuple[str, ...]:
    """Return in words what is missing from a snapshot, in an order that does not change."""
    return (*_kernel(index, pci, numa), *_commands(index, pci), *_ports(index, ports))


def _kernel(index: SnapshotIndex, pci: tuple[PciFunction, ...], numa: tuple[HostNuma, ...]) -> tuple[str, ...]:
    notes = []
    if not pci:
        notes.append("the kernel shows no PCI functions: where GPUs and NICs sit is not known")
    elif numa and len(numa) > 1 and all(function.numa < 0 for function in pci):
        notes.append("no PCI function says its NUMA node: firmware or hypervisor does not tell the kernel")
    if not numa:
        notes.append("the kernel shows no NUMA nodes")
    if index.text("/sys/devices/system/cpu/online") is None and not index.output("lscpu"):
        notes.append("neither the kernel nor lscpu says which CPUs there are")
    if not index.has("/sys/class/dmi/id"):
        notes.append("no DMI: neither maker nor cloud is known from the firmware")
    cut = index.answer(FILES)
    if cut is not None:
        notes.append(f"not all of the kernel's files were taken: {cut.error[:_LONGEST_SAID]}")
    refused = index.refused
    if refused:
        notes.append(f"not allowed to read {listed(refused, _MOST_NAMED)}")
    return tuple(notes)


def _commands(index: SnapshotIndex, pci: tuple[PciFunction, ...]) -> tuple[str, ...]:
    vendors = {function.vendor for function in pci}
    absent: dict[str, list[str]] = {}
    failed: dict[tuple[str, str], list[Command]] = {}
    for command in COMMANDS:
        answer = index.answer(command.name)
        expected = command.tells is not None and bool(vendors.intersection(command.vendors))
        if answer is None or answer.ended == "absent":
            if command.tells is not None and expected:
                absent.setdefault(command.programs[0], []).append(command.tells)
        elif answer.ended != "ok" and (expected or answer.ended != "failed"):
            failed.setdefault((command.programs[0], _how(answer)), []).append(command)
    return (
        *(f"no {program}, which tells {'; '.join(tells)}" for program, tells in absent.items()),
        *(_failure(how, commands) for (_program, how), commands in failed.items()),
    )


def _failure(how: str, commands: list[Command]) -> str:
    """Return what failed, in one note for all that a program was asked and failed at in the same way."""
    first = " ".join((commands[0].programs[0], *commands[0].arguments))
    asked = f"`{first}`" if len(commands) == 1 else f"`{first}` and {len(commands) - 1} more"
    tells = "; ".join(command.tells for command in commands if command.tells is not None)
    return f"{asked} {how}" + (f"; it tells {tells}" if tells else "")


def _how(answer: Answer) -> str:
    if answer.ended == "timeout":
        return "did not answer in time"
    if answer.ended == "cut":
        return "said more than is kept"
    said = (answer.error.strip() or answer.output.strip()).splitlines()
    # A warning may stand behind a whole answer.
    complaint = next((line.strip() for line in said if _COMPLAINT.match(line)), said[0] if said else "")
    code = f" with code {answer.exit_code}" if answer.exit_code is not None else ""
    return f"failed{code}" + (f" ({complaint[:_LONGEST_SAID]})" if complaint else "")


def _ports(index: SnapshotIndex, ports: tuple[HostPort, ...]) -> tuple[str, ...]:
    """Return where the tools list RDMA devices that the kernel's files do not show, or the reverse."""
    listed = {
        line.split("'")[1]
        for line in index.said("ibstat").splitlines()
        if line.startswith("CA '") and line.count("'") > 1
    }
    known = {port.name for port in ports}
    lost = sorted(listed - known)
    return (f"listed by ibstat but not shown by the kernel: {', '.join(lost)}",) if lost and known else ()


_DMI = "/sys/class/dmi/id"


def hardware_of(snapshot: Snapshot) -> Hardware:
    """Return the host that a snapshot is of. What cannot be read is None or left out, and named in `missing`."""
    index = SnapshotIndex(snapshot)
    dmi = {name: text for name in index.names(_DMI) if (text := index.text(f"{_DMI}/{name}")) is not None}
    cpu = processors(index)
    functions = pci_functions(index)
    pci = {function.bus_id: function for function in functions}
    found_gpus, notes = gpus(index, pci)
    numa = numa_nodes(index)
    found_ports = ports(index, pci)
    return Hardware(
        hostname=snapshot.hostname,
        architecture=cpu.architecture,
        dmi=dmi,
        hypervisor=hypervisor(index, dmi),
        container=snapshot.container,
        cpu_model=cpu.model,
        cpu_vendor=cpu.vendor,
        cpu_family=cpu.family,
        cpu_model_number=cpu.model_number,
        sockets=cpu.sockets,
        cores=cpu.cores,
        cpus=cpu.cpus,
        memory_bytes=bytes_of(index.text("/proc/meminfo")),
        numa=numa,
        pci=functions,
        gpus=found_gpus,
        ports=found_ports,
        matrix=nvidia_smi.matrix(index.said("nvidia-smi-topo")),
        missing=(*notes, *missing(index, functions, numa, found_ports)),
    )
