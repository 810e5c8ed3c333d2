"""Reads makefiles, without running make: what they export, and recipes, each line of which is a shell's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from busbw.env.reading import commands
from busbw.env.reading.context import LONGEST_VALUE, Context
from busbw.env.reading.spelled import FILLED, Field, Spelled, joined
from busbw.model.settings import Arm

_SETTING = re.compile(
    r"(?P<before>(?:(?:export|override|private)[ \t]+)*)(?P<name>[A-Za-z_][\w.-]*)[ \t]*"
    r"(?P<sign>(?:::?:?|[?+!])?=)[ \t]*",
    re.ASCII,
)
_TARGET = re.compile(r"(?P<names>[^\s:=#][^:=#]*?)[ \t]*(?:::|&:|:)(?!=)[ \t]*", re.ASCII)
_EXPORT = re.compile(r"(?P<word>export|unexport)(?:[ \t]+(?P<names>[^=]*))?$", re.ASCII)
_BRANCH = re.compile(r"[ \t]*(?P<word>ifeq|ifneq|ifdef|ifndef|else|endif)\b", re.ASCII)
_INCLUDE = re.compile(r"[ \t]*[-s]?include[ \t]+(?P<files>\S.*)", re.ASCII)
_REFERENCE = re.compile(r"\$(?:\$|\((?P<round>[\w.-]+)\)|\{(?P<curly>[\w.-]+)\}|(?P<one>\w))", re.ASCII)
_ALL = ".EXPORT_ALL_VARIABLES"
_ONLY_EXPORTS = re.compile(r"[@+\s-]*export[ \t]+(?P<name>\w+)=[^;&|]*")
# References within references; more, and the value counts as not known.
_DEEPEST = 8
_MOST_LINES = 50_000


@dataclass(slots=True)
class _Makefile:
    """What is known of the variables of one makefile."""

    variables: dict[str, Spelled] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    exports_all: bool = False

    def expanded(self, piece: Spelled, depth: int = 0) -> Spelled:
        """Return a text with its references replaced; what a function or the command line gives is not known."""
        parts: list[Spelled] = []
        at = length = 0
        while (place := piece.text.find("$", at)) >= 0 and length <= LONGEST_VALUE:
            parts.append(piece.part(at, place))
            part, at = self._reference(piece, place, depth)
            parts.append(part)
            length += len(part.text)
        return joined([*parts, piece.part(at)], at=piece.origin(0))

    def _reference(self, piece: Spelled, place: int, depth: int) -> tuple[Spelled, int]:
        """Return what stands for the reference at a place, and where the text goes on."""
        origin = ((0, piece.origin(place)),)
        found = _REFERENCE.match(piece.text, place)
        if found is None:
            return Spelled(FILLED, origin), _behind(piece.text, place)
        if found[0] == "$$":
            return Spelled("$", origin), found.end()
        value = self.variables.get(found["round"] or found["curly"] or found["one"])
        if value is None or depth >= _DEEPEST:
            return Spelled(FILLED, origin), found.end()
        known = self.expanded(value, depth + 1)
        return (known if len(known.text) <= LONGEST_VALUE else Spelled(FILLED, origin)), found.end()


def _behind(text: str, place: int) -> int:
    """Return where a function of make that begins at a dollar ends: `$(shell hostname)`."""
    opening = text[place + 1 : place + 2]
    closing = {"(": ")", "{": "}"}.get(opening)
    if closing is None:
        return min(place + 2, len(text))
    depth = 0
    for at in range(place + 1, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return at + 1
    return len(text)


def read_makefile(piece: Spelled, context: Context) -> None:
    """Take down what a makefile exports, and what its recipes set and start."""
    lines = list(_lines(piece))
    makefile = _Makefile()
    for _is_recipe, line in lines:
        found = _EXPORT.match(line.text.split("#")[0].strip())
        if found is not None and found["word"] == "export":
            makefile.exported.update((found["names"] or "").split())
            makefile.exports_all = makefile.exports_all or not found["names"]
        makefile.exports_all = makefile.exports_all or line.text.startswith(_ALL)
    _Statements(context, makefile).read(lines)


def _lines(piece: Spelled) -> Iterator[tuple[bool, Spelled]]:
    """Yield the lines, those that a backslash joins as one, and whether each is of a recipe."""
    at, text = 0, piece.text
    for _count in range(_MOST_LINES):
        if at >= len(text):
            return
        start, parts = at, list[Spelled]()
        is_recipe = text[at] == "\t"
        while True:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            # In a recipe the shell sees the backslash and the end of the line itself.
            goes_on = text[at:end].rstrip("\r").endswith("\\") and end < len(text)
            stop = end - (text[end - 1 : end] == "\r") - (goes_on and not is_recipe)
            parts.append(piece.part(at, max(at, stop)))
            at = end + 1
            if not goes_on:
                break
            parts.append(piece.part(end, end + 1) if is_recipe else Spelled(" ", ((0, piece.origin(end)),)))
        yield is_recipe, joined(parts, at=piece.origin(start))


class _Statements:
    """Goes through the lines of a makefile."""

    def __init__(self, context: Context, makefile: _Makefile) -> None:
        self._context = context
        self._makefile = makefile
        # The number of each conditional that is open, and the way through it.
        self._branches: list[Arm] = []
        # Recipes and settings of one target say nothing of another's: each is a way of its own.
        self._of_targets = self._construct()
        self._targets: dict[str, int] = {}
        self._target: str | None = None
        self._in_define = False

    def read(self, lines: list[tuple[bool, Spelled]]) -> None:
        """Take down everything in them."""
        for is_recipe, line in lines:
            text = line.text
            if self._in_define or text.startswith(("define ", "define\t")):
                self._in_define = not text.startswith("endef")
            elif (branch := _BRANCH.match(text)) is not None and not is_recipe:
                self._branch(branch["word"])
            elif is_recipe and self._target is not None:
                self._recipe(line.part(1))
            elif text.strip() and not text.lstrip().startswith("#"):
                self._statement(line.part(len(text) - len(text.lstrip())))

    def _construct(self) -> int:
        number, self._context.constructs = self._context.constructs, self._context.constructs + 1
        return number

    def _branch(self, word: str) -> None:
        if word == "endif":
            self._branches[-1:] = []
        elif word == "else" and self._branches:
            last = self._branches[-1]
            self._branches[-1] = Arm(construct=last.construct, arm=last.arm + 1)
        elif word != "else" and len(self._branches) < _DEEPEST:
            self._branches.append(Arm(construct=self._construct(), arm=0))

    def _statement(self, line: Spelled) -> None:
        included = _INCLUDE.match(line.text)
        if included is not None:
            self._context.ledger.unread(line.origin(0), f"what is included is not read: {included['files'][:80]}")
            return
        setting = _SETTING.match(line.text)
        if setting is not None:
            self._set(line, setting, None)
            return
        target = _TARGET.match(line.text)
        if target is None:
            return
        self._target = target["names"]
        own = line.part(target.end())
        setting = _SETTING.match(own.text)
        if setting is not None:
            self._set(own, setting, self._target)

    def _set(self, line: Spelled, setting: re.Match[str], target: str | None) -> None:
        """Take one setting down; what follows a `#` is a remark, and quotes are part of the value."""
        name, sign = setting["name"], setting["sign"]
        raw = line.text[setting.end() :]
        value = line.part(setting.end(), setting.end() + len(re.split(r"(?<!\\)#", raw)[0].rstrip()))
        if target is None and sign != "!=":
            before = self._makefile.variables.get(name)
            if sign == "+=" and before is not None:
                value = joined([before, Spelled(" ", ((0, value.origin(0)),)), value])
            if sign != "?=" or before is None:
                self._makefile.variables[name] = value
        known = Spelled(FILLED, ((0, value.origin(0)),)) if sign == "!=" else self._makefile.expanded(value)
        is_exported = "export" in setting["before"] or name in self._makefile.exported or self._makefile.exports_all
        written = (value.origin(0), value.end()) if len(value.runs) == 1 else None
        at = line.origin(setting.start("name"))
        with_arms, self._context.arms = self._context.arms, self._arms(target)
        self._context.put(name, known, "export" if is_exported else "shell", at=at, written=written)
        self._context.arms = with_arms

    def _arms(self, target: str | None) -> tuple[Arm, ...]:
        if target is None:
            return tuple(self._branches)
        number = self._targets.setdefault(target, len(self._targets))
        return (*self._branches, Arm(construct=self._of_targets, arm=number))

    def _recipe(self, line: Spelled) -> None:
        """Read one line of a recipe: make takes a mark at its beginning for itself, and a shell gets the rest."""
        bare = line.text.lstrip("@+- \t")
        text = self._makefile.expanded(line.part(len(line.text) - len(bare)))
        if not bare.strip() or bare.startswith("#"):
            return
        whole = Field(line, line.origin(0), line.end(), is_whole=True)
        before, self._context.arms = self._context.arms, self._arms(self._target)
        number = commands.other([whole], self._context, family="recipe")
        self._context.read("shell", text, self._context.inner(launch=number))
        self._context.arms = before
        only = _ONLY_EXPORTS.fullmatch(line.text)
        if only is not None:
            self._context.ledger.slip("not_shown", line.origin(0), line.text.strip(), name=only["name"])
