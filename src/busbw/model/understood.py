"""How a name or a text is taken by what reads it."""

from typing import Literal

from busbw.base.value import Integer, Value

# other value: it is read as something else than it seems to say; ignored: the reader keeps its default;
# clipped: it is moved into the limits; out of range: it is read, and none that it is for; fails: the job stops;
# odd: read as meant, and written so that it may not be.
ValueProblem = Literal["other value", "ignored", "clipped", "out of range", "fails", "odd"]
# known: something reads it; misspelt: nothing does, and `meant` is near; unknown: nothing does, and all names of that
# prefix are known; open: cannot tell, names of that prefix are open-ended or scripts make them up.
NameVerdict = Literal["known", "misspelt", "unknown", "open"]


class Understood(Value, kw_only=True, frozen=True):
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
