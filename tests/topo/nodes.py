"""Nodes to compute ways on, made by hand."""

from busbw.model.topology import ChipLink, Gpu, Net, NumaNode, NvLink, PciDevice, Topology

GEN4, GEN5 = "16.0 GT/s PCIe", "32.0 GT/s PCIe"
HIDDEN_SWITCH = "fffffff:ff:ff.0"


def make_device(bus_id: str, kind: str, **changes: object) -> PciDevice:
    classes = {"gpu": "0x030200", "nic": "0x020700", "switch": "0x060400"}
    fields = {"parent": None, "numa": 0, "link_speed": GEN5, "link_width": 16, "device_class": classes.get(kind)}
    return PciDevice(bus_id=bus_id, kind=kind, **{**fields, **changes})  # type: ignore[arg-type]


def make_numa(number: int, **changes: object) -> NumaNode:
    fields = {"architecture": "x86_64", "vendor": "GenuineIntel", "family": 6, "model": 143}
    return NumaNode(id=number, **{**fields, **changes})  # type: ignore[arg-type]


def switched_links(gpus: tuple[Gpu, ...], count: int = 18) -> tuple[NvLink, ...]:
    return tuple(NvLink(gpu=gpu.bus_id, target=HIDDEN_SWITCH, count=count, target_class="0x068000") for gpu in gpus)


def four_h200() -> Topology:
    """Return four H200 in a virtual machine: flat PCI, no NUMA, one slow port that is on no PCI device."""
    gpus = tuple(Gpu(bus_id=f"0000:00:{6 + place:02x}.0", dev=place, rank=place, sm=90, gdr=True) for place in range(4))
    return Topology(
        numa=(make_numa(-1, model=207),),
        devices=tuple(make_device(gpu.bus_id, "gpu", numa=-1, link_width=0) for gpu in gpus),
        gpus=gpus,
        nvlinks=switched_links(gpus),
        nets=(Net(name="eth0", bus_id=None, numa=-1, dev=0, speed_Mbps=10000, port=0, gdr=False),),
    )


def two_sockets(*, nvlinks: bool = True, gpus_each: int = 4, port_Mbps: int = 400_000) -> Topology:
    """Return two sockets with switches that hold a GPU and a NIC each."""
    devices, gpus, nets = [], [], []
    for place in range(2 * gpus_each):
        numa = place // gpus_each
        switch, gpu, nic = f"ffff:ff:{place + 1:02x}.0", f"{place + 1:04x}:00:00.0", f"01{place + 1:02x}:00:00.0"
        devices += [
            make_device(switch, "switch", numa=numa),
            make_device(gpu, "gpu", numa=numa, parent=switch),
            make_device(nic, "nic", numa=numa, parent=switch),
        ]
        gpus.append(Gpu(bus_id=gpu, dev=place, sm=90))
        nets.append(Net(name=f"mlx5_{place}", bus_id=nic, numa=numa, dev=place, speed_Mbps=port_Mbps))
    return Topology(
        name="two-sockets",
        numa=(make_numa(0, cpus=tuple(range(48))), make_numa(1, cpus=tuple(range(48, 96)))),
        devices=tuple(devices),
        gpus=tuple(gpus),
        nvlinks=switched_links(tuple(gpus)) if nvlinks else (),
        nets=tuple(nets),
    )


def shared_switches() -> Topology:
    """Return two AMD sockets; below each a switch of two levels that holds two GPUs and one NIC with two ports."""
    devices, gpus, nets = [], [], []
    for numa in range(2):
        upper, lower = f"00{numa}0:01:00.0", f"00{numa}0:02:00.0"
        devices += [
            make_device(upper, "switch", numa=numa, link_speed=GEN4),
            make_device(lower, "switch", numa=numa, link_speed=GEN4, parent=upper),
        ]
        for place in range(2):
            gpu = f"00{numa}0:1{place}:00.0"
            devices.append(make_device(gpu, "gpu", numa=numa, link_speed=GEN4, parent=lower))
            gpus.append(Gpu(bus_id=gpu, sm=80))
        for port in range(2):
            nic = f"00{numa}0:20:00.{port}"
            devices.append(make_device(nic, "nic", numa=numa, link_speed=GEN4, parent=upper))
            nets.append(Net(name=f"mlx5_{2 * numa + port}", bus_id=nic, numa=numa, speed_Mbps=100_000))
    return Topology(
        numa=tuple(make_numa(number, vendor="AuthenticAMD", family=25, model=17) for number in range(2)),
        devices=tuple(devices),
        gpus=tuple(gpus),
        nets=tuple(nets),
    )


def four_gh200() -> Topology:
    """Return four Grace Hopper modules: every GPU linked to every other and to its own CPU, a NIC at each CPU."""
    gpus = tuple(Gpu(bus_id=f"00{place}9:01:00.0", dev=place, sm=90) for place in range(4))
    devices, nets = [], []
    for place, gpu in enumerate(gpus):
        devices.append(make_device(gpu.bus_id, "gpu", numa=place))
        nic = f"00{place}1:01:00.0"
        devices.append(make_device(nic, "nic", numa=place, link_speed=GEN5))
        nets.append(Net(name=f"cxi{place}", bus_id=nic, numa=place, dev=place, speed_Mbps=200_000))
    return Topology(
        numa=tuple(
            NumaNode(id=place, architecture="arm64", cpus=tuple(range(72 * place, 72 * place + 72)))
            for place in range(4)
        ),
        devices=tuple(devices),
        gpus=gpus,
        nvlinks=tuple(
            NvLink(gpu=gpu.bus_id, target=peer.bus_id, count=6, target_class="0x030200")
            for gpu in gpus
            for peer in gpus
            if peer is not gpu
        ),
        chip_links=tuple(ChipLink(gpu=gpu.bus_id, count=10, link_MBps=45_000) for gpu in gpus),
        nets=tuple(nets),
    )
