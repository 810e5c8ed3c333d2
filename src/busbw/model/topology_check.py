"""What `busbw topo check` says of a file."""

from typing import Literal

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding


class HeldAgainst(Value, kw_only=True, frozen=True):
    """What a file was held against."""

    name: str
    # resembles: nobody named it; the addresses in the file are like its addresses.
    kind: Literal["platform", "host", "resembles"]
    # Why it was taken, in words, where nobody named it; and what fits as well.
    reason: str | None = None
    also: tuple[str, ...] = ()


class QuotedLine(Value, kw_only=True, frozen=True):
    """A line of the file that a finding is about, cut where it is very long."""

    number: Integer
    text: str


class TopologyCheck(Value, kw_only=True, frozen=True):
    """The findings on one topology file, in the order of the file."""

    file: str
    held_against: HeldAgainst | None = None
    findings: tuple[Finding, ...] = ()
    errors: Integer = 0
    warnings: Integer = 0
    notes: Integer = 0
    # A command that writes a right file, where one is known.
    remedy: str | None = None
    lines: tuple[QuotedLine, ...] = ()
