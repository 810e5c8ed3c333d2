"""Everything that goes wrong with topology files, done to a right one by program: each kind at each place."""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

# Nothing can be told from the file alone: then nothing may be claimed.
SILENT: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Corruption:
    """A file with one fault, and the rules of which one has to find it."""

    kind: str
    place: str
    # The file, or what makes it: most faults of a kind are never looked at.
    file: str | Callable[[], str]
    # With the machine that the file is for, and without.
    known: frozenset[str] = field(default=SILENT)
    alone: frozenset[str] = field(default=SILENT)

    @property
    def text(self) -> str:
        """The file."""
        return self.file if isinstance(self.file, str) else self.file()


def codes(*names: str) -> frozenset[str]:
    return frozenset(f"TOP{name}" for name in names)


def read(text: str) -> ET.Element:
    """Return a file as a tree that can be changed; comments are left out."""
    return ET.fromstring(text)


def written(root: ET.Element) -> str:
    """Return a tree as NCCL reads it: no prolog, spaces only."""
    lines: list[str] = []
    _write(root, "", lines)
    return "\n".join(lines) + "\n"


def _write(element: ET.Element, indent: str, lines: list[str]) -> None:
    attributes = "".join([f' {name}="{value}"' for name, value in element.attrib.items()])
    if len(element) == 0:
        lines.append(f"{indent}<{element.tag}{attributes}/>")
        return
    lines.append(f"{indent}<{element.tag}{attributes}>")
    for child in element:
        _write(child, f"{indent}  ", lines)
    lines.append(f"{indent}</{element.tag}>")


def changed(root: ET.Element, change: Callable[[ET.Element], None]) -> str:
    """Return the file after a change to a copy of its tree."""
    other = _copy(root)
    change(other)
    return written(other)


def _copy(element: ET.Element) -> ET.Element:
    """Return a copy without texts, of which `written` writes none: a deep copy takes ten times as long."""
    other = ET.Element(element.tag, element.attrib)
    other.extend([_copy(child) for child in element])
    return other


def corruptions(text: str) -> Iterator[Corruption]:
    """Yield the file with each fault at each place where it can have it."""
    root = read(text)
    yield from syntax(written(root))
    yield from masks(root)
    yield from processors(root)
    yield from numbers(root)
    yield from addresses(root)
    yield from places(root)
    yield from links(root)
    yield from nvlinks(root)
    yield from nets(root)


def cpus_of(root: ET.Element) -> list[ET.Element]:
    return root.findall("cpu")


def pci_of(root: ET.Element) -> list[ET.Element]:
    return list(root.iter("pci"))


def is_gpu(pci: ET.Element) -> bool:
    return pci.get("class", "").startswith("0x03")


def is_nic(pci: ET.Element) -> bool:
    return pci.get("class", "").startswith("0x02")


def numa_of(root: ET.Element) -> dict[str, ET.Element]:
    """Return the cpu element above each bus id."""
    return {pci.get("busid", ""): cpu for cpu in cpus_of(root) for pci in cpu.iter("pci")}


def parents_of(root: ET.Element) -> dict[ET.Element, ET.Element]:
    return {child: parent for parent in root.iter() for child in parent}


def set_at(root: ET.Element, tag: str, index: int, name: str, value: str | None) -> Callable[[], str]:
    """Return what makes the file with one attribute of one element set, or removed."""

    def change(tree: ET.Element) -> None:
        element = list(tree.iter(tag))[index]
        if value is None:
            element.attrib.pop(name, None)
        else:
            element.set(name, value)

    return lambda: changed(root, change)


# What NCCL's reader stumbles on.


def syntax(text: str) -> Iterator[Corruption]:
    def fault(kind: str, broken: str, *names: str) -> Corruption:
        return Corruption(kind, "file", broken, codes(*names), codes(*names))

    first = text.index("<cpu")
    yield fault("prolog", f'<?xml version="1.0"?>\n{text}', "003")
    yield fault("document type", f"<!DOCTYPE system>\n{text}", "003")
    yield fault("byte order mark", f"\N{ZERO WIDTH NO-BREAK SPACE}{text}", "003")
    yield fault("version 2", text.replace('version="1"', 'version="2"', 1), "004")
    yield fault("no version", text.replace(' version="1"', "", 1), "004")
    yield fault("second root", f'{text}<system version="1"></system>\n', "004")
    yield fault("tabs as indentation", text.replace("\n  <", "\n\t<"), "002")
    for number, line in enumerate(text.splitlines()):
        if " numaid=" in line or " busid=" in line:
            place = f"line {number + 1}"
            lines = text.splitlines(keepends=True)
            for kind, old, new, names in (
                ("tab between attributes", ' class="', '\tclass="', ("002",)),
                ("line break between attributes", ' class="', '\n class="', ("002",)),
                ("quote missing", 'class="', "class=", ("001",)),
                ("closing quote missing", '" class="', ' class="', ("001",)),
                ("no space between attributes", '" class="', '"class="', ("001",)),
                ("space before the equals sign", "class=", "class =", ("001",)),
                ("attribute misspelt", "busid=", "bus_id=", ("020",)),
                ("attribute twice", "busid=", 'busid="0000:00:00.0" busid=', ("010",)),
                ("element misspelt", "<pci ", "<pcie ", ("007",)),
                ("entity", 'link_speed="', 'link_speed="&quot;', ("011",)),
                ("value too long", 'link_speed="', f'link_speed="{"a" * 300}', ("005",)),
                ("too many attributes", " class=", "".join(f' a{n}="0"' for n in range(17)) + " class=", ("006",)),
            ):
                if old not in line or (kind == "element misspelt" and not line.rstrip().endswith("/>")):
                    continue
                broken = [*lines[:number], line.replace(old, new, 1) + "\n", *lines[number + 1 :]]
                joined = "".join(broken)
                if kind == "closing quote missing" and joined.count('"') % 2 == 0:
                    continue
                yield Corruption(kind, place, joined, codes(*names), codes(*names))
    yield fault("element out of place", text[:first] + '<gpu dev="0" sm="80"/>\n' + text[first:], "008")
    yield fault("gpu below cpu", text.replace("</cpu>", '<gpu dev="0" sm="80"/></cpu>', 1), "008")
    yield fault("closing tag of another name", text.replace("</cpu>", "</cpus>", 1), "001")
    yield fault("text between elements", text.replace("</cpu>", "</cpu> and", 1), "001")
    many = "".join(f'<pci busid="0000:7{n // 100}:{n % 32:02x}.{n // 32 % 8}" class="0x02"/>\n' for n in range(270))
    yield fault("too many elements", text.replace("</cpu>", f"{many}</cpu>", 1), "005")
    some = "".join(f'<pci busid="0000:70:{n % 32:02x}.{n // 32}" class="0x02"/>\n' for n in range(33))
    yield fault("too many children for older NCCL", text.replace("</cpu>", f"{some}</cpu>", 1), "012")


# CPU masks.


def masks(root: ET.Element) -> Iterator[Corruption]:
    words = [(cpu.get("affinity") or "").split(",") for cpu in cpus_of(root)]
    if [""] in words:
        return
    for index, mask in enumerate(words):
        for place in range(len(mask)):
            yield from _mask_word(root, index, mask, place)
        yield from _whole_mask(root, index, words)
    for one, two in combinations(range(len(words)), 2):
        text = changed(root, lambda tree, one=one, two=two: _exchange(tree, one, two, ("affinity",)))
        yield Corruption("masks exchanged", f"nodes {one}, {two}", text, codes("048"), codes("047"))
    if len(words) > 1:
        same = changed(root, lambda tree: [cpu.set("affinity", "0000ffff,0000ffff") for cpu in cpus_of(tree)])
        yield Corruption("one mask on all nodes", "file", same, codes("044"), codes("044"))


def _masked(root: ET.Element, kind: str, index: int, mask: list[str], known: str, alone: str) -> Corruption:
    place = f"node {cpus_of(root)[index].get('numaid')}"
    text = set_at(root, "cpu", index, "affinity", ",".join(mask))
    return Corruption(kind, place, text, codes(known), codes(alone))


def _mask_word(root: ET.Element, index: int, mask: list[str], place: int) -> Iterator[Corruption]:
    word = mask[place]

    def put(text: str) -> list[str]:
        return [*mask[:place], text, *mask[place + 1 :]]

    if len(mask) > 1:
        yield _masked(root, f"digit lost in word {place}", index, put(word[:-1]), "041", "041")
    yield _masked(root, f"digit too many in word {place}", index, put(f"0{word}"), "050", "050")
    yield _masked(root, f"letter in word {place}", index, put(f"g{word[1:]}"), "040", "040")
    if set(word) != {"0"}:
        lost = f"{int(word, 16) & (int(word, 16) - 1):08x}"
        yield _masked(root, f"CPU lost in word {place}", index, put(lost), "049", "046")


def _whole_mask(root: ET.Element, index: int, words: list[list[str]]) -> Iterator[Corruption]:
    mask = words[index]
    yield _masked(root, "0x in front", index, ["0x" + mask[0], *mask[1:]], "040", "040")
    yield _masked(root, "a list for a mask", index, ["0-23"], "040", "040")
    yield _masked(root, "empty mask", index, ["0" * 8] * len(mask), "043", "043")
    yield _masked(root, "CPUs that do not exist", index, ["ffffffff", *mask], "045", "046")
    for other in range(len(words)):
        if other != index:
            yield _masked(root, "mask of another node", index, words[other], "044", "044")
    if len(words) > 1:
        borrowed = int("".join(words[index - 1]), 16)
        mine = int("".join(mask), 16) | borrowed & -borrowed
        shared = [f"{mine >> 32 * place & 0xFFFFFFFF:08x}" for place in reversed(range(len(mask)))]
        yield _masked(root, "a CPU of another node", index, shared, "042", "042")


def _exchange(tree: ET.Element, one: int, two: int, names: tuple[str, ...]) -> None:
    first, second = cpus_of(tree)[one], cpus_of(tree)[two]
    for name in names:
        kept = first.get(name)
        first.set(name, second.get(name) or "")
        second.set(name, kept or "")


# Processors and NUMA nodes.


def processors(root: ET.Element) -> Iterator[Corruption]:
    cpus = cpus_of(root)
    for index, cpu in enumerate(cpus):
        place = f"node {cpu.get('numaid')}"

        def fault(
            kind: str, name: str, value: str | None, *names: str, index: int = index, place: str = place
        ) -> Corruption:
            return Corruption(kind, place, set_at(root, "cpu", index, name, value), codes(*names), codes(*names))

        yield fault("number of the node missing", "numaid", None, "020")
        yield fault("number of the node is not a number", "numaid", "zero", "025")
        yield fault("mark of NCCL", "keep", "1", "030")
        if cpu.get("arch") is not None:
            yield fault("architecture misspelt", "arch", "aarch64", "027")
            yield fault("architecture missing", "arch", None, "021")
        if cpu.get("vendor") is not None:
            yield fault("vendor misspelt", "vendor", "AMD", "028")
        if cpu.get("vendor") == "GenuineIntel":
            yield fault("model missing", "modelid", None, "020")
        if cpu.get("vendor") == "AuthenticAMD" and cpu.get("familyid") in {"23", "25"}:
            yield fault("family as NCCL writes it", "familyid", "175", "029")
        if cpu.get("affinity") is not None:
            yield fault("mask missing", "affinity", None, "022")
        if len(cpus) > 1:
            other = cpus[index - 1].get("numaid") or "0"
            text = set_at(root, "cpu", index, "numaid", other)
            yield Corruption("number of another node", place, text, codes("033", "052"), codes("033"))
            text = changed(root, lambda tree, index=index: tree.remove(cpus_of(tree)[index]))
            if any(is_gpu(pci) for pci in cpu.iter("pci")):
                yield Corruption("node missing", place, text, codes("067"), SILENT)
        stamped = changed(
            root, lambda tree, index=index: [each.set("host_hash", f"0x{n // (index + 1):x}1")
                                             for n, each in enumerate(cpus_of(tree))]
        )  # fmt: skip
        expected = codes("034") if len(cpus) > index + 1 else codes("035")
        yield Corruption("dump of several hosts", place, stamped, expected, expected)


# Numbers that are none.


def numbers(root: ET.Element) -> Iterator[Corruption]:
    for index, pci in enumerate(pci_of(root)):
        place = pci.get("busid") or "?"
        if pci.get("link_width") is not None:
            text = set_at(root, "pci", index, "link_width", "x16")
            yield Corruption("width with an x", place, text, codes("025"), codes("025"))
    for tag, name in (
        ("gpu", "sm"), ("gpu", "gdr"), ("nvlink", "count"), ("net", "port"), ("net", "maxconn"), ("net", "gdr"),
    ):  # fmt: skip
        for index, element in enumerate(root.iter(tag)):
            if element.get(name) is not None:
                text = set_at(root, tag, index, name, "many")
                yield Corruption(f"{name} of {tag} is not a number", str(index), text, codes("025"), codes("025"))


# Addresses.


def addresses(root: ET.Element) -> Iterator[Corruption]:
    pcis = pci_of(root)
    for index, pci in enumerate(pcis):
        bus_id = pci.get("busid") or ""

        def fault(kind: str, value: str | None, *names: str, index: int = index, place: str = bus_id) -> Corruption:
            return Corruption(kind, place, set_at(root, "pci", index, "busid", value), codes(*names), codes(*names))

        yield fault("address missing", None, "020")
        yield fault("function lost", bus_id.rpartition(".")[0], "023")
        yield fault("letter in the address", f"{bus_id[:5]}zz{bus_id[7:]}", "023")
        yield fault("address as nvidia-smi writes it", f"0000{bus_id}", "024")
        yield fault("device above 1f", f"{bus_id[:8]}3f{bus_id[10:]}", "023")
        if bus_id != bus_id.upper():
            yield fault("address in upper case", bus_id.upper(), "024")
        if bus_id.startswith("0000:"):
            yield fault("address as lspci writes it", bus_id[5:], "024")
        if index > 0:
            text = set_at(root, "pci", index, "busid", pcis[index - 1].get("busid"))
            yield Corruption("address of another device", bus_id, text, codes("031", "062"), codes("031"))
        if is_gpu(pci):
            text = set_at(root, "pci", index, "busid", f"{bus_id[:5]}{int(bus_id[5:7], 16) + 9 & 0xFF:02x}{bus_id[7:]}")
            yield Corruption("address of nothing", bus_id, text, codes("064", "065", "031", "063"), SILENT)
        if pci.get("class") is not None:
            text = set_at(root, "pci", index, "class", (pci.get("class") or "").removeprefix("0x"))
            yield Corruption("class without 0x", bus_id, text, codes("026"), codes("026"))
            text = set_at(root, "pci", index, "class", None)
            expected = codes("020") if bus_id.startswith("ffff:") else codes("022")
            yield Corruption("class missing", bus_id, text, expected, expected)
    for buses in (1, -1, 2):
        text = changed(root, lambda tree, buses=buses: _move_buses(tree, buses))
        every = [pci.get("busid") for pci in pci_of(read(text))]
        alone = SILENT if len(set(every)) == len(every) else codes("031")
        yield Corruption(f"all addresses {buses} bus off", "file", text, codes("062"), alone)
    gpus, nics = [pci for pci in pcis if is_gpu(pci)], [pci for pci in pcis if is_nic(pci)]
    for gpu, nic in zip(gpus, nics, strict=False):
        one, two = pcis.index(gpu), pcis.index(nic)
        text = changed(root, lambda tree, one=one, two=two: _exchange_addresses(tree, one, two))
        yield Corruption("GPU and NIC exchanged", gpu.get("busid") or "", text, codes("063"), SILENT)


def _move_buses(tree: ET.Element, buses: int) -> None:
    for pci in pci_of(tree):
        bus_id = pci.get("busid") or ""
        if is_gpu(pci) or is_nic(pci):
            pci.set("busid", f"{bus_id[:5]}{int(bus_id[5:7], 16) + buses & 0xFF:02x}{bus_id[7:]}")


def _exchange_addresses(tree: ET.Element, one: int, two: int) -> None:
    first, second = pci_of(tree)[one], pci_of(tree)[two]
    kept = first.get("busid") or ""
    first.set("busid", second.get("busid") or "")
    second.set("busid", kept)


# Where devices are.


def places(root: ET.Element) -> Iterator[Corruption]:
    yield from _node_pairs(root)
    yield from _flattened(root)
    for index, pci in enumerate(pci_of(root)):
        kin = [each for each in pci_of(root) if each is not pci and is_gpu(each) == is_gpu(pci) and _is_end(each)]
        if _is_end(pci) and kin:
            yield from _lost_or_moved(root, index)
            yield from _switches(root, index)
            yield from _gpu_pairs(root, index, kin)


def _is_end(pci: ET.Element) -> bool:
    return is_gpu(pci) or is_nic(pci)


def _node_pairs(root: ET.Element) -> Iterator[Corruption]:
    cpus = cpus_of(root)
    for one, two in combinations(range(len(cpus)), 2):
        if not all(any(is_gpu(pci) for pci in cpus[each].iter("pci")) for each in (one, two)):
            continue
        nodes = f"nodes {one}, {two}"
        text = changed(root, lambda tree, one=one, two=two: _exchange_contents(tree, one, two))
        yield Corruption("devices of two nodes exchanged", nodes, text, codes("060"), SILENT)
        text = changed(root, lambda tree, one=one, two=two: _exchange(tree, one, two, ("numaid",)))
        renumbered = codes("069") if cpus[one].get("affinity") else codes("060")
        yield Corruption("numbers of two nodes exchanged", nodes, text, renumbered, SILENT)


def _lost_or_moved(root: ET.Element, index: int) -> Iterator[Corruption]:
    pci = pci_of(root)[index]
    bus_id = pci.get("busid") or ""
    here = numa_of(root)[bus_id]
    if any(each is not pci and _is_end(each) for each in here.iter("pci")):
        text = changed(root, lambda tree: parents_of(tree)[pci_of(tree)[index]].remove(pci_of(tree)[index]))
        yield Corruption("device missing", bus_id, text, codes("065" if is_gpu(pci) else "066"), SILENT)
    for number, cpu in enumerate(cpus_of(root)):
        if cpu is not here:
            text = changed(root, lambda tree, number=number: _move(tree, index, number))
            yield Corruption("device on another node", bus_id, text, codes("061", "060"), SILENT)


def _gpu_pairs(root: ET.Element, index: int, kin: list[ET.Element]) -> Iterator[Corruption]:
    numa, parents, pcis = numa_of(root), parents_of(root), pci_of(root)
    pci = pcis[index]
    bus_id = pci.get("busid") or ""
    for other in kin:
        theirs = other.get("busid") or ""
        if not is_gpu(pci) or theirs < bus_id:
            continue
        two = pcis.index(other)
        text = changed(root, lambda tree, two=two: _exchange_addresses(tree, index, two))
        # Two peers that change places list themselves.
        alone = codes("090") if any(link.get("target") == bus_id for link in other.iter("nvlink")) else SILENT
        if numa[theirs] is not numa[bus_id]:
            yield Corruption("two GPUs exchanged", bus_id, text, codes("061", "060"), alone)
        elif parents[pci] is not parents[other] and _has_own_nic(pci, parents) and _has_own_nic(other, parents):
            yield Corruption("two GPUs of a node exchanged", bus_id, text, codes("068"), alone)


def _switches(root: ET.Element, index: int) -> Iterator[Corruption]:
    """A GPU beside its switch; a GPU or NIC that is called a switch."""
    pci = pci_of(root)[index]
    above = parents_of(root)[pci]
    bus_id = pci.get("busid") or ""
    if is_gpu(pci) and above.tag == "pci" and any(is_nic(each) for each in above.iter("pci")):
        number = cpus_of(root).index(numa_of(root)[bus_id])
        text = changed(root, lambda tree: _move(tree, index, number))
        yield Corruption("GPU out of its switch", bus_id, text, codes("078"), SILENT)
    if is_gpu(pci) and not len(pci):
        text = set_at(root, "pci", index, "class", "0x060400")
        yield Corruption("GPU with the class of a switch", bus_id, text, codes("063"), SILENT)


def _flattened(root: ET.Element) -> Iterator[Corruption]:
    gpus = [pci for pci in pci_of(root) if is_gpu(pci)]
    below = [pci for pci in gpus if parents_of(root)[pci].tag == "pci"]
    if below and any(any(is_nic(each) for each in parents_of(root)[pci].iter("pci")) for pci in below):
        text = changed(root, _flatten)
        yield Corruption("no switches", "file", text, codes("078"), codes("075"))
    full = [cpu for cpu in cpus_of(root) if len(_full_switches(cpu)) > 1]
    if full:
        text = changed(root, lambda tree: [_merge(cpu) for cpu in cpus_of(tree)])
        yield Corruption("switches of a node made one", "file", text, codes("079"), SILENT)


def _full_switches(cpu: ET.Element) -> list[ET.Element]:
    """Return the switches right below a node that hold GPUs and NICs."""
    return [
        pci
        for pci in cpu
        if not _is_end(pci) and any(is_gpu(each) for each in pci.iter("pci")) and any(is_nic(each) for each in pci)
    ]


def _merge(cpu: ET.Element) -> None:
    first, *rest = _full_switches(cpu)
    for switch in rest:
        first.extend(list(switch))
        cpu.remove(switch)


def _flatten(tree: ET.Element) -> None:
    for cpu in cpus_of(tree):
        cpu[:] = [pci for pci in cpu.iter("pci") if _is_end(pci)]


def _has_own_nic(pci: ET.Element, parents: dict[ET.Element, ET.Element]) -> bool:
    above = parents[pci]
    while above.tag == "pci":
        if any(is_nic(each) for each in above.iter("pci")):
            return sum(is_gpu(each) for each in above.iter("pci")) == 1
        above = parents[above]
    return False


def _exchange_contents(tree: ET.Element, one: int, two: int) -> None:
    first, second = cpus_of(tree)[one], cpus_of(tree)[two]
    first[:], second[:] = list(second), list(first)


def _move(tree: ET.Element, index: int, number: int) -> None:
    pci = pci_of(tree)[index]
    parents_of(tree)[pci].remove(pci)
    cpus_of(tree)[number].append(pci)


# PCIe links.


def links(root: ET.Element) -> Iterator[Corruption]:
    for index, pci in enumerate(pci_of(root)):
        bus_id = pci.get("busid") or ""
        if pci.get("link_speed") is None:
            continue

        def fault(
            kind: str, name: str, value: str | None, known: tuple[str, ...], alone: tuple[str, ...],
            *, index: int = index, place: str = bus_id,
        ) -> Corruption:  # fmt: skip
            return Corruption(kind, place, set_at(root, "pci", index, name, value), codes(*known), codes(*alone))

        for unknown in ("16GT/s", "64 GT/s", "16.0 GT/s", "Unknown", "", "Gen4"):
            if unknown != pci.get("link_speed"):
                yield fault(f"speed written {unknown!r}", "link_speed", unknown, ("080",), ("080",))
        for width in ("3", "32", "61"):
            yield fault(f"width {width}", "link_width", width, ("081",), ("081",))
        yield fault("speed missing", "link_speed", None, ("022",), ("022",))
        if is_gpu(pci) or is_nic(pci):
            yield fault("faster than the device", "link_speed", "64.0 GT/s PCIe", ("082",), ())
            yield fault("slower than the machine", "link_speed", "2.5 GT/s PCIe", ("084",), ())
            yield fault("narrower than the machine", "link_width", "4", ("084", "085"), ())
        elif pci.get("link_speed") != "5.0 GT/s PCIe" and any(is_gpu(each) or is_nic(each) for each in pci.iter("pci")):
            yield fault("slow switch", "link_speed", "2.5 GT/s PCIe", ("083", "086"), ("083", "086"))


# NVLinks.


def nvlinks(root: ET.Element) -> Iterator[Corruption]:
    for index, pci in enumerate(pci_of(root)):
        if not is_gpu(pci):
            continue
        bus_id = pci.get("busid") or ""

        def fault(
            kind: str, attributes: dict[str, str], *names: str, index: int = index, place: str = bus_id
        ) -> Corruption:
            text = changed(root, lambda tree: _add_link(pci_of(tree)[index], attributes))
            return Corruption(kind, place, text, codes(*names), codes(*names))

        hidden = {"target": "fffffff:ffff:ff", "tclass": "0x068000"}
        yield fault("NVLink to itself", {"target": bus_id, "count": "12", "tclass": "0x030200"}, "090")
        yield fault("NVLink to nowhere", {"target": "0000:ee:00.0", "count": "1", "tclass": "0x030200"}, "091")
        yield fault("NVLink without count", hidden, "020")
        yield fault("NVLink without target", {"count": "1", "tclass": "0x068000"}, "020")
        yield fault("no NVLinks", {**hidden, "count": "0"}, "095")
        yield fault("target is not an address", {"target": "GPU1", "count": "1", "tclass": "0x030200"}, "023")
        yield fault("far too many NVLinks", {**hidden, "count": "99"}, "093")
    for index, link in enumerate(root.iter("nvlink")):
        target = link.get("target") or ""
        text = changed(root, lambda tree, index=index: _remove(tree, list(tree.iter("nvlink"))[index]))
        left = len(list(root.iter("nvlink")))
        if left > 2 and len(parents_of(root)[link]) > 1:
            yield Corruption("NVLinks forgotten", target, text, codes("094"), codes("094"))


def _add_link(pci: ET.Element, attributes: dict[str, str]) -> None:
    gpu = pci.find("gpu")
    if gpu is None:
        gpu = ET.SubElement(pci, "gpu", {"dev": "0", "sm": "80"})
    ET.SubElement(gpu, "nvlink", attributes)


def _remove(tree: ET.Element, element: ET.Element) -> None:
    parents_of(tree)[element].remove(element)


# Nets.


def nets(root: ET.Element) -> Iterator[Corruption]:
    every = list(root.iter("net"))
    for index, net in enumerate(every):
        name = net.get("name") or "?"

        def fault(
            kind: str, attribute: str, value: str | None, known: tuple[str, ...], alone: tuple[str, ...],
            *, index: int = index, place: str = name,
        ) -> Corruption:  # fmt: skip
            return Corruption(kind, place, set_at(root, "net", index, attribute, value), codes(*known), codes(*alone))

        yield fault("no speed", "speed", "-1", ("100",), ("100",))
        yield fault("speed of zero", "speed", "0", ("100",), ("100",))
        yield fault("speed in Gb/s", "speed", "400", ("101",), ("101",))
        yield fault("speed in bits", "speed", "400000000", ("101",), ("101",))
        if net.get("speed") is not None:
            yield fault("speed missing", "speed", None, ("022",), ("022",))
        if net.get("name"):
            yield fault("name missing", "name", None, ("013",), ("013",))
            yield fault("name empty", "name", "", ("013",), ("013",))
        if net.get("guid") is None:
            yield fault("GUID", "guid", "0x9a70500003ae6d94", ("035",), ("035",))
        if index > 0 and every[index - 1].get("name"):
            yield fault("name of another net", "name", every[index - 1].get("name"), ("032",), ("032",))
