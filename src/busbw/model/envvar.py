"""A variable that something on a cluster reads: what is known of it, how a text is taken, where it is set."""

from typing import Literal

import msgspec

from busbw.base.value import Integer, Value
from busbw.model.settings import PluginExport, Setting

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
    # What may stand between the entries of a list; None: a comma.
    divider: str | None = None
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


# other value: it is read as something else than it seems to say; ignored: the reader keeps its default;
# clipped: it is moved into the limits; out of range: it is read, and none that it is for; fails: the job stops;
# odd: read as meant, and written so that it may not be; not known: none of what the manual has, of a reader whose code
# is not known.
ValueProblem = Literal["other value", "ignored", "clipped", "out of range", "fails", "odd", "not known"]
# known: something reads it; misspelt: nothing does, and `meant` is near; unknown: nothing does, and all names of that
# prefix are known; open: cannot tell, names of that prefix are open-ended or scripts make them up.
NameVerdict = Literal["known", "misspelt", "unknown", "open"]


class ValueReading(Value, kw_only=True, frozen=True):
    """What the reader of a variable makes of one text."""

    # What is in force then, as a person would write it: `8`, `SYS`, `on`, `Ring`; None: it cannot be known here.
    value: str | None
    # What may not be as its writer thinks, in words with its effect; None: nothing.
    problem: str | None = None
    kind: ValueProblem | None = None
    # What to write instead, where it is plain what was meant.
    instead: str | None = None


class NameRead(Value, kw_only=True, frozen=True):
    """Whether anything reads a name, and what was meant where nothing does."""

    seen: str
    verdict: NameVerdict
    # Most likely first; empty: nothing near, or nothing does that.
    meant: tuple[str, ...] = ()
    note: str | None = None
    source: str | None = None


class DeviceEntry(Value, kw_only=True, frozen=True):
    """One entry of a list of devices such as NCCL_IB_HCA."""

    name: str
    port: Integer | None = None
    rail: Integer | None = None
    plane: Integer | None = None
    # As written, and where it begins in the text, from 0.
    written: str
    offset: Integer


class DeviceList(Value, kw_only=True, frozen=True):
    """A list of devices as NCCL reads it."""

    text: str
    # `^`: everything but these; `=`: names are whole, not beginnings.
    exclude: bool = False
    exact: bool = False
    entries: tuple[DeviceEntry, ...] = ()


DeviceFlaw = Literal["duplicate", "operator", "space", "empty", "port", "field", "too many", "too long"]


class DeviceProblem(Value, kw_only=True, frozen=True):
    """Something wrong with how a list of devices is written."""

    kind: DeviceFlaw
    # The part of the text it is about, and where it begins in the text, from 0.
    written: str
    offset: Integer
    problem: str


class DeviceChoice(Value, kw_only=True, frozen=True):
    """Which of a machine's devices a list takes."""

    taken: tuple[str, ...]
    # Entries that are the beginning of another device's name too: as written, and what they take beyond their own.
    prefixes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    # Entries that no device has.
    absent: tuple[str, ...] = ()


class DeviceComparison(Value, kw_only=True, frozen=True):
    """A list against the compute NICs of a platform."""

    choice: DeviceChoice
    # Compute NICs it does not take; devices it takes that are none.
    missed: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()


class ListRead(Value, kw_only=True, frozen=True):
    """NCCL_ALGO or NCCL_PROTO as NCCL reads it: what stays possible for each function."""

    # Function to tokens in NCCL's spelling: `AllReduce` to (`Tree`, `Ring`).
    enabled: dict[str, tuple[str, ...]]
    # Tokens and functions that NCCL does not know, as written.
    unknown: tuple[str, ...] = ()
    problem: str | None = None
    kind: ValueProblem | None = None


class Interaction(Value, kw_only=True, frozen=True):
    """Settings that together do something else than each says."""

    id: str
    # The variables it is about, the one to change first.
    names: tuple[str, ...]
    # What is set, and what comes of it, each a sentence's worth of words.
    condition: str
    effect: str
    # contradiction: one undoes the other; fails: the job stops; slow, wrong data, hang: as it says; none: no effect.
    kind: Literal["contradiction", "fails", "slow", "wrong data", "hang", "no effect", "clipped", "misleading"]
    fix: str | None = None
    source: str


class PublishedValue(Value, kw_only=True, frozen=True):
    """What is published to set a variable to, and for which platforms."""

    # None: make sure that it is unset.
    value: str | None
    platforms: tuple[str, ...]
    # What it is for, where it is not for every job.
    goal: str | None = None
    reason: str | None = None
    # Where it is published, in words.
    source: tuple[str, ...] = ()


class InForce(Value, kw_only=True, frozen=True):
    """What a variable is set to in some place, and who set it."""

    # `this host`, `run 20261121-143012`.
    where: str
    # Every choice, the one in force first, those that lost after it; (): nobody set it.
    choices: tuple[Setting, ...] = ()
    # What the reader makes of the value in force; None: nothing is set, or nothing reads it.
    understood: ValueReading | None = None
    # What could not be looked at and may set something too.
    unseen: tuple[str, ...] = ()


class Explanation(Value, kw_only=True, frozen=True):
    """Everything there is to say of one name."""

    name: str
    # What nothing declares is read as this.
    read: NameRead
    variable: EnvVar | None = None
    # The version of its owner that this is told for; None: its versions are not known.
    version: str | None = None
    # What is to be known of that version: that it is newer than all that were looked at.
    version_note: str | None = None
    standing: Literal["yes", "not yet", "removed"] | None = None
    # In that version.
    default: str | None = None
    # What is known of this name as a wrong one, and the wrong names for this variable.
    mistaken: Misspelling | None = None
    misspellings: tuple[Misspelling, ...] = ()
    recipes: tuple[PublishedValue, ...] = ()
    # What plug-ins set it to by themselves.
    exports: tuple[PluginExport, ...] = ()
    in_force: InForce | None = None
