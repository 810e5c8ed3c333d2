"""YAML and JSON as a tree with places: lists, mappings and texts, what templates put in left out."""

import re
from collections.abc import Iterator
from typing import Protocol

import msgspec

from busbw.env.reading.context import Ledger
from busbw.env.reading.spelled import FILLED, HOLE, Spelled, aligned, joined

# YAML as a tree with places: bounded, without tags; what an alias names is shared and never copied.
DEEPEST = 60
_MOST_NODES = 100_000
# What a template of Helm or Jinja puts in; the same number of characters stands for it, so that places stay.
_TEMPLATE = re.compile(r"\{\{[^{}\n]*\}\}|\{%[^{}\n]*%\}")
_TEMPLATE_LINE = re.compile(
    rf"^[ \t]*(?:(?:\{{\{{[^{{}}\n]*\}}\}}|\{{[%#][^{{}}\n]*[%#]\}}|{HOLE})[ \t]*)+$", re.MULTILINE
)
# `{{-` takes the blanks before it away, so that a backslash there ends its line.
_TEMPLATE_AT_END = re.compile(r"\\[ \t]+\{\{-[^{}\n]*\}\}(?=\r?$)", re.MULTILINE)
_STAND_IN = "\u00a4"
_STAND_INS = re.compile(_STAND_IN + "+")


class Scalar(msgspec.Struct):
    """One text. `is_plain`: written without quotes, so that it may be a number or a truth value."""

    spelled: Spelled
    start: int
    end: int
    is_plain: bool = False
    # False within a quoted text of a shell: its signs of escape are not of the value.
    is_whole: bool = True

    @property
    def written(self) -> tuple[int, int] | None:
        """From where to where it stands in the file with its quotes; None where something else is in between."""
        return (self.start, self.end) if self.is_whole else None


class Sequence(msgspec.Struct):
    """One list."""

    start: int
    items: "list[Node]"


class Mapping(msgspec.Struct):
    """One mapping, its pairs in the order of the file."""

    start: int
    pairs: "list[tuple[Scalar, Node]]"

    def get(self, key: str) -> "Node | None":
        """Return the first value of a key, in capitals or not; None where there is none."""
        return next((value for name, value in self.pairs if name.spelled.text.lower() == key.lower()), None)

    def scalar(self, key: str) -> "Scalar | None":
        """Return the value of a key where it is a text."""
        value = self.get(key)
        return value if isinstance(value, Scalar) else None


Node = Scalar | Sequence | Mapping


class _Mark(Protocol):
    index: int


class _Event(Protocol):
    """What this module uses of PyYAML's events, which differ by their class names."""

    start_mark: _Mark
    end_mark: _Mark
    anchor: str | None
    value: str
    style: str | None


def yaml_documents(piece: Spelled, ledger: Ledger) -> list[Node]:
    """Return the documents of a text, as far as they can be read; what cannot is taken down in the ledger."""
    import yaml  # noqa: PLC0415 - for manifests alone

    trimmed = _TEMPLATE_AT_END.sub(lambda found: " " * (len(found.group()) - 1) + "\\", piece.text)
    blanked = _without_templates(trimmed)
    # What a shell would have put in is not a character of YAML's.
    text = _TEMPLATE.sub(lambda found: _STAND_IN * len(found.group()), blanked).replace(HOLE, _STAND_IN)
    if blanked != piece.text:
        at = next(at for at, (one, other) in enumerate(zip(blanked, piece.text, strict=True)) if one != other)
        ledger.unread(piece.origin(at), "what a template puts here is not known")
    builder = _Builder(piece, text)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if not builder.take(event, type(event).__name__):
                ledger.unread(piece.origin(event.start_mark.index), builder.refusal)
                break
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = mark.index if mark is not None else int(getattr(error, "position", 0))
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "no YAML"
        ledger.unread(piece.origin(min(at, len(text))), f"no YAML from here on: {problem}")
    return builder.roots


def _without_templates(text: str) -> str:
    """Return a text with lines that hold nothing but templates as good as left out, at its length."""
    parts: list[str] = []
    done = 0
    continued = False
    for found in _TEMPLATE_LINE.finditer(text):
        line, start = found.group(), found.start()
        continued = text.endswith("\\\n", done, start) or (continued and start == done + 1)
        if continued:
            filling = " " * (len(line) - 1) + "\\"
        else:
            # Empty lines: one of many blanks would set the indent of a block.
            indent = len(line) - len(line.lstrip(" \t"))
            filling = line[:indent] + "\n" * (len(line) - indent)
        parts += (text[done:start], filling)
        done = found.end()
    return "".join((*parts, text[done:]))


class _Builder:
    """Puts events together, without recursion."""

    def __init__(self, piece: Spelled, text: str) -> None:
        self._piece = piece
        self._text = text
        self.roots: list[Node] = []
        self.refusal = ""
        self._open: list[Sequence | Mapping] = []
        # The key whose value comes next, for each mapping that is open.
        self._keys: list[Scalar | None] = []
        self._anchors: dict[str, Node] = {}
        self._nodes = 0

    def take(self, event: _Event, kind: str) -> bool:
        """Add one event; False where the document is too large or too deep."""
        if kind in {"SequenceEndEvent", "MappingEndEvent"}:
            self._open.pop()
            self._keys.pop()
        elif kind == "AliasEvent":
            self._add(self._anchors.get(event.anchor or "") or self._scalar(event, ""))
        elif kind == "ScalarEvent":
            self._named(event, self._scalar(event, event.value))
        elif kind in {"SequenceStartEvent", "MappingStartEvent"}:
            start = self._piece.origin(event.start_mark.index)
            opened = Sequence(start, []) if kind == "SequenceStartEvent" else Mapping(start, [])
            self._named(event, opened)
            self._open.append(opened)
            self._keys.append(None)
        elif kind == "DocumentStartEvent":
            self._anchors.clear()
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            self.refusal = f"more than {_MOST_NODES} nodes; the rest is not read"
        elif len(self._open) > DEEPEST:
            self.refusal = f"nested more than {DEEPEST} deep; the rest is not read"
        return not self.refusal

    def _named(self, event: _Event, node: Node) -> None:
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._add(node)

    def _add(self, node: Node) -> None:
        if not self._open:
            self.roots.append(node)
            return
        top = self._open[-1]
        if isinstance(top, Sequence):
            top.items.append(node)
            return
        key = self._keys[-1]
        if key is None:
            start = node.start
            self._keys[-1] = node if isinstance(node, Scalar) else Scalar(Spelled("", ((0, start),)), start, start)
        else:
            top.pairs.append((key, node))
            self._keys[-1] = None

    def _scalar(self, event: _Event, value: str) -> Scalar:
        start, end = event.start_mark.index, event.end_mark.index
        raw = self._text[start:end]
        style = getattr(event, "style", None)
        skipped = 1 if style in {"'", '"'} else 0
        inner = raw[skipped : len(raw) - skipped]
        at = start + skipped
        if inner == value:
            spelled = self._piece.part(at, at + len(value))
        else:
            first = raw.find("\n") + 1 if raw[:1] in {"|", ">"} else raw[:1] in {"'", '"'}
            spelled = aligned(value, raw, self._piece.part(start, end), first)
        if _STAND_IN in value:
            spelled = _filled(Spelled(value, spelled.runs))
        is_whole = len(self._piece.part(start, end).runs) == 1
        stop = self._piece.origin(max(end, start))
        return Scalar(spelled, self._piece.origin(start), stop, is_plain=style is None, is_whole=is_whole)


def _filled(spelled: Spelled) -> Spelled:
    parts: list[Spelled] = []
    done = 0
    for found in _STAND_INS.finditer(spelled.text):
        parts.append(spelled.part(done, found.start()))
        parts.append(Spelled(FILLED, ((0, spelled.origin(found.start())),)))
        done = found.end()
    parts.append(spelled.part(done))
    return joined(parts, at=spelled.origin(0))


def mappings(roots: list[Node]) -> Iterator[tuple[Mapping, int]]:
    """Yield every mapping once with the number of its document, outer before inner."""
    seen: set[int] = set()
    for number, root in enumerate(roots):
        waiting: list[Node] = [root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Scalar) or id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Mapping):
                yield node, number
                waiting += [value for _, value in reversed(node.pairs)]
            else:
                waiting += reversed(node.items)
