"""The tokens of a shell script: words with their quotes taken apart, operators, redirections."""

from typing import Literal

import msgspec

from busbw.env.reading.spelled import Spelled

# text: as it stands; name: a variable; document: a here-document to be expanded; unknown: the result of a command or of
# arithmetic.
SegmentKind = Literal["text", "name", "document", "unknown"]


class Segment(msgspec.Struct, frozen=True):
    """One stretch of a word that is quoted, expanded or taken as it stands alike."""

    kind: SegmentKind
    spelled: Spelled
    is_quoted: bool = False
    # For a name: what stands in for it, and by which operator (`:-`, `-`, `:=`, `=`, `:+`, `+`); `@` or `*` of a list.
    default: Spelled | None = None
    operator: str = ""
    index: str = ""


class Word(msgspec.Struct, frozen=True):
    """One word as written; offsets are in the file, the second behind its last character."""

    segments: tuple[Segment, ...]
    start: int
    end: int
    # The words of NAME=(...), which is the rest of this one.
    items: "tuple[Word, ...] | None" = None
    # The text of a word that nothing in it is quoted or expanded in; "" for any other.
    plain: str = ""


class Operator(msgspec.Struct, frozen=True):
    """What ends a command, or groups some: a line end, `;`, `&&`, `(`."""

    text: str
    at: int


class Redirect(msgspec.Struct):
    """Where a command reads or writes. The body of a here-document comes later, at the end of the line."""

    operator: str
    at: int
    word: Word | None = None
    # The text of a here-document, and whether $NAME in it stays as it is.
    body: Spelled | None = None
    is_literal: bool = False


class Directive(msgspec.Struct, frozen=True):
    """A comment that a batch system reads: #SBATCH, #PBS."""

    system: str
    options: Spelled


Token = Word | Operator | Redirect | Directive
