"""What `rocm-smi` prints of AMD's GPUs and the links between them."""

import re

from busbw.machine.read.nvidia_smi import NO_VALUES

_LINE = re.compile(r"GPU\[(?P<gpu>\d{1,4})\]\s*:\s*(?P<name>[A-Za-z ]{1,40}?)\s*:\s*(?P<value>.{1,200})")
_HEADING = re.compile(r"=+ (?P<title>[A-Za-z ]{1,60}) =+")
_LINK_TYPES = "Link Type between two GPUs"
_GPU = re.compile(r"GPU(\d{1,4})")
_XGMI = "XGMI"


def fields_by_gpu(text: str) -> dict[int, dict[str, str]]:
    """Return what lines as `GPU[0] : Card Series: AMD Instinct MI300X` say, by number and name in small letters."""
    said: dict[int, dict[str, str]] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None:
            value = match["value"].strip()
            if value.lower() not in NO_VALUES:
                said.setdefault(int(match["gpu"]), {}).setdefault(match["name"].lower(), value)
    return said


def xgmi_peers(text: str) -> dict[int, tuple[int, ...]]:
    """Return which GPUs each GPU reaches over XGMI, by number, as `--showtopo` says; not over how many links."""
    peers: dict[int, tuple[int, ...]] = {}
    columns: list[int] = []
    is_inside = False
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line.strip())
        if heading is not None:
            is_inside, columns = heading["title"] == _LINK_TYPES, []
            continue
        words = line.split()
        numbers = [int(match[1]) for word in words if (match := _GPU.fullmatch(word)) is not None]
        if is_inside and numbers and len(numbers) == len(words):
            columns = numbers
        elif is_inside and len(numbers) == 1 and len(words) == len(columns) + 1:
            row = zip(columns, words[1:], strict=True)
            peers[numbers[0]] = tuple(column for column, kind in row if kind == _XGMI and column != numbers[0])
    return peers
