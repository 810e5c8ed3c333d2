"""A snapshot into a host: the kernel's files first, the tools for what these do not say."""

from busbw.machine.read import smi_text
from busbw.machine.read.absent import missing
from busbw.machine.read.gpus import gpus
from busbw.machine.read.index import Index
from busbw.machine.read.pci import pci_functions
from busbw.machine.read.processors import bytes_of, hypervisor, numa_nodes, processors
from busbw.machine.read.rdma import ports
from busbw.model.host import Hardware
from busbw.model.snapshot import Snapshot

_DMI = "/sys/class/dmi/id"


def hardware_of(snapshot: Snapshot) -> Hardware:
    """Return the host that a snapshot is of. What cannot be read is None or left out, and named in `missing`."""
    index = Index(snapshot)
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
        matrix=smi_text.matrix(index.said("nvidia-smi-topo")),
        missing=(*notes, *missing(index, functions, numa, found_ports)),
    )
