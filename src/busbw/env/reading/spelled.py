"""Text that knows, for each of its characters, where in the file it was written; an argument is such a text."""

import re
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


# How far behind one stretch of a value the next is looked for: indents, escapes and empty lines are between.
_NEAR = 400
# What stands in a file as it stands in the value; what an escape may stand for is looked for by itself.
_STRETCH = re.compile(r"[^\s\"'\\]+|.", re.DOTALL)


def aligned(value: str, raw: str, places: Spelled, at: int) -> Spelled:
    """Return a value with the places of its characters in what is written, which has more: indents, escapes, quotes.

    `places`: where the characters of `raw` stand; `at`: from where on in `raw` the value is looked for.
    """
    parts: list[Spelled] = []
    for found in _STRETCH.finditer(value):
        stretch = found.group()
        # White space may be written as another, and as an escape; all else is found a little further on.
        place = -1 if stretch.isspace() else raw.find(stretch, at, at + _NEAR + len(stretch))
        place = min(at, max(len(raw) - 1, 0)) if place < 0 else place
        parts.append(Spelled(stretch, ((0, places.origin(min(place, len(raw)))),)))
        at = place + (len(stretch) if not stretch.isspace() else raw[place : place + 1].isspace())
    return joined(parts, at=places.origin(0))


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


# A text, or the texts of a list.
Value = Spelled | tuple[Spelled, ...]
LONGEST_TEXT = 65_536
_MOST_ITEMS = 1_000


def added(values: list[Value | None], at: int) -> Value | None:
    """Return texts, or lists, one behind the other; None where nothing of it is known, and where it becomes too long.

    What is not known stands for any number of words in a list, and for a part of one in a text.
    """
    if all(value is None for value in values):
        return None
    if any(isinstance(value, tuple) for value in values):
        items: list[Spelled] = []
        for value in values:
            items += value if isinstance(value, tuple) else [Spelled(HOLE, ((0, at),))]
        return tuple(items[:_MOST_ITEMS])
    texts = [value if isinstance(value, Spelled) else Spelled(FILLED, ((0, at),)) for value in values]
    whole = joined(texts, at=at)
    return whole if len(whole.text) <= LONGEST_TEXT else None


def separated(items: tuple[Spelled, ...], sign: Spelled) -> Iterable[Spelled]:
    """Yield texts with a sign between each two, which stands where the second does."""
    for at, item in enumerate(items):
        if at:
            yield Spelled(sign.text, ((0, item.origin(0)),))
        yield item


def words_of(text: Spelled) -> tuple[Spelled, ...]:
    """Return what stands between blanks."""
    return tuple(text.part(found.start(), found.end()) for found in re.finditer(r"\S+", text.text))[:_MOST_ITEMS]


def merged(before: dict[str, Value | None], ends: list[dict[str, Value | None]]) -> dict[str, Value | None]:
    """Return what names hold after one of several ways; what each of them adds to a text or a list is kept."""
    merged: dict[str, Value | None] = {}
    for name in dict.fromkeys(name for end in ends for name in end):
        held = [end.get(name) for end in ends]
        first = before.get(name)
        if all(value == held[0] for value in held):
            merged[name] = held[0]
        elif first is not None and all(_adds_to(first, value) for value in held):
            merged[name] = _with_all(first, [value for value in held if value is not None])
        else:
            merged[name] = None
    return merged


def _adds_to(first: Value, value: Value | None) -> bool:
    if isinstance(first, Spelled):
        return isinstance(value, Spelled) and value.text.startswith(first.text)
    return isinstance(value, tuple) and value[: len(first)] == first


def _with_all(first: Value, ends: list[Value]) -> Value:
    if isinstance(first, Spelled):
        return joined([first, *(end.part(len(first.text)) for end in ends if isinstance(end, Spelled))])
    return (*first, *(item for end in ends if isinstance(end, tuple) for item in end[len(first) :]))
