"""NVLinks, and XGMI links in a file of RCCL's: entries that hide the real ones, and counts that cannot be."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from busbw.facts.devices import capability
from busbw.facts.findings import finding
from busbw.model.finding import Confidence, Finding
from busbw.topo.addresses import is_hidden
from busbw.topo.file.numerals import read_integer
from busbw.topo.reference import Reference
from busbw.topo.rules.subject import LINK_WORDS, Device, Link, Subject

_GPUS = ("0x03", "0x12")
_SWITCH = "0x0680"
# GPUs that have to agree before another one stands out.
_LEAST_VOTES = 2


def nvlinks(subject: Subject, reference: Reference | None) -> Iterator[Finding]:
    """Yield what is wrong with NVLinks."""
    by_gpu: dict[int, list[Link]] = defaultdict(list)
    for link in subject.links:
        by_gpu[id(link.gpu)].append(link)
    addresses = {device.bus_id for device in subject.devices}
    for link in subject.links:
        yield from _one(subject, link, addresses)
    for element in subject.document.root.walk():
        count = read_integer(element.value("count"))
        words = LINK_WORDS.get(element.name)
        if words is not None and count is not None and count <= 0:
            yield finding(
                "TOP095",
                evidence=f'count="{element.value("count")}" in <{element.name}>',
                where=subject.where(element, "count"),
                confidence="certain",
                effect=f"{words.library} plans with a link without bandwidth, and looks for no other",
                value=count,
                links=words.several,
            )
    yield from _directions(subject, by_gpu)
    yield from _totals(subject, by_gpu, reference)
    yield from _none(subject, by_gpu)


def _one(subject: Subject, link: Link, addresses: set[str | None]) -> Iterator[Finding]:
    tclass = link.element.value("tclass") or ""
    if link.target == link.gpu.bus_id:
        yield finding(
            "TOP090",
            evidence=f'target="{link.target}" is the GPU itself',
            fix=_remedy(link),
            where=subject.where(link.element, "target"),
            confidence="certain",
            effect=_hides(link),
            bus_id=link.target,
            link=link.words.one,
        )
    elif (
        link.target not in addresses
        and (link.element.name == "xgmi" or not (is_hidden(link.target) or tclass.startswith(_SWITCH)))
        and link.element.attribute("target") is not None
    ):
        yield finding(
            "TOP091",
            evidence=f"{link.gpu.name} lists {link.count or 0} links to it, of class {tclass or 'not given'}",
            fix=_remedy(link),
            where=subject.where(link.element, "target"),
            confidence="certain" if tclass.startswith(_GPUS) else "possible",
            effect=f"{link.words.library} drops the link; {_hides(link)}",
            target=link.target,
            link=link.words.one,
        )


def _directions(subject: Subject, by_gpu: dict[int, list[Link]]) -> Iterator[Finding]:
    """Yield pairs of GPUs that do not agree on the links between them; a GPU without any is left to detection."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], Link] = {}
    speaking: set[str] = set()
    for links in by_gpu.values():
        for link in links:
            source = link.gpu.bus_id
            if source is not None and link.target != source:
                speaking.add(source)
                counts[source, link.target] += max(link.count or 0, 0)
                first.setdefault((source, link.target), link)
    for (source, target), count in counts.items():
        back = counts.get((target, source), 0)
        # Each pair once, from its first GPU, or from the only one that names the other.
        if target not in speaking or count == back or ((target, source) in counts and source > target):
            continue
        yield finding(
            "TOP092",
            evidence=f"{count} one way, {back} back",
            where=subject.where(first[source, target].element, "count"),
            confidence="certain",
            effect=f"{first[source, target].words.library} plans each direction with its own rate",
            first=source,
            second=target,
            links=first[source, target].words.several,
        )


def _totals(subject: Subject, by_gpu: dict[int, list[Link]], reference: Reference | None) -> Iterator[Finding]:
    totals = {key: sum(max(link.count or 0, 0) for link in links) for key, links in by_gpu.items()}
    usual = Counter(totals.values()).most_common(1)
    for key, links in by_gpu.items():
        gpu, total = links[0].gpu, totals[key]
        most = _most(gpu, reference)
        if most is not None and total > most:
            yield finding(
                "TOP093",
                evidence=" + ".join(f"{link.count or 0} to {link.target}" for link in links),
                where=subject.where(links[0].element, "count"),
                confidence="certain",
                effect=f"{links[0].words.library} multiplies the count with the rate of one link",
                bus_id=gpu.bus_id or "?",
                count=total,
                most=most,
                links=links[0].words.several,
            )
            continue
        if any(link.target == gpu.bus_id for link in links):
            continue
        known = reference.nvlinks_per_gpu if reference is not None and gpu.bus_id in reference.gpus else None
        confidence: Confidence = reference.confidence if reference is not None and known is not None else "likely"
        whole = known or (usual[0][0] if usual and 2 * usual[0][1] > len(totals) and len(totals) > 2 else None)
        if whole is not None and total < whole:
            yield finding(
                "TOP094",
                evidence=f"{reference.name} has {known}" if reference is not None and known else "as the others list",
                fix=_remedy(links[0]),
                where=subject.where(links[0].element, "count"),
                confidence=confidence,
                effect=_hides(links[0]),
                bus_id=gpu.bus_id or "?",
                count=total,
                all=whole,
                links=links[0].words.several,
            )


def _none(subject: Subject, by_gpu: dict[int, list[Link]]) -> Iterator[Finding]:
    """Yield GPUs without NVLinks where most of their host have some to NVSwitches, which join all GPUs of a machine."""
    switched = {key for key, links in by_gpu.items() if any(_is_to_a_switch(link) for link in links)}
    for gpu in subject.of_kind("gpu"):
        if id(gpu) in by_gpu or not gpu.element.named("gpu"):
            continue
        others = [other for other in subject.of_kind("gpu") if other.node.host == gpu.node.host and other is not gpu]
        with_links = sum(id(other) in switched for other in others)
        if with_links < _LEAST_VOTES or 2 * with_links <= len(others):
            continue
        yield finding(
            "TOP096",
            evidence=f"{with_links} of the {len(others)} other GPUs have some",
            fix=f"on the machine: nvidia-smi nvlink --status -i {gpu.bus_id}",
            where=subject.where(gpu.element.named("gpu")[0]),
            confidence="likely",
            effect="in a dump: NCCL saw none, and lays no ring over NVLink; in a file for NCCL: it looks for them",
            bus_id=gpu.bus_id or "?",
        )


def _hides(link: Link) -> str:
    return f"{link.words.library} does not look for {link.words.several} of a GPU that has one in the file"


def _remedy(link: Link) -> str:
    return f"delete the {link.element.name} elements: {link.words.library} then finds the links by itself"


def _is_to_a_switch(link: Link) -> bool:
    return is_hidden(link.target) or (link.element.value("tclass") or "").startswith(_SWITCH)


def _most(gpu: Device, reference: Reference | None) -> int | None:
    """Return how many NVLinks a GPU can have; None where the file does not say what it is."""
    if reference is not None and reference.nvlinks_per_gpu is not None and gpu.bus_id in reference.gpus:
        return reference.nvlinks_per_gpu
    for element in gpu.element.named("gpu"):
        able = capability(read_integer(element.value("sm")))
        if able is not None:
            return able.nvlinks
    return None
