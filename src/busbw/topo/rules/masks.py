"""CPU masks: their form, what they say together, and what they say against the right machine."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from msgspec import structs

from busbw.base.cpus import format_cpu_list, format_mask, parse_cpu_list
from busbw.facts.rules import finding
from busbw.model.finding import Finding
from busbw.topo.reference import TopologyReference
from busbw.topo.rules.locality import relabelled
from busbw.topo.rules.subject import CpuElement, TopologySubject

_WORD_DIGITS = 8
# Digits of the number of a CPU.
_LONGEST_CPU = 4
# CPU_SETSIZE, which NCCL's masks are built for, in words of 32.
_MOST_WORDS = 32
_OBEYS = (
    "NCCL obeys with NCCL_IGNORE_CPU_AFFINITY=1; else it intersects with the launcher's mask, and keeps that one where "
    "nothing is left"
)


def masks(subject: TopologySubject, reference: TopologyReference | None) -> Iterator[Finding]:
    """Yield what is wrong with the masks, each fault once: a malformed mask is not judged further."""
    malformed: set[int] = set()
    widths = _first_widths(subject)
    for node in subject.nodes:
        for found in _form(subject, node, widths):
            malformed.add(id(node))
            yield _with_right_mask(found, node, reference)
    # Of the first host only: the nodes of the others may well be equal to its own.
    sound = [
        node
        for node in subject.nodes
        if id(node) not in malformed and node.cpus is not None and node.host == subject.nodes[0].host
    ]
    yield from _empty(subject, sound, reference)
    used = [node for node in sound if node.cpus]
    equal = list(_equal(subject, used, reference))
    yield from equal
    if equal:
        return
    yield from _shared(subject, used, reference)
    explained = list(_against(subject, used, reference)) if reference is not None else []
    yield from explained
    if not explained:
        yield from _order(subject, used, reference)
        yield from _uneven(subject, used, reference)


def _right_mask(node: CpuElement, reference: TopologyReference | None) -> str | None:
    """Return the mask that a node has in the right machine, as the file would write it; None where it is not known."""
    right = reference.masks.get(node.id) if reference is not None and node.id is not None else None
    return f'affinity="{format_mask(right, _words(reference))}"' if reference is not None and right else None


def _with_right_mask(found: Finding, node: CpuElement, reference: TopologyReference | None) -> Finding:
    right = _right_mask(node, reference)
    return structs.replace(found, fix=right) if right is not None else found


def _first_widths(subject: TopologySubject) -> dict[int, int]:
    """Return how many digits the first word of a mask has, by the number of words, where the file pads with zeros.

    The kernel writes all masks equally wide, so a first word that is narrower than another has lost a digit.
    """
    widths: dict[int, int] = {}
    is_padded = False
    for node in subject.nodes:
        words = (node.element.value("affinity") or "").split(",")
        first = words[0].strip()
        is_padded = is_padded or (len(first) > 1 and first.startswith("0"))
        widths[len(words)] = max(widths.get(len(words), 0), len(first))
    return widths if is_padded else {}


def _form(subject: TopologySubject, node: CpuElement, widths: dict[int, int]) -> Iterator[Finding]:
    text = node.element.value("affinity")
    if text is None or not text.strip(", "):
        return
    place = subject.place(node.element, "affinity")
    words = [word.strip() for word in text.split(",")]
    if _is_list(words) or not all(word and set(word.lower()) <= set("0123456789abcdef") for word in words):
        yield finding(
            "TOP040",
            evidence=f'affinity="{text}" of NUMA node {_shown(node)}; words of 8 hexadecimal digits are wanted',
            fix=_from_list(text),
            place=place,
            confidence="certain",
            effect="NCCL takes the hexadecimal digits at the beginning of each word",
            value=text,
        )
        return
    long = [word for word in words if len(word) > _WORD_DIGITS]
    if long or len(words) > _MOST_WORDS:
        what = f"a word of {len(long[0])} digits" if long else f"{len(words)} words"
        yield finding(
            "TOP050",
            evidence=f'affinity="{text}" of NUMA node {_shown(node)}',
            place=place,
            confidence="certain",
            effect="NCCL keeps the low 8 digits of each word, and the first 32 words",
            what=what,
        )
        return
    first = min(widths.get(len(words), 0), _WORD_DIGITS)
    short = [word for place, word in enumerate(words) if len(word) < (_WORD_DIGITS if place > 0 else first)]
    if short:
        yield finding(
            "TOP041",
            evidence=f"affinity of NUMA node {_shown(node)} names {_cpus(node.cpus or ())} as it stands",
            fix="restore the digit that is missing",
            place=place,
            confidence="likely" if short[0] == words[0] else "certain",
            effect="NCCL takes the word for its number: " + _OBEYS,
            word=short[0],
            digits=f"{len(short[0])} digit{'s' if len(short[0]) > 1 else ''}",
        )


def _is_list(words: list[str]) -> bool:
    """Return whether these are CPUs by number: no word of a mask but the first is so short."""
    return len(words) > 1 and all(word.isdecimal() and len(word) <= _LONGEST_CPU for word in words)


def _from_list(text: str) -> str | None:
    """Return the mask that a CPU list, or words with 0x in front, would be."""
    cpus = parse_cpu_list(text)
    if cpus and ("-" in text or "," in text):
        return f'affinity="{format_mask(cpus)}"'
    bare = text.replace("0x", "").replace("0X", "")
    return f'affinity="{bare}"' if bare != text else None


def _empty(subject: TopologySubject, nodes: list[CpuElement], reference: TopologyReference | None) -> Iterator[Finding]:
    for node in [*nodes, *(each for each in subject.nodes if _is_blank(each))]:
        if not node.cpus and node.element.named("pci"):
            yield finding(
                "TOP043",
                evidence=f'affinity="{node.element.value("affinity")}"',
                fix=_right_mask(node, reference)
                or "write the node's mask, or leave affinity out: NCCL then asks the kernel",
                place=subject.place(node.element, "affinity"),
                confidence="certain",
                effect="NCCL finds the intersection empty and binds nothing",
                node=_shown(node),
            )


def _is_blank(node: CpuElement) -> bool:
    text = node.element.value("affinity")
    return text is not None and not text.strip(", ")


def _equal(subject: TopologySubject, nodes: list[CpuElement], reference: TopologyReference | None) -> Iterator[Finding]:
    groups: dict[tuple[int, ...], list[CpuElement]] = defaultdict(list)
    for node in nodes:
        groups[node.cpus or ()].append(node)
    for cpus, same in groups.items():
        if len({node.id for node in same}) > 1:
            yield finding(
                "TOP044",
                evidence=f'affinity="{same[0].element.value("affinity")}": {_cpus(cpus)}',
                fix=_right_masks(same, reference),
                place=subject.place(same[1].element, "affinity"),
                confidence="certain",
                effect=_OBEYS,
                nodes=", ".join(_shown(node) for node in same),
            )


def _right_masks(nodes: list[CpuElement], reference: TopologyReference | None) -> str | None:
    rights = [(node, _right_mask(node, reference)) for node in nodes]
    wrong = [f"{right} on node {_shown(node)}" for node, right in rights if right and not _has(node, reference)]
    return ", ".join(wrong) or None


def _has(node: CpuElement, reference: TopologyReference | None) -> bool:
    return reference is not None and set(reference.masks.get(node.id or 0, ())) == set(node.cpus or ())


def _shared(
    subject: TopologySubject, nodes: list[CpuElement], reference: TopologyReference | None
) -> Iterator[Finding]:
    for place, node in enumerate(nodes):
        for earlier in nodes[:place]:
            both = set(node.cpus or ()) & set(earlier.cpus or ())
            if both and node.id != earlier.id:
                yield finding(
                    "TOP042",
                    evidence=f"node {_shown(earlier)} of line {earlier.element.line} and node {_shown(node)} have them",
                    fix=_right_masks([earlier, node], reference),
                    place=subject.place(node.element, "affinity"),
                    confidence="certain",
                    effect=_OBEYS,
                    cpus=_cpus(tuple(both)),
                )


def _against(subject: TopologySubject, nodes: list[CpuElement], reference: TopologyReference) -> Iterator[Finding]:
    """Yield where masks differ from the right machine's."""
    if _has_first_threads(nodes, reference):
        yield from (_first_threads(subject, node, reference) for node in nodes)
        return
    swapped: list[CpuElement] = []
    owners = {frozenset(cpus) for cpus in reference.masks.values()}
    renumbered = relabelled(subject, reference)
    for node in nodes:
        right = reference.masks.get(node.id) if node.id is not None else None
        strange = set(node.cpus or ()) - reference.cpus if reference.cpus is not None else set()
        if node.id in renumbered or (right is not None and set(right) == set(node.cpus or ())):
            continue
        if strange:
            yield _lacking(subject, node, strange, reference)
        elif right is not None and frozenset(node.cpus or ()) in owners:
            swapped.append(node)
        elif right is not None:
            yield finding(
                "TOP049",
                evidence=f"{_cpus(node.cpus or ())}; {reference.name} has {format_cpu_list(right)}",
                fix=f'affinity="{format_mask(right, _words(reference))}"',
                place=subject.place(node.element, "affinity"),
                confidence=reference.confidence,
                effect=_OBEYS,
                node=_shown(node),
            )
    if swapped:
        first = swapped[0]
        right = reference.masks[first.id or 0]
        has = _cpus(first.cpus or ())
        yield finding(
            "TOP048",
            evidence=f"node {_shown(first)} has {has}; {reference.name} has {format_cpu_list(right)}",
            fix=f'affinity="{format_mask(right, _words(reference))}" on node {_shown(first)}, and so on',
            place=subject.place(first.element, "affinity"),
            confidence=reference.confidence,
            effect=_OBEYS,
            nodes=", ".join(sorted(_shown(node) for node in swapped)),
        )


def _has_first_threads(nodes: list[CpuElement], reference: TopologyReference) -> bool:
    """Return whether every mask is the lower half of the right one: Linux numbers first threads first."""
    half = (max((max(cpus, default=0) for cpus in reference.masks.values()), default=0) + 1) // 2
    rights = [reference.masks.get(node.id, ()) if node.id is not None else () for node in nodes]
    return bool(nodes) and all(
        node.cpus == tuple(cpu for cpu in right if cpu < half) and 2 * len(node.cpus) == len(right)
        for node, right in zip(nodes, rights, strict=True)
    )


def _first_threads(subject: TopologySubject, node: CpuElement, reference: TopologyReference) -> Finding:
    right = reference.masks[node.id or 0]
    return finding(
        "TOP051",
        evidence=f"{_cpus(node.cpus or ())}; {reference.name} has {format_cpu_list(right)} with hyperthreads on",
        fix=f'affinity="{format_mask(right, _words(reference))}" where they are on',
        place=subject.place(node.element, "affinity"),
        confidence="likely",
        effect="right where hyperthreads are off; else NCCL leaves half of them idle",
        node=_shown(node),
    )


def _lacking(subject: TopologySubject, node: CpuElement, strange: set[int], reference: TopologyReference) -> Finding:
    return finding(
        "TOP045",
        evidence=f"{reference.name} has {_cpus(tuple(reference.cpus or ()))}",
        fix=_right_mask(node, reference),
        place=subject.place(node.element, "affinity"),
        confidence=reference.confidence,
        effect=_OBEYS,
        cpus=_cpus(tuple(strange)),
        node=_shown(node),
    )


def _words(reference: TopologyReference) -> int:
    return (max(reference.cpus or {0}) + 32) // 32


def _order(subject: TopologySubject, nodes: list[CpuElement], reference: TopologyReference | None) -> Iterator[Finding]:
    """Yield where a node with a higher number has lower CPUs, unless the machine is known to be so."""
    if reference is not None and all(node.id in reference.masks for node in nodes):
        return
    numbered = sorted((node for node in nodes if node.id is not None), key=lambda node: node.id or 0)
    ordered = sorted(numbered, key=lambda node: min(node.cpus or (0,)))
    wrong = [node for node, other in zip(numbered, ordered, strict=True) if node is not other]
    if wrong:
        yield finding(
            "TOP047",
            evidence=", ".join(f"node {_shown(node)} has {_cpus(node.cpus or ())}" for node in wrong),
            fix="compare with lscpu on the machine; most likely the masks are exchanged",
            place=subject.place(wrong[0].element, "affinity"),
            confidence="likely",
            effect=_OBEYS,
        )


def _uneven(
    subject: TopologySubject, nodes: list[CpuElement], reference: TopologyReference | None
) -> Iterator[Finding]:
    """Yield masks that stand out among the others, unless the machine is known to be so."""
    if reference is not None and all(node.id in reference.masks for node in nodes):
        return
    counts = Counter(len(node.cpus or ()) for node in nodes)
    usual, votes = counts.most_common(1)[0] if counts else (0, 0)
    for node in nodes:
        count = len(node.cpus or ())
        runs = {len(run) for run in _runs(node.cpus or ())}
        if count != usual and votes > 1:
            what = f"{count} CPUs on NUMA node {_shown(node)}, {usual} on {votes} others"
        elif len(nodes) == 2 and len(counts) == 2 and node is nodes[1]:
            what = f"{len(nodes[0].cpus or ())} CPUs on NUMA node {_shown(nodes[0])}, {count} on {_shown(node)}"
        elif len(runs) > 1:
            what = f"runs of {', '.join(str(run) for run in sorted(runs))} CPUs on NUMA node {_shown(node)}"
        else:
            continue
        yield finding(
            "TOP046",
            evidence=_cpus(node.cpus or ()),
            fix="compare with lscpu on the machine",
            place=subject.place(node.element, "affinity"),
            confidence="possible",
            effect=_OBEYS,
            what=what,
        )


def _runs(cpus: tuple[int, ...]) -> list[list[int]]:
    """Return CPUs, ascending, in runs of neighbours."""
    runs: list[list[int]] = []
    for cpu in cpus:
        if runs and runs[-1][-1] + 1 == cpu:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return runs


def _shown(node: CpuElement) -> str:
    return str(node.id) if node.id is not None else "?"


def _cpus(cpus: tuple[int, ...]) -> str:
    return f"CPU{'s' if len(cpus) != 1 else ''} {format_cpu_list(cpus) or 'none'}"
