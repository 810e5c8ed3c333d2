"""What the author of a topology file meant where an attribute is misspelt or stands in typographic quotes.

The slip itself is a remark of the reader; what follows from it is not to be said again.
"""

import difflib
from collections.abc import Iterator

from msgspec import structs

from busbw.topo.file.document import ATTRIBUTES, Attribute, Element, TopologyDocument

_QUOTES = "\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb`'\""
_LEAST_LIKENESS = 0.8
# Without these NCCL fails, or cannot use the element.
REQUIRED = {"cpu": ("numaid",), "pci": ("busid",), "nvlink": ("target", "count"), "pcilink": ("target",)}


def meant(document: TopologyDocument) -> TopologyDocument:
    """Return the document with the names and values that its author meant, each at the place where it stands."""
    if not any(remark.kind in {"unknown-attribute", "quote-missing"} for remark in document.remarks):
        return document
    return structs.replace(document, root=_element(document.root))


def meant_name(element: Element, name: str) -> str | None:
    """Return the attribute that an unknown one is a misspelling of: one that NCCL reads and the element lacks."""
    known = ATTRIBUTES.get(element.name, ())
    if name in known:
        return None
    lacking = [other for other in known if element.attribute(other) is None]
    plain = name.lower().replace("_", "").replace("-", "")
    spellings = {other.replace("_", ""): other for other in lacking}
    near = difflib.get_close_matches(plain, list(spellings), n=1, cutoff=_LEAST_LIKENESS)
    return spellings[near[0]] if near else None


def misspelt(document: TopologyDocument, line: int, column: int) -> tuple[Element, str] | None:
    """Return the element with an unknown attribute at a place, and the required attribute that is meant by it."""
    for element in document.root.walk():
        for attribute in element.attributes:
            if (attribute.line, attribute.column) == (line, column):
                right = meant_name(element, attribute.name)
                return (element, right) if right in REQUIRED.get(element.name, ()) else None
    return None


def _element(element: Element) -> Element:
    return structs.replace(
        element,
        attributes=tuple(_attributes(element)),
        children=tuple(_element(child) for child in element.children),
    )


def _attributes(element: Element) -> Iterator[Attribute]:
    for attribute in element.attributes:
        right = meant_name(element, attribute.name)
        value = attribute.value.strip(_QUOTES)
        yield structs.replace(attribute, name=right or attribute.name, value=value)
