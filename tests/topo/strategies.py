"""Topologies as Hypothesis makes them: consistent, within NCCL's limits, of every kind a file can describe."""

from hypothesis import strategies as st

from busbw.model.topology import ChipLink, Gpu, LinkKind, Net, NumaNode, NvLink, PciDevice, PciLink, Topology

MOST_DEVICES = 14
_HEX = st.integers(0, 0xFFFF).map(lambda number: f"0x{number:04x}")
_SPEEDS = st.sampled_from(["", "2.5 GT/s", "16 GT/s", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "16.0 GT/s", "Unknown"])
_CLASSES = {
    "switch": ("0x060400", "0x080100"),
    "gpu": ("0x030200", "0x030000", "0x03"),
    "nic": ("0x020000", "0x020700", "0x02"),
    "nvswitch": ("0x068000",),
    "other": ("0x010802", "0x120000", None),
}
_KINDS = st.sampled_from(["switch", "switch", "gpu", "gpu", "gpu", "nic", "nic", "nvswitch", "other"])
_WORDS = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S"), exclude_characters='"'), min_size=1, max_size=30
)


def maybe(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.none() | strategy


@st.composite
def numa_nodes(draw: st.DrawFn) -> tuple[NumaNode, ...]:
    ids = draw(st.lists(st.integers(-1, 63), min_size=1, max_size=8, unique=True))
    cpus = draw(st.lists(st.integers(0, 895), max_size=200, unique=True).map(sorted))
    is_masked = draw(st.booleans())
    return tuple(
        NumaNode(
            id=number,
            cpus=tuple(cpus[place :: len(ids)]) if is_masked else None,
            architecture=draw(maybe(st.sampled_from(["x86_64", "arm64", "ppc64"]))),
            vendor=draw(maybe(st.sampled_from(["GenuineIntel", "AuthenticAMD", "CentaurHauls", "  Shanghai  "]))),
            family=draw(maybe(st.integers(0, 300))),
            model=draw(maybe(st.integers(0, 255))),
        )
        for place, number in enumerate(ids)
    )


@st.composite
def bus_ids(draw: st.DrawFn) -> tuple[str, ...]:
    numbers = draw(st.lists(st.integers(0, 2**32 - 1), max_size=MOST_DEVICES, unique=True))
    return tuple(
        f"{number >> 16:04x}:{number >> 8 & 0xFF:02x}:{number >> 3 & 0x1F:02x}.{number & 7:x}" for number in numbers
    )


@st.composite
def pci_devices(draw: st.DrawFn, numa: tuple[NumaNode, ...]) -> tuple[PciDevice, ...]:
    devices: list[PciDevice] = []
    for bus_id in draw(bus_ids()):
        kind = draw(_KINDS)
        above = [None, *(device for device in devices if device.kind == "switch")]
        parent = draw(st.sampled_from(above))
        devices.append(
            PciDevice(
                bus_id=bus_id,
                parent=parent.bus_id if parent else None,
                numa=parent.numa if parent else draw(st.sampled_from(numa)).id,
                kind=kind,
                device_class=draw(st.sampled_from(_CLASSES[kind])),
                vendor=draw(maybe(_HEX)),
                device=draw(maybe(_HEX)),
                subsystem_vendor=draw(maybe(_HEX)),
                subsystem_device=draw(maybe(_HEX)),
                link_speed=draw(maybe(_SPEEDS)),
                link_width=draw(maybe(st.sampled_from([0, 1, 4, 8, 16]))),
            )
        )
    return tuple(in_file_order(devices, numa))


def in_file_order(devices: list[PciDevice], numa: tuple[NumaNode, ...]) -> list[PciDevice]:
    """Return devices as a file lists them: those of a node together, each followed by what hangs below it."""

    def below(parent: str | None, node: int) -> list[PciDevice]:
        found = []
        for device in devices:
            if device.parent == parent and device.numa == node:
                found += [device, *below(device.bus_id, node)]
        return found

    return [device for node in numa for device in below(None, node.id)]


@st.composite
def gpus_of(draw: st.DrawFn, devices: tuple[PciDevice, ...], gcn: str | None) -> tuple[Gpu, ...]:
    numbers = iter(draw(st.permutations(range(MOST_DEVICES))))
    is_numbered = draw(st.booleans())
    gpus = [
        Gpu(
            bus_id=device.bus_id,
            dev=next(numbers) if is_numbered else None,
            rank=draw(maybe(st.integers(0, 4095))),
            sm=draw(maybe(st.sampled_from([70, 80, 90, 100]))) if gcn is None else None,
            gcn=gcn,
            gdr=draw(maybe(st.booleans())),
            mlopart=draw(maybe(st.integers(-1, 1))),
        )
        for device in devices
        if device.kind == "gpu"
    ]
    return tuple(sorted(gpus, key=lambda gpu: (gpu.dev is None, gpu.dev or 0, gpu.bus_id)))


@st.composite
def nets(draw: st.DrawFn, bus_id: str | None, numa: int) -> tuple[Net, ...]:
    return tuple(
        Net(
            name=draw(_WORDS),
            bus_id=bus_id,
            numa=numa,
            dev=draw(maybe(st.integers(0, 64))),
            speed_Mbps=draw(maybe(st.sampled_from([-1, 0, 10_000, 200_000, 400_000]))),
            latency_us=draw(maybe(st.floats(0, 1e6, allow_nan=False))),
            port=draw(maybe(st.integers(0, 4))),
            guid=draw(maybe(st.integers(0, 2**64 - 1).map(hex))),
            maxconn=draw(maybe(st.integers(0, 2**31 - 1))),
            gdr=draw(maybe(st.booleans())),
            coll=draw(maybe(st.booleans())),
            more=draw(st.dictionaries(st.sampled_from(["net", "gin", "rma", "rail", "plane"]), st.just("1"))),
        )
        for _ in range(draw(st.integers(0, 2)))
    )


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """A topology that `busbw.topo.writer.file_text` can write; parts are in the order in which a file has them."""
    numa = draw(numa_nodes())
    devices = draw(pci_devices(numa))
    # A node has GPUs of one maker.
    gcn = draw(st.sampled_from([None, None, "gfx942", "910"]))
    kind: LinkKind = "nvlink" if gcn is None else "xgmi"
    gpus = draw(gpus_of(devices, gcn))
    with_gpu = [device.bus_id for device in devices if device.kind == "gpu"]
    switches = [device.bus_id for device in devices if device.kind == "switch"]
    targets = st.sampled_from([*with_gpu, "fffffff:ffff:ff", "0000:c4:00.0"])
    ports = []
    for node in numa:
        ports += draw(nets(None, node.id))
        for device in devices:
            if device.numa == node.id and device.kind == "nic":
                ports += draw(nets(device.bus_id, node.id))
    return Topology(
        name=draw(maybe(_WORDS)),
        host_hash=draw(maybe(st.integers(0, 2**64 - 1).map(hex))),
        numa=numa,
        devices=devices,
        gpus=gpus,
        nvlinks=tuple(
            NvLink(
                gpu=gpu,
                target=draw(targets),
                count=draw(st.integers(0, 18)),
                target_class=draw(maybe(_HEX)),
                kind=kind,
            )
            for gpu in with_gpu
            for _ in range(draw(st.integers(0, 3)))
        ),
        chip_links=tuple(
            ChipLink(gpu=gpu, count=draw(st.integers(0, 10)), link_MBps=draw(st.integers(0, 50_000)))
            for gpu in with_gpu
            if draw(st.booleans())
        ),
        pci_links=tuple(
            PciLink(device=switch, target=draw(st.sampled_from(switches)))
            for switch in switches
            if draw(st.integers(0, 3)) == 0
        ),
        nets=tuple(ports),
    )
