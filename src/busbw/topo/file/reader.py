"""NCCL topology files, from bytes to elements, with everything that NCCL's own reader would stumble on.

NCCL reads them with a small parser of its own (xmlGetNode and xmlLoadSub in src/graph/xml.cc), which is stricter than
XML in places and laxer in others. This one takes what that one takes, and reads on behind what it fails on, so that all
faults of a file are seen at once.
"""

import difflib
import re
from dataclasses import dataclass, field

from busbw.base.errors import InputError
from busbw.topo.file.document import (
    CHILDREN,
    MOST_CHILDREN,
    MOST_ELEMENT_NAME_BYTES,
    MOST_ELEMENTS,
    OLDER_MOST_CHILDREN,
    RCCL_CHILDREN,
    RCCL_VERSION,
    ROOT,
    VERSION,
    Attribute,
    Element,
    TopologyDocument,
    read_integer,
)
from busbw.topo.file.tags import SourceText, Tag, read_closing_tag, read_opening_tag, shown

MOST_BYTES = 8 * 2**20
_EXPORT = "have NCCL write one: NCCL_TOPO_DUMP_FILE=topo.xml"
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"<\x00", b"\x00<")
_HTML = re.compile(rb"(?:\xef\xbb\xbf)?<!doctype\s+html", re.IGNORECASE)
_OTHER_ROOTS = {
    "graphs": "a graph file (NCCL_GRAPH_FILE), not a topology file (NCCL_TOPO_FILE)",
    "topology": "what lstopo writes, not a topology file of NCCL",
    "nvidia_smi_log": "what nvidia-smi -q -x writes, not a topology file of NCCL",
    "html": "an HTML page, not a topology file of NCCL",
    "svg": "a picture, not a topology file of NCCL",
}


def check_form(raw: bytes, where: str) -> None:
    """Raise InputError when `raw` is too long, empty, compressed, binary or not XML."""
    what = _form(raw, raw.strip())
    if what is not None:
        raise InputError(f"{where} {what}", where=where, hint=_EXPORT)


def _form(raw: bytes, text: bytes) -> str | None:
    """Return what is wrong with a file as a whole, None for what may be XML."""
    compressed = next((name for magic, name in _COMPRESSED.items() if raw.startswith(magic)), None)
    checks = (
        (len(raw) > MOST_BYTES, f"is over {MOST_BYTES >> 20} MiB: no topology file is"),
        (not text, "is empty"),
        (compressed is not None, f"is compressed ({compressed}); NCCL reads plain text"),
        (raw.startswith(_WIDE), "is UTF-16 text; NCCL reads single bytes"),
        (b"\0" in raw, f"is a binary file: a zero byte at offset {raw.find(0)}"),
        (text[:1] in {b"{", b"["}, "is JSON, not a topology file of NCCL"),
        (_HTML.match(text) is not None, f"is {_OTHER_ROOTS['html']}"),
        (b"<!ENTITY" in raw, "defines entities; no topology file does, and none are expanded"),
        (b"<" not in text, "is not XML: it has no element"),
    )
    return next((what for holds, what in checks if holds), None)


def refuse_root(name: str, where: str) -> InputError:
    """Return the error for a file whose root element is none that NCCL reads."""
    other = _OTHER_ROOTS.get(name.lower())
    if other is not None:
        return InputError(f"{where} is {other}", where=where, hint=_EXPORT)
    shown = f"<{name[:40]}>" if name else "no element"
    return InputError(f"{where} holds {shown}, where a topology file of NCCL holds <system>", where=where, hint=_EXPORT)


# What a dump of a whole NVLink domain may hold; and as deep as NCCL's own limit on elements allows.
_MOST_READ = 65_536
_DEEPEST = MOST_ELEMENTS


@dataclass(slots=True)
class _OpenElement:
    name: str
    # The name that its closing tag repeats: not `name` where a root is spelled otherwise.
    written: str
    offset: int
    attributes: tuple[Attribute, ...]
    children: list[Element] = field(default_factory=list)


@dataclass(slots=True)
class Tree:
    """The elements that are open, and the root once it is closed."""

    source: SourceText
    root: Element | None = None
    _open: list[_OpenElement] = field(default_factory=list)
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
        self._open.append(_OpenElement(tag.name if self._open else ROOT, tag.name, tag.start, tag.attributes))
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
            self.source.remark("mismatched-tag", "fails", tag.start, text, inner[:40])
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


_BYTE_ORDER_MARK = "\xef\xbb\xbf"
# What NCCL passes between elements; it takes a tab for text.
_NCCL_SPACE = " \r\n"
_SPACE = " \r\n\t\f\v"
_TAB = re.compile(r"[\t\f\v]")
_FIRST_WORD = re.compile(r"[^ >/\r\n=]*")


def read_document(raw: bytes, where: str) -> TopologyDocument:
    """Return a topology file's elements and the remarks on it; `where` is how to name the file.

    Raises InputError for what is not a topology file at all, or is cut off: see busbw.topo.refusals.
    """
    check_form(raw, where)
    source = SourceText(raw.decode("latin-1"), where)
    tree = Tree(source)
    position = _pass_byte_order_mark(source)
    while True:
        start = source.text.find("<", position)
        _look_between(source, position, start if start >= 0 else len(source.text))
        if start < 0:
            break
        position = _read_markup(source, tree, start)
    return TopologyDocument(where=where, root=tree.end(), remarks=source.remarks())


def _pass_byte_order_mark(source: SourceText) -> int:
    if not source.text.startswith(_BYTE_ORDER_MARK):
        return 0
    source.remark("byte-order-mark", "fails", 0, "a byte order mark before the first element; NCCL takes it for text")
    return len(_BYTE_ORDER_MARK)


def _look_between(source: SourceText, start: int, end: int) -> None:
    """Remark what stands between two tags: NCCL takes spaces and line ends there, and nothing else."""
    between = source.text[start:end]
    if not between.strip(_NCCL_SPACE):
        return
    if between.strip(_SPACE):
        offset = start + len(between) - len(between.lstrip(_SPACE))
        source.remark("stray-text", "fails", offset, "text between elements; NCCL stops at it")
    else:
        tab = _TAB.search(between)
        assert tab is not None
        text = "a tab between elements; NCCL takes only spaces and line ends there"
        source.remark("tab-between-elements", "fails", start + tab.start(), text)


def _read_markup(source: SourceText, tree: Tree, start: int) -> int:
    """Read the tag, comment or declaration at `start` and return where it ends."""
    following = source.text[start + 1 : start + 4]
    if following == "!--":
        return _pass_comment(source, start)
    if following.startswith(("?", "!")):
        return _pass_declaration(source, start)
    if following.startswith("/"):
        tag = read_closing_tag(source, start)
        tree.close(tag)
    else:
        tag = read_opening_tag(source, start)
        tree.begin(tag)
    return tag.end


def _pass_comment(source: SourceText, start: int) -> int:
    """Return where a comment ends. NCCL reads its first word as if it were a name."""
    word = _FIRST_WORD.match(source.text, start + 1)
    assert word is not None
    if source.text[word.end() : word.end() + 1] == "=":
        text = (
            "`=` in the first word of a comment; NCCL takes the word for a name with a value: put a space behind <!--"
        )
        source.remark("comment-equals", "fails", start, text)
    if len(word[0]) > MOST_ELEMENT_NAME_BYTES:
        text = f"the first word of a comment has {len(word[0])} bytes; NCCL takes {MOST_ELEMENT_NAME_BYTES}"
        source.remark("comment-long-word", "fails", start, text)
    end = source.text.find("-->", start + 4)
    if end < 0:
        raise source.truncated("a comment", start)
    return end + 3


def _pass_declaration(source: SourceText, start: int) -> int:
    """Return where a declaration of XML ends. NCCL takes it for an element that is never closed."""
    text = source.text
    if text.startswith("<![CDATA[", start):
        end = text.find("]]>", start)
        source.remark("cdata", "fails", start, "a CDATA section; NCCL knows none")
    elif text.startswith("<?", start):
        end = text.find(">", start)
        is_prolog = text.startswith("<?xml", start)
        what = "an XML declaration, <?xml ...?>" if is_prolog else "an instruction, <? ...?>"
        message = f"{what}; NCCL takes it for an element without an end"
        source.remark("prolog" if is_prolog else "instruction", "fails", start, message)
    else:
        end = text.find(">", start)
        inner = text.find("[", start, max(end, start))
        if inner >= 0:
            closing = text.find("]", inner)
            end = text.find(">", closing) if closing >= 0 else -1
        source.remark("doctype", "fails", start, "a declaration, <!...>; NCCL takes it for an element without an end")
    if end < 0:
        raise source.truncated("a declaration", start)
    return end + 1 if not text.startswith("]]>", end) else end + 3
