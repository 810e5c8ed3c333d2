"""Attributes that are missing, malformed, or hold what NCCL does not know."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator

from busbw.facts.rules import finding
from busbw.model.finding import FilePlace, Finding
from busbw.topo.buses import canonical, is_hidden, is_written, real_family
from busbw.topo.file.document import ATTRIBUTES, CHILDREN, Element, Remark, read_integer
from busbw.topo.file.meant import misspelt
from busbw.topo.rules.subject import AS_IT_STANDS, Corrections, CpuElement, PciElement, TopologySubject, is_rccls

ARCHITECTURES = ("x86_64", "arm64", "ppc64")
_OTHER_SPELLINGS = {"aarch64": "arm64", "arm": "arm64", "amd64": "x86_64", "x86": "x86_64", "ppc64le": "ppc64"}
VENDORS = ("GenuineIntel", "AuthenticAMD", "CentaurHauls", "  Shanghai  ")
_NUMBERS = {
    "cpu": ("numaid", "familyid", "modelid"),
    "pci": ("link_width",),
    "gpu": ("dev", "sm", "rank", "gdr"),
    "nvlink": ("count",),
    "c2c": ("bw", "count"),
    "net": ("dev", "port", "maxconn", "speed", "gdr", "coll"),
}
_FAILS = "NCCL fails with an internal error"
_ASKS = "NCCL asks the machine"


def attributes(subject: TopologySubject, rights: Corrections = AS_IT_STANDS) -> Iterator[Finding]:
    """Yield what is wrong with single attributes, and what the file leaves to detection.

    `rights` are true numbers and addresses, where they are known.
    """
    for node in subject.nodes:
        yield from _processor(subject, node, rights.numbers.get(id(node.element)))
    for device in subject.devices:
        yield from _address(subject, device, rights.addresses.get(id(device.element)))
        yield from _class(subject, device)
    yield from _ends(subject)
    for element in subject.document.root.walk():
        yield from _numbers(subject, element)
        if (mark := element.attribute("keep")) is not None:
            yield finding(
                "TOP030",
                evidence=f'keep="{mark.value}" in <{element.name}>',
                fix="leave it out",
                place=subject.place(element, "keep"),
                confidence="certain",
                effect="NCCL replaces it for devices of the job",
            )
    yield from _left_out(subject)


def _missing(subject: TopologySubject, element: Element, attribute: str, why: str, value: object = "...") -> Finding:
    return finding(
        "TOP020",
        evidence=why,
        fix=f'add {attribute}="{value}"',
        place=subject.place(element),
        confidence="certain",
        effect=_FAILS,
        element=element.name,
        attribute=attribute,
    )


def _processor(subject: TopologySubject, node: CpuElement, number: int | None) -> Iterator[Finding]:
    element = node.element
    if element.attribute("numaid") is None:
        why = "NCCL tells NUMA nodes apart by their number"
        yield _missing(subject, element, "numaid", why, "..." if number is None else number)
    architecture = element.value("arch")
    if architecture is None:
        yield finding(
            "TOP021",
            evidence="the architecture is left to detection",
            fix='arch="x86_64" vendor="..." familyid="..." modelid="...", or arch="arm64"',
            place=subject.place(element),
            confidence="likely",
            effect="NCCL fills it in where a GPU or NIC of the job leads to this node, and fails without",
            attribute="arch",
        )
        return
    if not architecture.startswith(ARCHITECTURES):
        right = _OTHER_SPELLINGS.get(architecture.lower())
        yield finding(
            "TOP027",
            evidence=f'arch="{architecture}"; NCCL knows {", ".join(ARCHITECTURES)}',
            fix=f'arch="{right}"' if right else None,
            place=subject.place(element, "arch"),
            confidence="certain",
            effect="NCCL takes the link between sockets for no limit",
            value=architecture,
        )
    elif architecture.startswith("x86_64"):
        yield from _vendor(subject, element)


def _vendor(subject: TopologySubject, element: Element) -> Iterator[Finding]:
    vendor = element.value("vendor")
    if vendor is None:
        return
    if not vendor.startswith(VENDORS):
        right = next((known for known in VENDORS[:2] if vendor and vendor.lower()[:3] in known.lower()), None)
        yield finding(
            "TOP028",
            evidence=f'vendor="{vendor}"',
            fix=f'vendor="{right}"' if right else None,
            place=subject.place(element, "vendor"),
            confidence="certain",
            effect="NCCL takes the link between sockets for no limit",
            value=vendor or '""',
        )
    family = read_integer(element.value("familyid"))
    if not vendor.startswith("AuthenticAMD"):
        # NCCL asks the machine for both numbers only where it finds no family.
        if family is not None and element.attribute("modelid") is None:
            yield _missing(
                subject, element, "modelid", "NCCL asks the machine for it only where familyid is missing too"
            )
        return
    real = real_family(vendor, family)
    # RCCL goes by the number as it writes it.
    if (
        family is not None
        and real is not None
        and real != family
        and not any(is_rccls(device) for device in subject.devices)
    ):
        yield finding(
            "TOP029",
            evidence=f"15 + 16 x {family // 16}",
            fix=f'familyid="{real}"',
            place=subject.place(element, "familyid"),
            confidence="likely",
            effect="none up to NCCL 2.30; since 2.31 it plans the link between sockets by the family, "
            "and takes this for a newer one",
            value=family,
            family=real,
        )


def _address(subject: TopologySubject, device: PciElement, right: str | None) -> Iterator[Finding]:
    written = device.element.value("busid")
    if written is None:
        yield _missing(subject, device.element, "busid", "NCCL tells devices apart by their bus id")
    elif device.bus_id is None:
        yield _malformed(subject, device.element, "busid", written, right)
    elif written != device.bus_id:
        yield _spelling(subject, device.element, "busid", written, device.bus_id)


def _malformed(
    subject: TopologySubject, element: Element, attribute: str, written: str, right: str | None = None
) -> Finding:
    return finding(
        "TOP023",
        evidence=f'{attribute}="{written}"; a bus id has the form 0000:0f:00.0',
        fix=f'{attribute}="{right}"' if right is not None else None,
        place=subject.place(element, attribute),
        confidence="certain",
        effect="no device matches: NCCL drops the entry, and finds the device by itself if the machine shows it",
        value=written or '""',
    )


def _spelling(subject: TopologySubject, element: Element, attribute: str, written: str, right: str) -> Finding:
    return finding(
        "TOP024",
        evidence=f'{attribute}="{written}"',
        fix=f'{attribute}="{right}"',
        place=subject.place(element, attribute),
        confidence="certain",
        effect="no device matches the text: NCCL ignores the entry",
        value=written,
    )


def _class(subject: TopologySubject, device: PciElement) -> Iterator[Finding]:
    element = device.element
    written = element.value("class")
    if written is None:
        if device.bus_id is not None and is_written(device.bus_id):
            yield _missing(
                subject, element, "class", f"{device.bus_id} exists in the file only: there is no machine to ask"
            )
        return
    problem = _class_problem(element, written)
    if problem is not None:
        yield finding(
            "TOP026",
            evidence=problem,
            place=subject.place(element, "class"),
            confidence="likely",
            effect="NCCL goes by what stands inside"
            if element.named("gpu") or element.named("nic")
            else "NCCL takes an unknown class for a PCI switch, unless the machine says otherwise",
            value=written or '""',
        )


def _class_problem(element: Element, written: str) -> str | None:
    if not written.lower().startswith("0x"):
        return f'class="{written}" lacks the 0x in front'
    if element.named("gpu") or element.named("nic"):
        return _contradiction(element, written)
    if not written.startswith(("0x02", "0x03", "0x06", "0x080100", "0x12", "0x0b", "0x01")):
        return f'class="{written}" is not that of a GPU (0x03), a NIC (0x02) or a switch (0x060400)'
    if element.named("pci") and written.startswith(("0x02", "0x03")):
        return f'class="{written}" on a device with devices below it; switches have 0x060400'
    return None


def _contradiction(element: Element, written: str) -> str | None:
    """Return where a device is called the other kind than what stands in it; NICs may be of a class of their own."""
    if element.named("gpu") and written.startswith(("0x02", "0x06")):
        return f'class="{written}" on a device with a gpu element inside; GPUs have 0x0302'
    if element.named("nic") and written.startswith(("0x03", "0x06")):
        return f'class="{written}" on a device with a nic element inside; NICs have 0x0200 or 0x0207'
    return None


def _ends(subject: TopologySubject) -> Iterator[Finding]:
    """Yield what is wrong with the elements at the ends of the tree: links and nets."""
    for element in subject.document.root.walk():
        needed = {"nvlink": ("target", "count"), "c2c": ("bw", "count"), "pcilink": ("target",)}
        for attribute in needed.get(element.name, ()):
            if element.attribute(attribute) is None:
                yield _missing(subject, element, attribute, f"NCCL cannot use <{element.name}> without it")
        if element.name == "net" and not element.value("name"):
            yield finding(
                "TOP013",
                evidence="NCCL finds nets by their name",
                fix='add name="...", as in ibv_devices, or leave the net out',
                place=subject.place(element),
                confidence="certain",
                effect="NCCL drops the entry, and what it says of speed and GUID with it",
                what="a net without a name",
            )
        target = element.value("target")
        if target is None or is_hidden(target):
            continue
        right = canonical(target)
        if right is None:
            yield _malformed(subject, element, "target", target)
        elif right != target and element.name == "pcilink":
            yield _spelling(subject, element, "target", target, right)


def _numbers(subject: TopologySubject, element: Element) -> Iterator[Finding]:
    for name in _NUMBERS.get(element.name, ()):
        written = element.attribute(name)
        if written is None or _is_number(written.value) or (name == "link_width" and not written.value):
            continue
        yield finding(
            "TOP025",
            evidence=f'{name}="{written.value}" in <{element.name}>; NCCL reads {read_integer(written.value) or 0}',
            fix=f'{name}="{digits[0]}"' if len(digits := re.findall(r"\d+", written.value, re.ASCII)) == 1 else None,
            place=subject.place(element, name),
            confidence="certain",
            effect="NCCL takes the digits at the beginning, or 0",
            attribute=name,
            value=written.value or '""',
        )


def _is_number(text: str) -> bool:
    digits = text.strip().removeprefix("-")
    return digits.isascii() and (digits.isdigit() or (digits[:2].lower() == "0x" and read_integer(text) is not None))


def _left_out(subject: TopologySubject) -> Iterator[Finding]:
    """Yield one note for each attribute that elements leave to detection."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], Element] = {}
    expected = {"pci": ("class", "link_speed", "link_width"), "cpu": ("affinity",), "net": ("speed",)}
    for element in subject.document.root.walk():
        for name in expected.get(element.name, ()):
            if element.attribute(name) is not None or (name == "class" and is_written(element.value("busid") or "")):
                continue
            counts[name, element.name] += 1
            first.setdefault((name, element.name), element)
    for (name, kind), count in counts.items():
        yield finding(
            "TOP022",
            evidence="a virtual machine may answer what the file was meant to correct",
            place=subject.place(first[name, kind]),
            confidence="certain",
            effect=_ASKS,
            what=f"{name} of {count} {kind} element{'s' if count > 1 else ''}",
        )


_SPACES = {"tab-in-tag", "tab-in-name", "tab-between-elements", "newline-in-tag"}
_GROUPS = {
    "TOP002": _SPACES,
    "TOP003": {"prolog", "doctype", "instruction", "cdata", "byte-order-mark"},
    "TOP004": {"root-name", "second-root", "version-missing", "version-wrong"},
    "TOP005": {"name-too-long", "value-too-long", "too-many-elements", "too-many-children"},
    "TOP006": {"too-many-attributes"},
    "TOP007": {"unknown-element"},
    "TOP008": {"misplaced-element"},
    "TOP009": {"unknown-attribute"},
    "TOP010": {"duplicate-attribute"},
}
# What RCCL, which reads the same files, knows beyond NCCL.
_RCCL = {"xgmi", "gcn", "arch"}
_EFFECTS = {"fails": "TOP001", "fails-older": "TOP012", "literal": "TOP011", "ignores": "TOP013"}
_WORDS = {
    "prolog": "an XML declaration",
    "doctype": "a document type",
    "instruction": "a processing instruction",
    "cdata": "a CDATA section",
    "byte-order-mark": "a byte order mark",
    "mismatched-tag": "a tag that does not match",
    "stray-closing-tag": "a closing tag that closes nothing",
    "no-space": "no space between two attributes",
    "newline-in-tag": "a line break",
    "entity": "an entity",
    "value-missing": "an attribute without a value",
    "stray-in-tag": "a stray character in a tag",
}
_REMEDIES = {
    "newline-in-tag": "write each tag on one line",
    "prolog": "delete it; the file begins with <system",
    "doctype": "delete it; the file begins with <system",
    "byte-order-mark": "save the file as UTF-8 without a byte order mark",
    "entity": "write the character itself",
    "stray-text": "delete it: nothing stands between elements, before <system> or after its end",
    "stray-closing-tag": "delete it, or the element above it was closed too early",
    "second-root": "delete it, or move what it holds into the first",
    "quote-missing": "put the value in straight double quotes",
    "version-missing": 'write <system version="1">',
    "version-wrong": 'write <system version="1">',
    "root-name": 'write <system version="1">',
}
_MOST_SHOWN = 40
_LEAST_LIKENESS = 0.8


def syntax(subject: TopologySubject) -> Iterator[Finding]:
    """Yield a finding for every remark of the reader."""
    # RCCL's files have a version of their own.
    has_rccls_version = subject.document.root.value("version") == "2" and any(map(is_rccls, subject.devices))
    for remark in subject.document.remarks:
        if has_rccls_version and remark.kind == "version-wrong":
            yield _other_library(subject, remark)
            continue
        evidence, _, effect = remark.text.partition("; ")
        more = f" ({remark.count} times in this file)" if remark.count > 1 else ""
        if remark.kind == "unknown-attribute":
            required = misspelt(subject.document, remark.line, remark.column)
            if required is not None:
                yield _misspelt(subject, *required, remark, evidence + more)
                continue
        yield finding(
            _code(remark),
            evidence=evidence + more,
            fix=_remedy(remark),
            place=FilePlace(file=subject.document.where, line=remark.line, column=remark.column),
            confidence="certain",
            effect=effect or _effect(remark),
            right=remark.subject.lower(),
            what=_WORDS.get(remark.kind, remark.kind.replace("-", " ")),
            name=remark.subject[:_MOST_SHOWN],
        )


def _misspelt(subject: TopologySubject, element: Element, attribute: str, remark: Remark, evidence: str) -> Finding:
    return finding(
        "TOP020",
        evidence=evidence,
        fix=f"write {attribute} for {remark.subject[:_MOST_SHOWN]}",
        place=FilePlace(file=subject.document.where, line=remark.line, column=remark.column),
        confidence="certain",
        effect=_FAILS,
        element=element.name,
        attribute=attribute,
    )


def emptiness(subject: TopologySubject) -> Iterator[Finding]:
    """Yield one error for a file that describes no GPU and no NIC, unless a misspelt element has swallowed them."""
    if any(device.kind in ("gpu", "nic") or device.kind is None for device in subject.devices) or subject.nets:
        return
    if any(remark.kind in ("unknown-element", "misplaced-element") for remark in subject.document.remarks):
        return
    yield finding(
        "TOP016",
        evidence=f"{len(subject.nodes)} cpu elements, {len(subject.devices)} other pci elements",
        fix="on the machine: busbw topo make --here -o topo.xml",
        place=subject.place(subject.document.root),
        confidence="certain",
        effect="NCCL finds every device by itself: the file has no say in where they are",
    )


def _other_library(subject: TopologySubject, remark: Remark) -> Finding:
    return finding(
        "TOP014",
        evidence="RCCL reads the file, and NCCL refuses it",
        place=FilePlace(file=subject.document.where, line=remark.line, column=remark.column),
        confidence="certain",
        effect='NCCL wants version="1"',
        name='version="2"',
    )


def _code(remark: Remark) -> str:
    """Return the rule for a kind of remark, else the one for what NCCL makes of it."""
    if _is_in_capitals(remark):
        return "TOP015"
    if remark.effect == "fails-older":
        return _EFFECTS[remark.effect]
    if remark.effect == "ignores" and remark.subject in _RCCL:
        return "TOP014"
    return next((code for code, kinds in _GROUPS.items() if remark.kind in kinds), _EFFECTS[remark.effect])


def _is_in_capitals(remark: Remark) -> bool:
    known = remark.subject.lower()
    return remark.kind == "unknown-element" and known in CHILDREN and known != remark.subject


def _effect(remark: Remark) -> str:
    return {
        "fails": "NCCL fails",
        "fails-older": "older NCCL fails",
        "literal": "NCCL takes it as it stands",
        "ignores": "NCCL ignores it",
    }[remark.effect]


def _remedy(remark: Remark) -> str | None:
    if _is_in_capitals(remark):
        return f"write <{remark.subject.lower()}>"
    if remark.kind in _REMEDIES:
        return _REMEDIES[remark.kind]
    if remark.kind in _SPACES:
        return "sed -i 's/\\t/ /g' FILE"
    if remark.kind in {"mismatched-tag", "misplaced-element"}:
        homes = [f"<{parent}>" for parent, names in CHILDREN.items() if remark.subject in names]
        is_open = remark.kind == "mismatched-tag"
        return f"close it first: </{remark.subject}>" if is_open else f"move it into {' or '.join(homes)}"
    homes = [f"<{element}>" for element, names in ATTRIBUTES.items() if remark.subject in names]
    if remark.kind == "unknown-attribute" and homes:
        return f"NCCL reads it of {', '.join(homes)}"
    known = {
        "unknown-element": list(CHILDREN),
        "unknown-attribute": sorted({name for names in ATTRIBUTES.values() for name in names}),
    }.get(remark.kind, [])
    near = difflib.get_close_matches(remark.subject.lower(), known, n=1, cutoff=_LEAST_LIKENESS)
    return f"maybe: {near[0]}" if near else None
