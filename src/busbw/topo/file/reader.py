"""NCCL topology files, from bytes to elements, with everything that NCCL's own reader would stumble on.

NCCL reads them with a small parser of its own (xmlGetNode and xmlLoadSub in src/graph/xml.cc), which is stricter than
XML in places and laxer in others. This one takes what that one takes, and reads on behind what it fails on, so that all
faults of a file are seen at once.
"""

import re

from busbw.topo.file.document import Document
from busbw.topo.file.elements import MOST_ELEMENT_NAME_BYTES
from busbw.topo.file.refusals import check_form
from busbw.topo.file.source import Source
from busbw.topo.file.tags import read_closing_tag, read_opening_tag
from busbw.topo.file.tree import Tree

_BYTE_ORDER_MARK = "\xef\xbb\xbf"
# What NCCL passes between elements; it takes a tab for text.
_NCCL_SPACE = " \r\n"
_SPACE = " \r\n\t\f\v"
_TAB = re.compile(r"[\t\f\v]")
_FIRST_WORD = re.compile(r"[^ >/\r\n=]*")


def read_document(raw: bytes, where: str) -> Document:
    """Return a topology file's elements and the remarks on it; `where` is how to name the file.

    Raises InputError for what is no topology file at all, or is cut off: see busbw.topo.refusals.
    """
    check_form(raw, where)
    source = Source(raw.decode("latin-1"), where)
    tree = Tree(source)
    position = _pass_byte_order_mark(source)
    while True:
        start = source.text.find("<", position)
        _look_between(source, position, start if start >= 0 else len(source.text))
        if start < 0:
            break
        position = _read_markup(source, tree, start)
    return Document(where=where, root=tree.end(), remarks=source.remarks())


def _pass_byte_order_mark(source: Source) -> int:
    if not source.text.startswith(_BYTE_ORDER_MARK):
        return 0
    source.remark("byte-order-mark", "fails", 0, "a byte order mark before the first element; NCCL takes it for text")
    return len(_BYTE_ORDER_MARK)


def _look_between(source: Source, start: int, end: int) -> None:
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


def _read_markup(source: Source, tree: Tree, start: int) -> int:
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


def _pass_comment(source: Source, start: int) -> int:
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


def _pass_declaration(source: Source, start: int) -> int:
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
