"""A snapshot, found by path and by name."""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from busbw.base.cpus import parse_cpu_list
from busbw.model.host import Answer, Snapshot

# No machine has more; a longer list or answer is damage or an attack, and costs memory.
_MOST_CPUS = 8192
_MOST_CHARACTERS = 4 * 2**20
_LONGEST_LIST = 2**16
_RANGE = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")
_BUS_ID = re.compile(r"(?P<domain>[0-9a-fA-F]{4,8}):(?P<rest>[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])")


class SnapshotIndex:
    """What a snapshot holds, for the readers: texts without the spaces around them, None for what is not there."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._texts = {file.path: file.text for file in snapshot.files}
        self._links = {link.path: link.target for link in snapshot.links}
        self._answers = {answer.name: answer for answer in snapshot.answers}

    @cached_property
    def _names(self) -> dict[str, set[str]]:
        """Folders, each with the names in it."""
        found: dict[str, set[str]] = {}
        for path in (*self._texts, *self._links):
            folder, _slash, name = path.rpartition("/")
            while folder and name not in found.setdefault(folder, set()):
                found[folder].add(name)
                folder, _slash, name = folder.rpartition("/")
        return found

    @cached_property
    def refused(self) -> tuple[str, ...]:
        """Return the files that this user may not read."""
        return tuple(file.path for file in self._snapshot.files if file.reason == "permission denied")

    def names(self, folder: str) -> tuple[str, ...]:
        """Return the names in a folder, in the order of their letters and numbers."""
        return tuple(sorted(self._names.get(folder, ()), key=natural))

    def text(self, path: str) -> str | None:
        """Return a file's text; None also where it is empty."""
        text = self._texts.get(path)
        return (text.strip() or None) if text is not None else None

    def number(self, path: str) -> int | None:
        """Return the decimal number in a file; None for anything else."""
        return number(self.text(path))

    def link(self, path: str) -> str | None:
        """Return what a link points to."""
        return self._links.get(path)

    def has(self, folder: str) -> bool:
        """Whether anything below a folder was captured."""
        return folder in self._names

    def answer(self, name: str) -> Answer | None:
        """Return what a command said, when it was asked."""
        return self._answers.get(name)

    def output(self, name: str) -> str:
        """Return the output of a command that ended well, else ""."""
        answer = self._answers.get(name)
        return answer.output[:_MOST_CHARACTERS] if answer is not None and answer.ended == "ok" else ""

    def said(self, name: str) -> str:
        """Return the output of a command that ended by itself, well or not, else "".

        For programs that say everything and then end with the code of a warning, as nvidia-smi does with 14 where an
        infoROM is corrupt, and those that leave one broken device out.
        """
        answer = self._answers.get(name)
        return answer.output[:_MOST_CHARACTERS] if answer is not None and answer.ended in ("ok", "failed") else ""


# Every function of a socket has the same list.
@lru_cache(maxsize=256)
def cpu_list(text: str | None, most: int = _MOST_CPUS) -> tuple[int, ...]:
    """Return the CPUs of a kernel list, ascending; () for none, for what is not a list, and for more than `most`."""
    text = (text or "")[:_LONGEST_LIST]
    wide = sum(int(last) - int(first) for first, last in _RANGE.findall(text))
    cpus = parse_cpu_list(text) if wide <= most and text.count(",") <= most else None
    return cpus if cpus is not None and len(cpus) <= most else ()


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return what sorts mlx5_2 before mlx5_10."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]{1,200}|[0-9]+", name[:1000])
    return tuple((0, int(part), "") if part.isdecimal() and len(part) <= 18 else (1, 0, part) for part in parts)


def number(text: str | None) -> int | None:
    """Return a decimal number of at most 18 digits, with a sign; None for anything else."""
    if text is None or re.fullmatch(r"[+-]?[0-9]{1,18}", text.strip()) is None:
        return None
    return int(text)


def first_number(text: str | None) -> int | None:
    """Return the number that a text such as `143771 MiB` or `16x` begins with."""
    match = re.match(r"\s*([0-9]{1,18})", text or "")
    return int(match[1]) if match is not None else None


def bus_id(text: str) -> str | None:
    """Return a PCI address as the kernel spells it: `00000000:0F:00.0` is `0000:0f:00.0`; None for anything else."""
    match = _BUS_ID.fullmatch(text.strip())
    return f"{int(match['domain'], 16):04x}:{match['rest'].lower()}" if match is not None else None


def last_bus_id(path: str | None) -> str | None:
    """Return the last PCI address among the parts of a path, which is the device that its end belongs to."""
    return next(bus_ids(path), None)


def bus_ids(path: str | None) -> Iterator[str]:
    """Yield the PCI addresses among the parts of a path, the last first."""
    for part in reversed((path or "")[:4096].split("/")):
        found = bus_id(part)
        if found is not None:
            yield found


def fields(text: str, separator: str = ":") -> dict[str, str]:
    """Return lines of `name: value`; of a name that comes twice the first."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, mark, value = line.partition(separator)
        if mark:
            found.setdefault(name.strip(), value.strip())
    return found
