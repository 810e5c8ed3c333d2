"""Checking an NCCL topology file against a platform, a host, or what it says about itself."""

import shlex
from pathlib import Path

from msgspec import structs

from busbw import __version__
from busbw.base.errors import InputError
from busbw.base.text import listed
from busbw.base.value import Value
from busbw.facts.platforms import find_platform, platforms_at
from busbw.machine.capture.sites import site_files
from busbw.machine.named import named_topology
from busbw.model.finding import Checked, Finding, HeldAgainst, by_place, counts_of, quoted_lines
from busbw.model.topology import TopologyComparison, TopologyDifference
from busbw.store.sources import read_topology_file, source_kind
from busbw.topo.check import candidate_addresses, check, partial_resemblance, resemblance
from busbw.topo.comparison import compare
from busbw.topo.file.document import TopologyDocument
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text, portable
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.reference import TopologyReference, reference_of_host, reference_of_platform


def check_topology(file: str, *, platform: str | None = None, host: Path | None = None, here: bool = False) -> Checked:
    """Return what is wrong with a topology file; at most one of platform, host and here says what it is for.

    Where none does, a platform with the same PCI addresses is taken, if there is one. Raises InputError for what is no
    topology file, and for a platform or snapshot that does not exist.
    """
    given = [name for name, is_given in _choices(platform, host, here=here) if is_given]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are given", hint="hold the file against one of them")
    raw = read_topology_file(Path(file))
    document = read_document(raw, "standard input" if file == "-" else file)
    reference, held, remedy = _reference(document, platform, host, here=here)
    findings = _findings(document, reference)
    counts = counts_of(findings)
    # Text is shown byte for byte, as NCCL reads it.
    lines = raw.decode("latin-1").split("\n")
    return Checked(
        files=(document.where,),
        held_against=held,
        findings=findings,
        counts=counts,
        lines=quoted_lines(findings, {document.where: lines}),
        hints=(f"for a right file: {remedy}",) if remedy is not None and (counts.errors or counts.warnings) else (),
    )


def _findings(document: TopologyDocument, reference: TopologyReference | None) -> tuple[Finding, ...]:
    found = check(document, reference)
    if reference is not None:
        return found
    platforms = platforms_at(candidate_addresses(document), site_files())
    return tuple(sorted((*found, *partial_resemblance(document, platforms)), key=by_place))


def _choices(platform: str | None, host: Path | None, *, here: bool) -> list[tuple[str, bool]]:
    return [("--platform", platform is not None), ("--host", host is not None), ("--here", here)]


def _reference(
    document: TopologyDocument, platform: str | None, host: Path | None, *, here: bool
) -> tuple[TopologyReference | None, HeldAgainst | None, str | None]:
    """Return what to hold the file against, how to say so, and what writes a right file."""
    if host is not None or here:
        from busbw.machine.named import hardware_here, hardware_of_file  # noqa: PLC0415 - as long as all the rest

        reference = reference_of_host(hardware_of_file(host) if host is not None else hardware_here())
        source = shlex.quote(str(host)) if host is not None else "--here"
        held = HeldAgainst(name=reference.name, kind="host")
        return reference, held, f"busbw topo make {source} -o topo.xml" if reference.gpus else None
    if platform is not None:
        found = find_platform(platform, site_files()).platform
        reference = reference_of_platform(found)
        held = HeldAgainst(name=found.id, kind="platform", reason=_doubt(document, found.id, reference))
        return reference, held, _made_from(found.id)
    return _resembled(document)


def _resembled(document: TopologyDocument) -> tuple[TopologyReference | None, HeldAgainst | None, str | None]:
    addresses = candidate_addresses(document)
    like = resemblance(document, platforms_at(addresses, site_files())) if addresses else None
    if like is None:
        return None, None, None
    name = like.reference.name
    held = HeldAgainst(name=name, kind="resembles", reason=like.reason, also=like.also)
    return like.reference, held, _made_from(name)


def _doubt(document: TopologyDocument, name: str, reference: TopologyReference) -> str | None:
    """Return what to know of a platform that somebody named: that it says little, or that another one fits."""
    if not reference.gpus:
        whose = "GPUs" if reference.nics else "GPUs and NICs"
        return f"the PCI addresses of its {whose} are not published, so where they are cannot be compared"
    addresses = candidate_addresses(document)
    like = resemblance(document, platforms_at(addresses, site_files())) if addresses else None
    if like is None or name in (like.reference.name, *like.also):
        return None
    return f"the file is more like {like.reference.name}: {like.reason}"


def _made_from(name: str) -> str | None:
    """Return the command that writes a platform's file; None where too little is published for one."""
    try:
        topology_of_platform(find_platform(name, site_files()).platform)
    except InputError:
        return None
    return f"busbw topo make {shlex.quote(name)} -o topo.xml"


class MadeFile(Value, kw_only=True, frozen=True):
    """The text of a topology file, and what to know of its source, in words."""

    text: str
    notes: tuple[str, ...] = ()


def made_file(source: str | None, *, here: bool = False) -> MadeFile:
    """Return a topology file for all machines like the one named: a platform, a snapshot, a file, or this host.

    Raises InputError as busbw.machine.named.named_topology does, and for a machine without GPUs.
    """
    named = named_topology(source, here=here)
    if not named.topology.gpus:
        raise InputError(f"{source or 'this host'} has no GPU: NCCL has no use for a topology file there", where=source)
    is_platform = source is not None and source_kind(source) == "absent"
    topology = portable(named.topology)
    if is_platform:
        topology = structs.replace(topology, name=named.topology.name)
    origin = named.topology.name if is_platform else Path(source).name if source is not None else "this host"
    comment = (
        f"Made by busbw {__version__} from {origin}",
        "For every rank: NCCL_TOPO_FILE=/path/to/this/file; what is not in it NCCL finds out on the machine",
    )
    repaired = tuple(f"{words}; the new file has what was meant" for words in named.obstacles)
    found = _kept_faults(named.document) if named.document is not None else ()
    return MadeFile(text=file_text(topology, comment), notes=(*named.notes, *repaired, *found))


def _kept_faults(document: TopologyDocument) -> tuple[str, ...]:
    """Return a note on what is wrong with the file that another one is made of, and so with the new one."""
    reference, _held, remedy = _resembled(document)
    found = [each for each in check(document, reference) if each.severity != "note"]
    if not found:
        return ()
    counts = counts_of(found)
    numbers = [(counts.errors, "error"), (counts.warnings, "warning")]
    what = " and ".join(f"{number} {word}{'s' if number > 1 else ''}" for number, word in numbers if number)
    codes = listed(list(dict.fromkeys(each.code for each in found)), _MOST_CODES)
    name = "standard input" if document.where == "-" else document.where
    words = f"{name} has {what} ({codes}), and the new file keeps what it says of the machine"
    right = f"; for a right file: {remedy}" if remedy is not None else ""
    return (f"{words}: busbw topo check {shlex.quote(document.where)}{right}",)


_MOST_CODES = 4


def compared(first: str, second: str) -> TopologyComparison:
    """Return how two topologies differ in what NCCL would see; each is a file, a platform or a snapshot."""
    one, other = named_topology(first), named_topology(second)
    found = compare(one.topology, other.topology, (first, second), (*one.notes, *other.notes))
    unread = [
        TopologyDifference(group="files", subject="A", what="not as meant", first=words) for words in one.obstacles
    ]
    unread += [
        TopologyDifference(group="files", subject="B", what="not as meant", second=words) for words in other.obstacles
    ]
    return structs.replace(found, differences=(*unread, *found.differences))
