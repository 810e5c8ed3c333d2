"""One tag, read as NCCL's parser reads it and past what that parser fails on."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from busbw.base.errors import InputError
from busbw.topo.file.document import (
    ATTRIBUTES,
    MOST_ATTRIBUTE_NAME_BYTES,
    MOST_ATTRIBUTES,
    MOST_ELEMENT_NAME_BYTES,
    MOST_VALUE_BYTES,
    Attribute,
    Effect,
    Kind,
    Remark,
)

# So many different faults are no topology file, and would fill memory.
_MOST_REMARKS = 500


@dataclass(slots=True)
class SourceText:
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
                f"{self.where} has more than {_MOST_REMARKS} kinds of faults: it is not a topology file of NCCL",
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


_SPACE = re.compile(r"[ \t\r\n\f\v]*")
_NAME = re.compile(r"[^ \t\r\n\f\v/>=<\"']*")
# After a space NCCL takes quotes for part of a name.
_ATTRIBUTE_NAME = re.compile(r"[^ \t\r\n\f\v/>=<]*")
_BARE_VALUE = re.compile(r"[^ \t\r\n/>]*")
# Between the slash and the end NCCL takes, and drops, one word.
_SINGLE_END = re.compile(r"/[^ >/\r\n=<]{0,252}>")
_ENTITY = re.compile(r"&(?:#?[0-9A-Za-z]{1,32});")
# A tag as NCCL itself writes it: nothing in it needs a remark, but for what names and values say.
_PLAIN_TAG = re.compile(r"""<([a-z0-9]+)((?: [a-z_]+="[ !#-%'-;=?-~]*")*)(/?)>""")
_PLAIN_ATTRIBUTE = re.compile(r"""([a-z_]+)="([^"]*)\"""")


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag: `<name ...>`, `<name ... />` or `</name>`, from `start` to before `end`."""

    name: str
    start: int
    end: int
    attributes: tuple[Attribute, ...] = ()
    # Whether it ends its element at once.
    single: bool = False


@dataclass(slots=True)
class _Opening:
    """An opening tag as far as it has been read."""

    source: SourceText
    name: str
    start: int
    position: int
    attributes: list[Attribute] = field(default_factory=list)
    # Of NCCL's places for attributes; every space too many takes one.
    taken: int = 0
    # Whether a tab stands before the next name: NCCL takes it for part of the name.
    tabbed: bool = False


def read_closing_tag(source: SourceText, start: int) -> Tag:
    """Return the closing tag at `start`. Raises InputError when the file ends in it."""
    name = _NAME.match(source.text, start + 2)
    assert name is not None
    position = name.end()
    end = min((at for at in (source.text.find(">", position), source.text.find("<", position)) if at >= 0), default=-1)
    if end < 0:
        raise source.truncated("a closing tag", start)
    if source.text[end] == "<":
        source.remark("tag-not-closed", "fails", start, f"</{shown(name[0])} has no `>`", name[0])
        return Tag(name[0], start, end)
    if end > position:
        text = f"`>` does not follow </{shown(name[0])} at once; NCCL takes no space there"
        source.remark("space-in-closing-tag", "fails", position, text)
    return Tag(name[0], start, end + 1)


def read_opening_tag(source: SourceText, start: int) -> Tag:
    """Return the tag at `start` with the attributes NCCL keeps. Raises InputError when the file ends in it."""
    if plain := _plain_tag(source, start):
        return plain
    match = _NAME.match(source.text, start + 1)
    assert match is not None
    if len(match[0]) > MOST_ELEMENT_NAME_BYTES:
        text = f"the name of this element has {len(match[0])} bytes; NCCL takes {MOST_ELEMENT_NAME_BYTES}"
        source.remark("name-too-long", "fails", start, text)
    opening = _Opening(source, match[0], start, match.end())
    while True:
        _pass_space(opening)
        character = source.text[opening.position : opening.position + 1]
        if not character:
            raise source.truncated(f"the tag <{shown(opening.name[:40])}", start)
        if character == ">":
            return _ended(opening, opening.position + 1)
        if single := _SINGLE_END.match(source.text, opening.position):
            return _ended(opening, single.end(), single=True)
        if character == "<" and not source.text.startswith("<!--", opening.position):
            if source.text[opening.position - 1] != " ":
                text = f"<{shown(opening.name[:40])} has no `>` before the next tag begins"
                source.remark("tag-not-closed", "fails", start, text, opening.name[:40])
                return _ended(opening, opening.position)
            _pass_tag_inside(opening)
        else:
            _read_next(opening, character)


def _plain_tag(source: SourceText, start: int) -> Tag | None:
    """Return the tag at `start` where it is one of which nothing is to be said; None: read it part by part."""
    match = _PLAIN_TAG.match(source.text, start)
    known = ATTRIBUTES.get(match[1]) if match is not None else None
    if match is None or known is None:
        return None
    line, column = source.place(start)
    first = column - start
    found = {}
    for each in _PLAIN_ATTRIBUTE.finditer(source.text, match.start(2), match.end(2)):
        name, value = each.groups()
        if name not in known or name in found or len(value) > MOST_VALUE_BYTES:
            return None
        found[name] = Attribute(name=name, value=value, line=line, column=first + each.start())
    if len(found) > MOST_ATTRIBUTES:
        return None
    return Tag(match[1], start, match.end(), tuple(found.values()), match[3] == "/")


def _ended(opening: _Opening, end: int, *, single: bool = False) -> Tag:
    return Tag(opening.name, opening.start, end, tuple(opening.attributes), single)


def _pass_space(opening: _Opening) -> None:
    """Go to what comes next in a tag: NCCL takes nothing but spaces before it."""
    source = opening.source
    match = _SPACE.match(source.text, opening.position)
    assert match is not None
    space = match[0]
    opening.tabbed = False
    if not space:
        return
    if "\n" in space or "\r" in space:
        text = f"a line break inside <{shown(opening.name[:40])}; NCCL wants a tag on one line"
        source.remark("newline-in-tag", "fails", opening.position, text)
    elif space[0] != " " and opening.attributes and source.text[opening.position - 1] not in "\"'":
        # After a name without a value the tab and what follows belong to that name.
        opening.tabbed = True
    elif space[0] != " ":
        text = f"a tab inside <{shown(opening.name[:40])}; NCCL takes only spaces there"
        source.remark("tab-in-tag", "fails", opening.position, text)
    else:
        opening.taken += space.count(" ") - 1
        opening.tabbed = space[-1] != " "
    opening.position = match.end()


def _pass_tag_inside(opening: _Opening) -> None:
    """Pass the name of a tag that begins inside of this one: after a space NCCL takes it for an attribute."""
    name = _ATTRIBUTE_NAME.match(opening.source.text, opening.position + 1)
    assert name is not None
    text = f"<{shown(opening.name[:40])} has no `>` before <{shown(name[0][:40])}; NCCL reads both as one tag"
    opening.source.remark("tag-not-closed", "ignores", opening.position, text, opening.name[:40])
    opening.taken += 1
    opening.position = name.end()


def _read_next(opening: _Opening, character: str) -> None:
    """Read an attribute, or pass what cannot be one."""
    source, position = opening.source, opening.position
    if character == "<":
        end = source.text.find("-->", position + 4)
        if end < 0:
            raise source.truncated("a comment", position)
        source.remark("comment-in-tag", "fails", position, "a comment inside a tag; NCCL knows them between tags only")
        opening.position = end + 3
    elif character in "=/" or (character in "\"'" and source.text[position - 1] != " "):
        text = f"`{character}` inside <{shown(opening.name[:40])} where an attribute or the end would be"
        source.remark("stray-in-tag", "fails", position, text, character)
        opening.position += 1
    else:
        _read_attribute(opening)


def _read_attribute(opening: _Opening) -> None:
    source, start = opening.source, opening.position
    match = _ATTRIBUTE_NAME.match(source.text, start)
    assert match is not None
    name = match[0]
    if start > 0 and source.text[start - 1] in "\"'":
        text = f"no space before `{shown(name[:40])}`; NCCL wants one after each value"
        source.remark("no-space", "fails", start, text)
    opening.position = match.end()
    value = _read_value(opening, name)
    # The delimiter after a name takes a byte too, but for the `=`.
    most = MOST_ATTRIBUTE_NAME_BYTES - (value is None)
    if len(name) > most:
        text = f"the name of this attribute has {len(name)} bytes; NCCL takes {most}"
        source.remark("name-too-long", "fails", start, text)
    _keep(opening, name, value, start)


def _read_value(opening: _Opening, name: str) -> str | None:
    """Return the value after a name, and stand behind it; None where there is none."""
    source = opening.source
    before = _SPACE.match(source.text, opening.position)
    assert before is not None
    if source.text[before.end() : before.end() + 1] != "=":
        text = f"`{shown(name[:40])}` has no value; NCCL takes it for empty"
        source.remark("value-missing", "literal", opening.position, text, name[:40])
        return None
    after = _SPACE.match(source.text, before.end() + 1)
    assert after is not None
    if before[0] and not before[0].strip("\t\f\v"):
        opening.tabbed = True
    elif before[0] or after[0]:
        text = f"a space beside the `=` of `{shown(name[:40])}`; NCCL takes none there"
        source.remark("space-at-equals", "fails", before.end(), text)
    quote = source.text[after.end() : after.end() + 1]
    if quote not in {'"', "'"}:
        bare = _BARE_VALUE.match(source.text, after.end())
        assert bare is not None
        source.remark(
            "quote-missing", "fails", after.end(), f"the value of `{shown(name[:40])}` is not in quotes", name
        )
        opening.position = bare.end()
        return bare[0]
    end = source.text.find(quote, after.end() + 1)
    if end < 0:
        raise source.truncated(f"the value of `{shown(name[:40])}`", after.end())
    opening.position = end + 1
    return source.text[after.end() + 1 : end]


def _keep(opening: _Opening, name: str, value: str | None, offset: int) -> None:
    """Add an attribute where NCCL would find it, and say where it would not."""
    source, subject, element = opening.source, shown(name[:40]), shown(opening.name[:40])
    if value is not None and len(value) > MOST_VALUE_BYTES:
        text = f"the value of `{subject}` has {len(value)} bytes; NCCL takes {MOST_VALUE_BYTES}"
        source.remark("value-too-long", "fails", offset, text, name[:40])
    if entity := _ENTITY.search(value or ""):
        text = f"`{entity[0]}` in `{subject}` stays as it is: NCCL knows no entities"
        source.remark("entity", "literal", offset, text, name[:40])
    if opening.taken >= MOST_ATTRIBUTES:
        text = (
            f"`{subject}` is beyond the {MOST_ATTRIBUTES} attributes NCCL keeps of <{element}>; extra spaces count too"
        )
        source.remark("too-many-attributes", "ignores", offset, text, name[:40])
        return
    opening.taken += 1
    if opening.tabbed:
        text = f"a tab at `{subject}` becomes part of its name: NCCL does not find it"
        source.remark("tab-in-name", "ignores", offset, text, name[:40])
    elif any(attribute.name == shown(name) for attribute in opening.attributes):
        text = f"`{subject}` stands twice in <{element}>; NCCL takes the first"
        source.remark("duplicate-attribute", "ignores", offset, text, name[:40])
    else:
        _add(opening, shown(name), value, offset)


def _add(opening: _Opening, name: str, value: str | None, offset: int) -> None:
    known = ATTRIBUTES.get(opening.name)
    if known is not None and name not in known and value is not None:
        text = f"`{name[:40]}` is not an attribute that NCCL reads of <{opening.name}>"
        opening.source.remark("unknown-attribute", "ignores", offset, text, name[:40])
    line, column = opening.source.place(offset)
    opening.attributes.append(Attribute(name=name, value=shown(value or ""), line=line, column=column))
