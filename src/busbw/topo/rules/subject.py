"""What is checked: the elements of a topology file, read once, each with its place in the file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from busbw.base.cpus import parse_mask
from busbw.model.finding import FilePlace
from busbw.topo.buses import canonical
from busbw.topo.file.document import Element, TopologyDocument, read_integer

Kind = Literal["gpu", "nic", "switch", "nvswitch", "cpu"]
_CLASSES: tuple[tuple[str, Kind], ...] = (
    ("0x060400", "switch"),
    ("0x080100", "switch"),
    ("0x068000", "nvswitch"),
    ("0x068001", "cpu"),
    ("0x03", "gpu"),
    ("0x02", "nic"),
)


class LinkWords(NamedTuple):
    """What links are called, and who reads their elements and looks for links where a GPU has none."""

    one: str
    several: str
    library: str


# By the name of the element.
LINK_WORDS = {
    "nvlink": LinkWords("NVLink", "NVLinks", "NCCL"),
    "xgmi": LinkWords("XGMI link", "XGMI links", "RCCL"),
    "c2c": LinkWords("C2C link", "C2C links", "NCCL"),
}
WORDS = {"gpu": "GPU", "nic": "NIC", "switch": "switch", "nvswitch": "NVSwitch", "cpu": "CPU"}


@dataclass(frozen=True, slots=True)
class CpuElement:
    """One `cpu` element."""

    element: Element
    # None: it has no number.
    id: int | None
    host: str | None
    # None: no mask, or one that is not readable.
    cpus: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class PciElement:
    """One `pci` element."""

    element: Element
    # As NCCL spells it; None: none, or none that is one.
    bus_id: str | None
    # None: the file does not say.
    kind: Kind | None
    node: CpuElement
    parent: "PciElement | None"

    @property
    def name(self) -> str:
        """What it is and where, for a sentence."""
        return f"{WORDS.get(self.kind or '', 'device')} {self.bus_id or self.element.value('busid') or '?'}"


@dataclass(frozen=True, slots=True)
class Link:
    """One `nvlink` element, or RCCL's `xgmi`."""

    element: Element
    gpu: PciElement
    # As NCCL spells a bus id, or the text as it stands.
    target: str
    count: int | None

    @property
    def words(self) -> LinkWords:
        """What such links are called."""
        return LINK_WORDS[self.element.name]


@dataclass(frozen=True, slots=True)
class NetElement:
    """One `net` element."""

    element: Element
    node: CpuElement
    # None: it hangs below its NUMA node.
    device: PciElement | None

    @property
    def name(self) -> str:
        """Its name, or a question mark."""
        return self.element.value("name") or "?"


@dataclass(slots=True)
class TopologySubject:
    """A topology file with its elements by what they are, in the order of the file."""

    document: TopologyDocument
    nodes: list[CpuElement] = field(default_factory=list)
    devices: list[PciElement] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    nets: list[NetElement] = field(default_factory=list)

    def of_kind(self, kind: Kind) -> Iterator[PciElement]:
        """Yield the devices of one kind that have an address."""
        return (device for device in self.devices if device.kind == kind and device.bus_id is not None)

    def place(self, element: Element, attribute: str | None = None) -> FilePlace:
        """Return the place of an element, or of one of its attributes where it has it."""
        found = element.attribute(attribute) if attribute is not None else None
        at = found or element
        return FilePlace(file=self.document.where, line=at.line, column=at.column)


@dataclass(frozen=True, slots=True)
class Corrections:
    """What of a file is taken otherwise than it stands, where one slip would look like many."""

    # The true number of NUMA nodes and the true address of devices, by the identity of their elements.
    numbers: Mapping[int, int] = field(default_factory=dict)
    addresses: Mapping[int, str] = field(default_factory=dict)
    # The true address by the one that stands there.
    targets: Mapping[str, str] = field(default_factory=dict)


AS_IT_STANDS = Corrections()


def subject_of(document: TopologyDocument, corrections: Corrections = AS_IT_STANDS) -> TopologySubject:
    """Return what a document holds. Elements are where NCCL would keep them."""
    subject = TopologySubject(document)
    for cpu in document.root.named("cpu"):
        mask = cpu.value("affinity")
        cpus = parse_mask(mask) if mask is not None else None
        number = corrections.numbers.get(id(cpu), read_integer(cpu.value("numaid")))
        node = CpuElement(cpu, number, cpu.value("host_hash"), cpus)
        subject.nodes.append(node)
        for child in cpu.children:
            if child.name == "pci":
                _add_device(subject, child, node, corrections)
            elif child.name == "nic":
                subject.nets += [NetElement(net, node, None) for net in child.named("net")]
    return subject


def _add_device(subject: TopologySubject, element: Element, node: CpuElement, corrections: Corrections) -> None:
    """Add a device and all below it; a loop, since a file may nest as deep as it likes."""
    waiting: list[tuple[Element, PciElement | None]] = [(element, None)]
    while waiting:
        pci, above = waiting.pop()
        bus_id = corrections.addresses.get(id(pci)) or canonical(pci.value("busid") or "")
        device = PciElement(pci, bus_id, _kind(pci), node, above)
        subject.devices.append(device)
        _add_ends(subject, device, corrections)
        # Depth first and the last one first, so that devices come in the order of the file.
        waiting += [(child, device) for child in reversed(pci.named("pci"))]


def _add_ends(subject: TopologySubject, device: PciElement, corrections: Corrections) -> None:
    # Where ranks or parts share a GPU, each lists all of its links.
    for gpu in device.element.named("gpu")[:1]:
        for link in (*gpu.named("nvlink"), *gpu.named("xgmi")):
            target = link.value("target") or ""
            count = read_integer(link.value("count"))
            written = canonical(target) or target.lower()
            subject.links.append(Link(link, device, corrections.targets.get(written, written), count))
    for nic in device.element.named("nic"):
        subject.nets += [NetElement(net, device.node, device) for net in nic.named("net")]


def _kind(pci: Element) -> Kind | None:
    """Return what NCCL takes a device for: what stands in it counts before its class."""
    if pci.named("gpu"):
        return "gpu"
    if pci.named("nic"):
        return "nic"
    written = pci.value("class")
    if written is None:
        return None
    return next((kind for prefix, kind in _CLASSES if written.startswith(prefix)), "switch")


def is_rccls(device: PciElement) -> bool:
    """Return whether RCCL has described this GPU: it writes the name of the processor, which NCCL does not."""
    return any(gpu.attribute("gcn") is not None for gpu in device.element.named("gpu"))
