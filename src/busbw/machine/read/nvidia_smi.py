"""`nvidia-smi -q -x`: GPUs as the driver describes them.

The document type it names is never fetched, and a document that declares entities is refused: nvidia-smi writes none.
Warnings of the driver stand before and behind the document on the same stream: they are no part of it.
"""

from xml.parsers import expat

from busbw.base.errors import InputError

_WHERE = "nvidia-smi -q -x"
_DEEPEST = 32
_MOST_GPUS = 1024
_LONGEST_VALUE = 4096
_BEGINNING = "<?xml"
_END = "</nvidia_smi_log>"
ROOT = "<nvidia_smi_log"
# What drivers say instead of a value they have not, in brackets or without.
NO_VALUES = frozenset(
    {
        "n/a", "none", "unknown", "unknown error", "err!", "gpu is lost", "gpu requires reset", "not supported",
        "insufficient permissions", "no data", "function not found", "requested functionality has been deprecated",
    }
)  # fmt: skip

# Names of elements below <gpu>, the outer first, with their text.
Fields = dict[tuple[str, ...], str]


class _Reader:
    """Takes the texts of the elements below each <gpu> as they come by."""

    def __init__(self) -> None:
        self.head: Fields = {}
        self.gpus: list[tuple[str, Fields]] = []
        self._path: list[str] = []
        self._text: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        self._text = []
        if len(self._path) > _DEEPEST:
            raise InputError(f"elements {_DEEPEST} deep, which nvidia-smi never writes", where=_WHERE)
        if len(self._path) == 2 and name == "gpu":
            if len(self.gpus) >= _MOST_GPUS:
                raise InputError(f"more than {_MOST_GPUS} GPUs", where=_WHERE)
            self.gpus.append((attributes.get("id", ""), {}))

    def end(self, _name: str) -> None:
        text = "".join(self._text).strip()
        if text and len(self._path) > 1 and text.strip("[]").lower() not in NO_VALUES:
            inside = self._path[1] == "gpu" and len(self._path) > 2
            fields = self.gpus[-1][1] if inside else self.head
            fields.setdefault(tuple(self._path[2 if inside else 1 :]), text[:_LONGEST_VALUE])
        self._path.pop()
        self._text = []

    def text(self, text: str) -> None:
        self._text.append(text)

    def entity(self, name: str, *_rest: object) -> None:
        raise InputError(f"declares the entity {name[:40]!r}, which nvidia-smi never does", where=_WHERE)


def _document(text: str) -> str:
    """Return the document alone; the whole text where no end of it is found."""
    start = max(text.find(_BEGINNING), 0)
    end = text.rfind(_END)
    return text[start : end + len(_END)] if end > start else text[start:]


def gpu_fields(text: str) -> tuple[Fields, tuple[tuple[str, Fields], ...]]:
    """Return the fields about the driver, and for each GPU its address as written and its fields.

    Raises InputError for what is not XML, or XML with entities.
    """
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.EntityDeclHandler = reader.entity
    parser.buffer_text = True
    try:
        parser.Parse(_document(text).encode("utf-8", "replace"), True)  # noqa: FBT003 - the last part; it takes no names
    except expat.ExpatError as error:
        raise InputError(f"not XML: {error}", where=_WHERE) from error
    return reader.head, tuple(reader.gpus)
