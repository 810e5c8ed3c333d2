"""Text that knows, for each of its characters, where in the file it was written; an argument is such a text."""

from bisect import bisect_right
from collections.abc import Iterable

import msgspec

# Stand for what is not known here: HOLE for any number of words, or none; FILLED for a part of one word.
HOLE = "\uffff"
FILLED = "\ufffe"


# Without `gc`: there are hundreds of thousands of them, and they hold text and numbers alone.
class Spelled(msgspec.Struct, frozen=True, gc=False):
    """A text and, run by run, the offset in the file that its characters come from."""

    text: str
    # (index in `text`, offset in the file) of each run, in order; the first index is 0.
    runs: tuple[tuple[int, int], ...] = ((0, 0),)

    def origin(self, index: int) -> int:
        """Return the offset in the file of the character at `index`; of the end for the length of the text."""
        runs = self.runs
        # Nearly all texts are of one run; a script has a hundred thousand of them.
        start, offset = runs[0] if len(runs) == 1 else runs[bisect_right(runs, index, key=_start) - 1]
        return offset + index - start

    def end(self) -> int:
        """Return the offset behind the last character."""
        if len(self.runs) == 1:
            return self.runs[0][1] + len(self.text)
        return self.origin(len(self.text) - 1) + 1 if self.text else self.origin(0)

    def part(self, start: int, stop: int | None = None) -> "Spelled":
        """Return the characters from `start` up to `stop`, as a slice has them."""
        if len(self.runs) == 1:
            return Spelled(self.text[start:stop], ((0, self.runs[0][1] + start),))
        stop = len(self.text) if stop is None else min(stop, len(self.text))
        first = bisect_right(self.runs, start, key=_start) - 1
        last = max(first + 1, bisect_right(self.runs, max(start, stop - 1), key=_start))
        runs = [(0, self.origin(start))]
        runs += [(index - start, offset) for index, offset in self.runs[first + 1 : last]]
        return Spelled(self.text[start:stop], tuple(runs))

    @property
    def is_known(self) -> bool:
        """Whether no part of it is unknown."""
        return HOLE not in self.text and FILLED not in self.text


def _start(run: tuple[int, int]) -> int:
    return run[0]


def joined(parts: Iterable[Spelled], *, at: int = 0) -> Spelled:
    """Return the parts as one text; one without parts stands at the offset `at`."""
    texts: list[str] = []
    runs: list[tuple[int, int]] = []
    length = 0
    for part in parts:
        if not part.text:
            continue
        for start, offset in part.runs:
            follows = runs and runs[-1][1] + length + start - runs[-1][0] == offset
            if not follows:
                runs.append((length + start, offset))
        texts.append(part.text)
        length += len(part.text)
    return Spelled("".join(texts), tuple(runs) or ((0, at),))


class Field(msgspec.Struct, frozen=True, gc=False):
    """One argument. Offsets are in the file: where it is written, the second behind its last character."""

    spelled: Spelled
    start: int
    end: int
    # Whether some of it was quoted, and whether it is a whole word of the script and no part of a variable's value.
    is_quoted: bool = False
    is_whole: bool = False

    @property
    def text(self) -> str:
        """The argument; HOLE and FILLED stand for what is not known."""
        return self.spelled.text

    @property
    def is_open(self) -> bool:
        """Whether it stands for any number of arguments that are not known."""
        return self.text == HOLE

    def behind(self, length: int) -> "Field":
        """Return what follows the first characters, such as the value behind `--env=`."""
        spelled = self.spelled.part(length)
        return Field(spelled, spelled.origin(0), self.end, self.is_quoted, self.is_whole)
