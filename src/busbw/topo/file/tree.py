"""The tree of a topology file while it is read: what NCCL or RCCL keeps, and what NCCL passes by or fails on."""

import difflib
from dataclasses import dataclass, field

from busbw.base.errors import InputError
from busbw.topo.file.document import Attribute, Element
from busbw.topo.file.elements import (
    CHILDREN,
    MOST_CHILDREN,
    MOST_ELEMENTS,
    OLDER_MOST_CHILDREN,
    RCCL_CHILDREN,
    RCCL_VERSION,
    ROOT,
    VERSION,
)
from busbw.topo.file.numerals import read_integer
from busbw.topo.file.refusals import refuse_root
from busbw.topo.file.source import Source, shown
from busbw.topo.file.tags import Tag

# What a dump of a whole NVLink domain may hold; and as deep as NCCL's own limit on elements allows.
_MOST_READ = 65_536
_DEEPEST = MOST_ELEMENTS


@dataclass(slots=True)
class _Open:
    name: str
    # The name that its closing tag repeats: not `name` where a root is spelled otherwise.
    written: str
    offset: int
    attributes: tuple[Attribute, ...]
    children: list[Element] = field(default_factory=list)


@dataclass(slots=True)
class Tree:
    """The elements that are open, and the root once it is closed."""

    source: Source
    root: Element | None = None
    _open: list[_Open] = field(default_factory=list)
    # Names of open elements that NCCL ignores, and with them all they hold.
    _ignored: list[str] = field(default_factory=list)
    _count: int = 0

    def begin(self, tag: Tag) -> None:
        """Take an opening tag. Raises InputError for a root that is none of NCCL's, and for too large a tree."""
        if self._ignored or not self._is_kept(tag):
            if not tag.single:
                self._ignored.append(tag.name)
            return
        self._count_element(tag)
        self._open.append(_Open(tag.name if self._open else ROOT, tag.name, tag.start, tag.attributes))
        if tag.single:
            self._finish()

    def close(self, tag: Tag) -> None:
        """Take a closing tag."""
        names = [element.written for element in self._open]
        if self._ignored and (self._ignored[-1] == tag.name or tag.name not in names):
            # NCCL does not compare the names here.
            self._ignored.pop()
        elif tag.name == ROOT and len(names) == 1:
            # A root of another name is ignored, and with it what its end is called.
            self._finish()
        elif not names or (tag.name in CHILDREN and tag.name not in names and tag.name != ROOT):
            text = f"</{shown(tag.name[:40])}> closes nothing that is open"
            self.source.remark("stray-closing-tag", "fails", tag.start, text, tag.name[:40])
        else:
            self._close_to(tag, names)

    def end(self) -> Element:
        """Return the root. Raises InputError when the file ended inside of it, or held none."""
        if self._open or self._ignored:
            name = self._open[-1].name if self._open else shown(self._ignored[-1][:40])
            raise self.source.truncated(f"<{name}>", self._open[-1].offset if self._open else 0)
        if self.root is None:
            raise refuse_root("", self.source.where)
        return self.root

    def _is_kept(self, tag: Tag) -> bool:
        """Return whether NCCL or RCCL keeps this element; say why NCCL does not."""
        name = shown(tag.name[:40])
        if not self._open:
            return self._is_root(tag, name)
        parent = self._open[-1].name
        if tag.name in CHILDREN.get(parent, ()):
            return True
        if tag.name in CHILDREN:
            text = f"<{name}> does not belong into <{parent}>; NCCL ignores it and all it holds"
            self.source.remark("misplaced-element", "ignores", tag.start, text, tag.name)
        else:
            near = difflib.get_close_matches(name, CHILDREN.get(parent, ()), n=1)
            maybe = f"; maybe <{near[0]}>" if near else ""
            text = f"NCCL knows no element <{name}>: it ignores it and all it holds{maybe}"
            self.source.remark("unknown-element", "ignores", tag.start, text, tag.name[:40])
        return tag.name in RCCL_CHILDREN.get(parent, ())

    def _is_root(self, tag: Tag, name: str) -> bool:
        if self.root is not None:
            text = f"<{name}> after the end of <{ROOT}>; NCCL uses the first <{ROOT}> only"
            self.source.remark("second-root", "ignores", tag.start, text)
            return False
        if tag.name != ROOT:
            if not difflib.get_close_matches(tag.name[:40].lower(), [ROOT], cutoff=0.8):
                raise refuse_root(name, self.source.where)
            text = f"the root is <{name}>; NCCL knows <{ROOT}> and ignores the whole file"
            self.source.remark("root-name", "ignores", tag.start, text)
        version = next((attribute.value for attribute in tag.attributes if attribute.name == "version"), None)
        if version is None:
            text = f'<{ROOT}> has no version; NCCL wants version="{VERSION}"'
            self.source.remark("version-missing", "fails", tag.start, text)
        elif read_integer(version) != VERSION:
            whose = " (2 is what RCCL writes, AMD's variant)" if read_integer(version) == RCCL_VERSION else ""
            text = f'<{ROOT}> has version="{version[:40]}"{whose}; NCCL wants version="{VERSION}"'
            self.source.remark("version-wrong", "fails", tag.start, text)
        return True

    def _count_element(self, tag: Tag) -> None:
        self._count += 1
        if self._count > _MOST_READ or len(self._open) >= _DEEPEST:
            size = f"more than {_MOST_READ} elements" if self._count > _MOST_READ else f"elements over {_DEEPEST} deep"
            where = f"{self.source.where}:{self.source.line(tag.start)}"
            raise InputError(
                f"{self.source.where} has {size}: no node has, and NCCL takes {MOST_ELEMENTS}", where=where
            )
        if self._count == MOST_ELEMENTS + 1:
            text = f"more than {MOST_ELEMENTS} elements; NCCL stops there"
            self.source.remark("too-many-elements", "fails", tag.start, text)
        siblings = len(self._open[-1].children) + 1 if self._open else 1
        if siblings == MOST_CHILDREN + 1:
            text = f"more than {MOST_CHILDREN} children of <{self._open[-1].name}>; NCCL stops there"
            self.source.remark("too-many-children", "fails", tag.start, text)
        for most, version in OLDER_MOST_CHILDREN:
            if siblings == most + 1:
                text = f"more than {most} children of <{self._open[-1].name}>; NCCL up to {version} stops there"
                self.source.remark("too-many-children", "fails-older", tag.start, text, version)

    def _close_to(self, tag: Tag, names: list[str]) -> None:
        """Close what the tag names; what is open inside of it lacks its own closing tag."""
        inner = self._ignored[-1] if self._ignored else names[-1]
        if inner != tag.name or self._ignored:
            line = self.source.line(self._open[-1].offset)
            whose = f"of line {line} " if not self._ignored else ""
            text = f"</{shown(tag.name[:40])}> where <{shown(inner[:40])}> {whose}is open"
            self.source.remark("mismatched-tag", "fails", tag.start, text, tag.name[:40])
        self._ignored.clear()
        target = len(names) - 1 - names[::-1].index(tag.name) if tag.name in names else len(names) - 1
        while len(self._open) > target:
            self._finish()

    def _finish(self) -> None:
        done = self._open.pop()
        line, column = self.source.place(done.offset)
        element = Element(
            name=done.name, line=line, column=column, attributes=done.attributes, children=tuple(done.children)
        )
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
