"""Hosts made from what is published of a platform: what one would show that is exactly as its file says."""

import re

from msgspec import structs

from busbw.base.cpus import parse_cpu_list
from busbw.facts.clouds import clouds
from busbw.model.host import Answer, Hardware, HostGpu, HostNuma, HostPort, PciFunction
from busbw.model.platform import Platform

KINDS = ("InfiniBand", "RoCE", "EFA", "Slingshot")


def hardware_of_platform(platform: Platform) -> Hardware:
    """Everything that the file says, and nothing else; globs become the shortest text that they take."""
    gpus = _gpus(platform)
    ports = _ports(platform)
    return Hardware(
        hostname="node1",
        architecture=platform.match.architecture,
        dmi={name: _text(glob) for name, glob in platform.match.dmi.items()},
        cpu_model=platform.cpu.model,
        cpu_vendor=platform.cpu.vendor,
        cpu_family=platform.cpu.family,
        cpu_model_number=platform.cpu.model_number,
        cores=platform.cpu.cores,
        cpus=tuple(range(platform.cpu.threads or platform.cpu.cores or 0)),
        memory_bytes=platform.match.memory_bytes or platform.cpu.memory_bytes,
        numa=_numa(platform),
        pci=(*_gpu_functions(platform, gpus), *_nic_functions(ports)),
        gpus=gpus,
        ports=ports,
    )


def without_gpu(hardware: Hardware, place: int) -> Hardware:
    """The same host after one GPU has fallen off the bus."""
    lost = hardware.gpus[place].bus_id
    return structs.replace(
        hardware,
        gpus=tuple(gpu for gpu in hardware.gpus if gpu.bus_id != lost),
        pci=tuple(function for function in hardware.pci if function.bus_id != lost),
    )


def answer(service: str, name: str) -> Answer:
    """What the door brings back from a metadata service."""
    assert service in {cloud.id for cloud in clouds()}
    return Answer(name=f"metadata-{service}", argv=("GET", "http://169.254.169.254/"), ended="ok", output=name)


def _texts(glob: str) -> list[str]:
    """All texts that a glob with brackets takes; `*` stands for nothing."""
    match = re.search(r"\[([^]]+)\]", glob)
    if match is None:
        return [glob.replace("*", "").replace("?", "")]
    characters = re.sub(r"(.)-(.)", lambda ends: "".join(map(chr, range(ord(ends[1]), ord(ends[2]) + 1))), match[1])
    return [text for each in characters for text in _texts(glob[: match.start()] + each + glob[match.end() :])]


def _text(glob: str) -> str:
    return _texts(glob)[0]


def _gpus(platform: Platform) -> tuple[HostGpu, ...]:
    name = _text(platform.match.gpu_names[0]) if platform.match.gpu_names else platform.gpu.model
    addresses = {place.gpu: place.bus_id for place in platform.gpus}
    return tuple(
        HostGpu(
            index=index,
            bus_id=addresses.get(index) or f"0f{index:02x}:00:00.0",
            name=name,
            memory_bytes=platform.gpu.memory_bytes,
            sm=platform.gpu.sm,
        )
        for index in range(platform.gpu.count)
    )


def _gpu_functions(platform: Platform, gpus: tuple[HostGpu, ...]) -> tuple[PciFunction, ...]:
    ids = platform.match.gpu_devices[0].split(":") if platform.match.gpu_devices else None
    if ids is None:
        return ()
    return tuple(
        PciFunction(bus_id=gpu.bus_id, parent=None, device_class="0x030200", vendor=f"0x{ids[0]}", device=f"0x{ids[1]}")
        for gpu in gpus
    )


def _ports(platform: Platform) -> tuple[HostPort, ...]:
    kind = platform.fabric.kind
    if kind not in KINDS:
        return ()
    count = platform.nic.ports or 0
    places = dict(enumerate(platform.nics))
    names = [text for glob in platform.match.rdma_names for text in _texts(glob)] or ["mlx5_0"]
    # `rdmap*s0`: the number of the bus, any of them here.
    names += [names[0].replace("rdmap", f"rdmap{number}", 1) for number in range(len(names), count)]
    ports = []
    for number in range(count):
        place = places.get(number)
        bus_id = place.bus_id if place is not None else None
        if bus_id is not None and place is not None and place.port > 1:
            bus_id = f"{bus_id[:-1]}{place.port - 1}"
        ports.append(
            HostPort(
                name=(place.name if place is not None else None) or names[number],
                port=1,
                bus_id=bus_id,
                kind=kind,
                rate_bps=platform.nic.port_bps,
                up=True,
            )
        )
    return tuple(ports)


def _nic_functions(ports: tuple[HostPort, ...]) -> tuple[PciFunction, ...]:
    return tuple(
        PciFunction(bus_id=bus_id, parent=None, device_class="0x020700", vendor="0x15b3", device="0x1021")
        for bus_id in sorted({port.bus_id for port in ports if port.bus_id is not None})
    )


def _numa(platform: Platform) -> tuple[HostNuma, ...]:
    published = {place.id: parse_cpu_list(place.cpus) for place in platform.numa if place.cpus is not None}
    count = platform.cpu.numa_nodes or 0
    free = iter(number for number in range(64) if number not in published)
    numbers = sorted([*published, *(next(free) for _ in range(max(count - len(published), 0)))])
    return tuple(HostNuma(id=number, cpus=published.get(number) or (60_000 + number,)) for number in numbers)
