"""Finding what is wrong with an NCCL topology file."""

from msgspec import structs

from busbw.model.finding import Finding
from busbw.topo.file.document import TopologyDocument
from busbw.topo.reference import TopologyReference
from busbw.topo.rules.attributes import attributes, syntax
from busbw.topo.rules.consistency import distance, evenness, identity
from busbw.topo.rules.links import links, nvlinks
from busbw.topo.rules.locality import division, locality, undivided
from busbw.topo.rules.masks import masks
from busbw.topo.rules.presence import another_machine, gpu_count, nets, presence, strange_nodes
from busbw.topo.rules.subject import TopologySubject, subject_of

# A dump of a whole NVLink domain has this many elements; NCCL gives up long before, and pairs of elements take longer.
_MOST_ELEMENTS = 4_096
_LONGEST = 300
# Where one of these is found, what follows from it is not said again.
_PLACES = {"TOP060", "TOP061", "TOP062", "TOP063", "TOP067", "TOP078"}


def check(document: TopologyDocument, reference: TopologyReference | None = None) -> tuple[Finding, ...]:
    """Return what is wrong with a topology file, in the order of the file.

    `reference` is the machine that it is for; without one, conclusions rest on what the file says about itself, and
    each says how sure it is.
    """
    subject = subject_of(document)
    found = [*syntax(subject), *attributes(subject)]
    if _size(subject) <= _MOST_ELEMENTS:
        strange = list(another_machine(subject, reference)) if reference is not None else []
        divided = list(division(subject, reference)) if reference is not None and not strange else []
        known = undivided(reference) if reference is not None and divided else reference
        found += [*strange, *divided, *_meanings(subject, None if strange else known)]
    return tuple(_clipped(each) for each in sorted(found, key=_place))


def _size(subject: TopologySubject) -> int:
    return len(subject.nodes) + len(subject.devices) + len(subject.links) + len(subject.nets)


def _meanings(subject: TopologySubject, reference: TopologyReference | None) -> list[Finding]:
    """Return what is wrong with what elements say together."""
    found = [
        *identity(subject, reference),
        *masks(subject, reference),
        *links(subject, reference),
        *nvlinks(subject, reference),
        *nets(subject, reference),
    ]
    if _is_one_host(subject):
        found += _places(subject, reference)
    return found


def _is_one_host(subject: TopologySubject) -> bool:
    return len({node.host for node in subject.nodes if node.host is not None}) <= 1


def _places(subject: TopologySubject, reference: TopologyReference | None) -> list[Finding]:
    """Return what is wrong with where devices are."""
    if reference is None:
        return [*evenness(subject), *distance(subject)]
    nodes = list(strange_nodes(subject, reference))
    if not (reference.gpus or reference.nics):
        return [*nodes, *gpu_count(subject, reference), *evenness(subject), *distance(subject)]
    found = [*nodes, *presence(subject, reference), *locality(subject, reference)]
    return found if any(each.code in _PLACES for each in found) else [*found, *distance(subject)]


def _clipped(found: Finding) -> Finding:
    """Return a finding that can be printed, whatever the file holds."""
    long = {
        name: f"{text[:_LONGEST]}..."
        for name in ("title", "evidence", "fix")
        if (text := getattr(found, name)) is not None and len(text) > _LONGEST
    }
    return structs.replace(found, **long) if long else found


def _place(found: Finding) -> tuple[int, int, str]:
    _file, line, column = (found.where or ":0:0").rsplit(":", 2)
    return int(line), int(column), found.code
