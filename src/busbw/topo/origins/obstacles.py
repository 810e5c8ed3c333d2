"""Why NCCL would not see what a topology file means."""

from collections.abc import Iterator

from busbw.topo.bus_ids import normal_bus_id
from busbw.topo.file.document import Document
from busbw.topo.origins.from_document import kind_of


def obstacles(document: Document) -> tuple[str, ...]:
    """Return, with their lines, what stops NCCL's reader, or keeps it from finding a device; () where nothing does.

    Busbw reads behind all of these: what it says of the file is what its author meant.
    """
    return tuple(dict.fromkeys((*_stops(document), *_not_found(document))))


def _stops(document: Document) -> Iterator[str]:
    for remark in document.remarks:
        if remark.effect == "fails":
            yield f"line {remark.line}: NCCL stops at {remark.text}"
        elif remark.kind == "root-name":
            yield f"line {remark.line}: {remark.text}"


def _not_found(document: Document) -> Iterator[str]:
    """Yield the GPUs and NICs whose bus ids are not written as NCCL writes them; only switches may have any name."""
    for element in document.root.walk():
        written = element.attribute("busid")
        if element.name != "pci" or written is None or kind_of(element) == "switch":
            continue
        right = normal_bus_id(written.value)
        if written.value != right:
            yield f"line {written.line}: NCCL looks for {right}, and that is not how {written.value} is written"
