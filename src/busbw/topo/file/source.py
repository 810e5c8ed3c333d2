"""The text of a file being read: places in it, and what is remarked about it."""

from bisect import bisect_right
from dataclasses import dataclass, field

from busbw.base.errors import InputError
from busbw.topo.file.document import Effect, Kind, Remark

# So many different faults are no topology file, and would fill memory.
_MOST_REMARKS = 500


@dataclass(slots=True)
class Source:
    """A file's bytes, one character each, as NCCL counts them."""

    text: str
    where: str
    _starts: list[int] = field(init=False)
    _remarks: dict[tuple[Kind, Effect, str], tuple[int, str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        starts = [0]
        while (end := self.text.find("\n", starts[-1])) >= 0:
            starts.append(end + 1)
        self._starts = starts

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, offset: int) -> int:
        """Return the line of an offset, from 1."""
        return self.place(offset)[0]

    def remark(self, kind: Kind, effect: Effect, offset: int, text: str, subject: str = "") -> None:
        """Note a fault; one of the same kind about the same thing is counted with the first."""
        key = (kind, effect, subject)
        first, said, count = self._remarks.get(key, (offset, text, 0))
        self._remarks[key] = (first, said, count + 1)
        if len(self._remarks) > _MOST_REMARKS:
            raise InputError(
                f"{self.where} has more than {_MOST_REMARKS} kinds of faults: it is no topology file of NCCL",
                where=f"{self.where}:{self.line(offset)}",
            )

    def remarks(self) -> tuple[Remark, ...]:
        """Return what was noted, in the order of the file."""
        found = []
        for (kind, effect, subject), (offset, text, count) in self._remarks.items():
            line, column = self.place(offset)
            found.append(
                Remark(
                    kind=kind, effect=effect, line=line, column=column, text=text, subject=shown(subject), count=count
                )
            )
        return tuple(sorted(found, key=lambda remark: (remark.line, remark.column)))

    def truncated(self, what: str, offset: int) -> InputError:
        """Return the error for a file that ends before `what`, begun at `offset`, does."""
        line, column = self.place(offset)
        return InputError(
            f"{self.where} ends inside {what} of line {line}: it is cut off, or its end is missing there",
            where=f"{self.where}:{line}:{column}",
            hint="copy the file again, or close the element",
        )


def shown(text: str) -> str:
    """Return bytes that stand one a character as the text they are; what is no UTF-8 is replaced."""
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "replace")
