"""A variable that something on a cluster reads, as a fact; and the names that nothing reads."""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value

# How the reader understands the text. size: a count of bytes; level: NCCL's path types by name or old number.
VarKind = Literal["bool", "int", "size", "float", "enum", "list", "text", "path", "level"]
# same: every rank must have it alike; any: ranks may differ; None: not known.
Agreement = Literal["same", "any"]


class Owner(Value, kw_only=True, frozen=True):
    """Something that reads variables, and the versions of it whose variables are known."""

    name: str
    # Those that were looked at, oldest first.
    versions: tuple[str, ...]
    source: str


class EnvVar(Value, kw_only=True, frozen=True):
    """One variable. None: not known, or not published."""

    name: str
    # NCCL, UCX, libfabric CXI, Open MPI...
    owner: str
    kind: VarKind
    # As it would be written; `auto` where the reader decides, `unset` where nothing is used then; None: not known.
    default: str | None = None
    # Where it has changed: each by the version of the owner that it came with, oldest first; the last is `default`.
    defaults: dict[str, str] = msgspec.field(default_factory=dict)
    # The words or tokens it takes; empty: any of its kind. `accepted` says it in words where tokens do not.
    choices: tuple[str, ...] = ()
    accepted: str | None = None
    least: Integer | None = None
    most: Integer | None = None
    # Versions of the owner: the first that reads it, the first that no longer does.
    since: str | None = None
    until: str | None = None
    # Still read, and to be replaced.
    deprecated: str | None = None
    # The name to use instead, or the other spelling of the same parameter.
    replaced_by: str | None = None
    same_as: str | None = None
    documented: bool | None = None
    agreement: Agreement | None = None
    category: str | None = None
    # What it does, in busbw's words.
    meaning: str
    notes: tuple[str, ...] = ()
    source: str
    # How far the fact was checked: source, binary, manual, recipe.
    checked: str | None = None


class Misspelling(Value, kw_only=True, frozen=True):
    """A name that is seen in scripts and read by nothing, or by something else than its writer thinks."""

    seen: str
    # Names of what was meant, most likely first; empty: nothing does that.
    intended: tuple[str, ...] = ()
    # Whether what was meant says the opposite: 1 becomes 0.
    inverted: bool = False
    # What to write instead, where that is a setting of its own.
    instead: str | None = None
    # misspelling: a letter off; stale: once read; framework or vendor: read by another program only.
    kind: Literal["misspelling", "stale", "non-existent", "framework", "vendor"]
    note: str | None = None
    source: str
