"""What `nvidia-smi` prints of GPUs: -q -x, topo -m, nvlink and --query-gpu."""

import re
from collections.abc import Iterator
from xml.parsers import expat

from busbw.base.errors import InputError
from busbw.machine.read.index import bus_id, number
from busbw.model.host import HostNvLink, MatrixCell

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


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PATH = re.compile(r"X|NV\d{1,3}|NVB|PIX|PXB|PHB|NODE|SYS|SOC|PIXB|C2C|N/A")
_DEVICE = re.compile(r"GPU\d{1,4}|NIC\d{1,4}|mlx\w{1,40}|[a-z][\w.-]{0,40}\d[\w.-]{0,20}")
# The first one; not GPU0 where the driver has lost that.
_GPU_COLUMN = re.compile(r"GPU\d{1,4}")
_LEGEND = re.compile(r"\s*(NIC\d{1,4}):\s+(\S{1,64})\s*")
_MOST_DEVICES = 512
_GPU = re.compile(r"GPU (\d{1,4}):")
_STATE = re.compile(
    r"\s*(?:C2C )?Link (\d{1,3}): (?:(?P<rate>\d{1,5}(?:\.\d{1,6})?) (?P<unit>[GM]B/s)|<?inactive>?)", re.IGNORECASE
)
_REMOTE = re.compile(
    r"\s*Link (\d{1,3}): (?:Remote Device )?(?P<target>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
)


def matrix(text: str) -> tuple[MatrixCell, ...]:
    """Return the cells of `nvidia-smi topo -m`, row by row, with NICs under their own names.

    Columns behind the devices (CPU affinity, NUMA affinity, GPU NUMA id) are no paths. A row that has no path to every
    device, as of a damaged output, is left out.
    """
    lines = _COLOUR.sub("", text).splitlines()
    columns: list[str] = []
    rows: list[tuple[str, list[str]]] = []
    legend: dict[str, str] = {}
    for line in lines:
        named = _LEGEND.fullmatch(line)
        words = line.split()
        if named is not None:
            legend[named[1]] = named[2]
        elif not columns and words and _GPU_COLUMN.fullmatch(words[0]) and not _is_row(words):
            columns = _columns(words)
        elif columns and _is_row(words) and len(words) > len(columns) and len(rows) < _MOST_DEVICES:
            rows.append((words[0], words[1 : len(columns) + 1]))
    return tuple(
        MatrixCell(row=legend.get(row, row), column=legend.get(column, column), path=path)
        for row, paths in rows
        if all(_PATH.fullmatch(path) for path in set(paths))
        for column, path in zip(columns, paths, strict=True)
    )


def _columns(words: list[str]) -> list[str]:
    """Return the devices of a heading; `CPU Affinity` and what follows are none."""
    found = []
    for word in words[:_MOST_DEVICES]:
        if word in ("CPU", "NUMA", "GPU") or _DEVICE.fullmatch(word) is None:
            break
        found.append(word)
    return found


def _is_row(words: list[str]) -> bool:
    return len(words) > 1 and _DEVICE.fullmatch(words[0]) is not None and _PATH.fullmatch(words[1]) is not None


def links(status: str, remote: str) -> dict[int, tuple[HostNvLink, ...]]:
    """Return the links of each GPU by its index, from `nvlink -s` or `c2c -s`, and `nvlink -R` for the other ends."""
    targets = {(gpu, link): bus_id(match["target"]) for gpu, link, match in _links(remote, _REMOTE)}
    found: dict[int, dict[int, HostNvLink]] = {}
    for gpu, link, match in _links(status, _STATE):
        rate = float(match["rate"]) * (1e9 if match["unit"].upper() == "GB/S" else 1e6) if match["rate"] else None
        target = targets.get((gpu, link))
        found.setdefault(gpu, {})[link] = HostNvLink(link=link, rate_Bps=rate, active=rate is not None, target=target)
    return {gpu: tuple(each[link] for link in sorted(each)) for gpu, each in found.items()}


def _links(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int, re.Match[str]]]:
    gpu: int | None = None
    for line in text.splitlines():
        heading = _GPU.match(line)
        if heading is not None:
            gpu = int(heading[1])
        match = pattern.match(line)
        if match is not None and gpu is not None:
            yield gpu, int(match[1]), match


def capabilities(text: str) -> dict[str, tuple[int | None, int | None]]:
    """Return (index, compute capability times ten) by PCI address, from rows `0, 00000000:0F:00.0, 9.0`."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        address = bus_id(cells[1]) if len(cells) == 3 else None
        if address is not None:
            found[address] = (number(cells[0]), _capability(cells[2]))
    return found


def _capability(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,3})\.(\d)", text)
    return int(match[1]) * 10 + int(match[2]) if match is not None else None
