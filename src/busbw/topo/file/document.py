"""An NCCL topology file as NCCL's own reader sees it, with its places, and what that reader stumbles on."""

import re
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
        for attribute in self.attributes:  # a loop is twice as fast as next(...), and rules ask hundreds of times
            if attribute.name == name:
                return attribute
        return None

    def value(self, name: str) -> str | None:
        """Return the value of the attribute of this name, None where there is none."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute.value
        return None

    def named(self, name: str) -> tuple["Element", ...]:
        """Return the children of this name, in the order of the file."""
        return tuple([child for child in self.children if child.name == name])

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


class TopologyDocument(Value, kw_only=True, frozen=True):
    """A topology file, read past its faults: the tree is what its author meant, as far as NCCL would keep it."""

    # The file, as it was named.
    where: str
    # <system>
    root: Element
    # In the order of the file.
    remarks: tuple[Remark, ...] = ()


ROOT = "system"
VERSION = 1
# Of files with what only RCCL knows: AMD's processor, and XGMI links.
RCCL_VERSION = 2
CHILDREN: dict[str, tuple[str, ...]] = {
    "system": ("cpu",),
    "cpu": ("pci", "nic"),
    "pci": ("pci", "gpu", "nic", "pcilink"),
    "gpu": ("nvlink", "c2c"),
    "nic": ("net",),
    "net": (),
    "nvlink": (),
    "c2c": (),
    "pcilink": (),
}
# What RCCL, AMD's variant, keeps beyond that (its src/graph/xml.cc); NCCL ignores it and all it holds.
RCCL_CHILDREN = {"gpu": ("xgmi",)}
# `keep` is NCCL's own mark while it merges files; a file may hold it, to no effect.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "system": ("version", "name"),
    "cpu": ("host_hash", "numaid", "affinity", "arch", "vendor", "familyid", "modelid"),
    "pci": (
        "busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed", "link_width",
    ),
    "gpu": ("dev", "sm", "rank", "gdr", "mlopart", "keep"),
    "nic": (),
    "net": (
        "name", "dev", "latency", "speed", "port", "guid", "maxconn", "gdr", "coll", "net", "gin", "rma", "rail",
        "plane", "keep",
    ),
    "nvlink": ("target", "count", "tclass"),
    "c2c": ("bw", "count"),
    "pcilink": ("target",),
}  # fmt: skip

# NCCL's buffers hold 255 characters and an end; its reader gives up when it has stored 254, the delimiter among them.
MOST_VALUE_BYTES = 253
MOST_ELEMENT_NAME_BYTES = 253
MOST_ATTRIBUTE_NAME_BYTES = 254
MOST_ATTRIBUTES = 16
# The array holds 256, and the reader refuses to read on, even a closing tag, once the last is taken. Up to 2.20: 1024.
MOST_ELEMENTS = 255
# 2.29 and newer; 128 from 2.21 to 2.28; 32 up to 2.20.
MOST_CHILDREN = 640
OLDER_MOST_CHILDREN = ((32, "2.20"), (128, "2.28"))


_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))")
_REAL = re.compile(r"[ \t\n\v\f\r]*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_WORD = re.compile(r"[ \t\n\v\f\r]*(?:0[xX])?([0-9a-fA-F]+)")
_LONGEST = 253
# CPU_SETSIZE of the C library, 1024, in words.
_MOST_WORDS = 32


def read_integer(text: str | None) -> int | None:
    """Return the number a value begins with, as strtol with base 0 reads it: `0x2a`, `052` and `42 GT/s` are 42.

    None where there is no digit, which NCCL takes for 0, and where a C int cannot hold the number.
    """
    match = _INTEGER.match(text[:_LONGEST]) if text else None
    if match is None:
        return None
    sign, hexadecimal, octal, decimal = match.groups()
    number = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal)
    number = -number if sign == "-" else number
    return number if -(2**31) <= number < 2**31 else None


def read_real(text: str | None) -> float | None:
    """Return the number a value begins with, None where it begins with none or with one that is not finite."""
    match = _REAL.match(text[:_LONGEST]) if text else None
    if match is None:
        return None
    number = float(match[0])
    return number if abs(number) < float("inf") else None


def read_cpus(text: str | None) -> tuple[int, ...] | None:
    """Return the CPUs of an `affinity`, ascending, as NCCL reads it; None where there is none.

    NCCL takes what it can of each word: digits up to the first other character, the last 32 bits of too many, 0 of
    none. It skips empty words, and drops what comes after 32 words.
    """
    if text is None:
        return None
    bits = 0
    for word in [word for word in text.split(",") if word][:_MOST_WORDS]:
        match = _WORD.match(word)
        bits = bits << 32 | (int(match[1], 16) & 0xFFFFFFFF if match else 0)
    return tuple(place for place in range(bits.bit_length()) if bits >> place & 1)
