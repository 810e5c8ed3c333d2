"""An NCCL topology file as NCCL's own reader sees it, with its places, and what that reader stumbles on."""

from collections.abc import Iterator
from typing import Literal

from busbw.base.value import Integer, Value

# fails: NCCL stops with an error; fails-older: so did versions that the text names; ignores: NCCL goes on as if it were
# not there; literal: NCCL takes the characters as they stand, where an XML reader would read something else.
Effect = Literal["fails", "fails-older", "ignores", "literal"]
Kind = Literal[
    # Before, after and between elements.
    "byte-order-mark", "prolog", "doctype", "instruction", "cdata", "stray-text", "tab-between-elements",
    "comment-equals", "comment-long-word",
    # Inside a tag.
    "tab-in-tag", "tab-in-name", "newline-in-tag", "comment-in-tag", "tag-not-closed", "space-in-closing-tag",
    "space-at-equals", "quote-missing", "value-missing", "stray-in-tag", "no-space", "entity", "name-too-long",
    "value-too-long", "too-many-attributes", "duplicate-attribute", "unknown-attribute",
    # The tree.
    "root-name", "second-root", "version-missing", "version-wrong", "unknown-element", "misplaced-element",
    "mismatched-tag", "stray-closing-tag", "too-many-elements", "too-many-children",
]  # fmt: skip


class Attribute(Value, kw_only=True, frozen=True):
    """One attribute. Lines and columns count from 1, columns in bytes."""

    name: str
    value: str
    line: Integer
    column: Integer


class Element(Value, kw_only=True, frozen=True):
    """One element that NCCL keeps, with the attributes it finds: no second one of a name, none beyond its limit."""

    name: str
    line: Integer
    column: Integer
    attributes: tuple[Attribute, ...] = ()
    children: tuple["Element", ...] = ()

    def attribute(self, name: str) -> Attribute | None:
        """Return the attribute of this name, None where there is none."""
        return next((attribute for attribute in self.attributes if attribute.name == name), None)

    def value(self, name: str) -> str | None:
        """Return the value of the attribute of this name, None where there is none."""
        found = self.attribute(name)
        return None if found is None else found.value

    def named(self, name: str) -> tuple["Element", ...]:
        """Return the children of this name, in the order of the file."""
        return tuple(child for child in self.children if child.name == name)

    def walk(self) -> Iterator["Element"]:
        """Yield the element and everything in it, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()


class Remark(Value, kw_only=True, frozen=True):
    """One kind of thing NCCL's reader would stumble on, where it stands first."""

    kind: Kind
    effect: Effect
    line: Integer
    column: Integer
    # What stands there and what NCCL makes of it, in a sentence without a full stop.
    text: str
    # The name of the element or attribute it is about; empty where it is about none.
    subject: str = ""
    # How often it occurs in the file.
    count: Integer = 1


class Document(Value, kw_only=True, frozen=True):
    """A topology file, read past its faults: the tree is what its author meant, as far as NCCL would keep it."""

    # The file, as it was named.
    where: str
    # <system>
    root: Element
    # In the order of the file.
    remarks: tuple[Remark, ...] = ()
