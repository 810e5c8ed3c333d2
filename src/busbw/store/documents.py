"""Documents that busbw's commands write as JSON: what a file is, told by its fields, and what reads it."""

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from busbw.base.errors import InputError
from busbw.model import codec

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class _DocumentKind:
    """One kind of document."""

    # Fields that no other kind has together.
    fields: frozenset[str]
    words: str
    reader: str


_KINDS = tuple(
    _DocumentKind(frozenset(fields.split()), words, reader)
    for fields, words, reader in (
        ("gradient_norms losses", "the result of a step that was trained", "busbw plot --step FILE"),
        (
            "expert_dp step_flops",
            "a plan of a training step",
            "busbw plot --step FILE, or busbw predict --workload FILE",
        ),
        ("terms overlap", "a predicted step of training", "busbw predict --workload prints it"),
        ("cells documents", "a table held against predictions", "busbw predict --against prints it"),
        ("acts constants rows", "a timed schedule", "busbw predict --schedule prints it"),
        ("elsewhere rows", "what busbw predict --json wrote", "busbw plot --prediction FILE"),
        (
            "versus sides",
            "what busbw compare --json wrote",
            "busbw plot --comparison FILE, or busbw report --comparison FILE",
        ),
        ("measurements ranks plan", "a run", "busbw plot RUN, or busbw report RUN, with its folder or its name"),
        ("reading_lines readings", "an import", "busbw report IMPORT, with its folder or its name"),
        ("causes whole steps", "a bisection", "busbw report BISECTION, with its folder or its name"),
        ("least_seen answers", "what busbw fabric --json wrote", "busbw report RUN, with the folder of its run"),
        ("traces records", "what busbw train read --json wrote", "busbw train read LOG prints it"),
        ("troubles processes", "what busbw doctor --json wrote", "busbw doctor LOG prints it"),
        ("followable left_out", "what busbw env recommend --json wrote", "busbw env recommend prints it"),
        ("stages drain", "what busbw check --json wrote", "busbw check --resume FOLDER prints it"),
        # Sweeps have views too, and stand above.
        ("views", "what busbw scaling --json wrote", "busbw plot --scaling FILE, or report --scaling FILE"),
    )
)


def decoded(content: bytes, kind: type[T], *, where: str, called: str, hint: str) -> T:
    """Return the document that a file holds. `called`: what is wanted, as "a plan"; `hint`: what writes it.

    Raises InputError for something else, which says what it is and what reads it where that is known.
    """
    try:
        return codec.decode(content, kind, where=where)
    except InputError as error:
        found = document_kind(content)
        if found is None:
            raise InputError(
                f"this is not {called}{error.cause[error.cause.find(':') :]}", where=where, hint=hint
            ) from error
        if found.fields <= frozenset(kind.__struct_fields__):
            raise InputError(error.cause, where=where, hint=hint) from error
        raise InputError(f"this is not {called}: it is {found.words}", where=where, hint=found.reader) from error


def document_kind(content: bytes) -> _DocumentKind | None:
    """Return which kind of document a file is; None: of no kind that busbw writes."""
    try:
        fields = frozenset(msgspec.json.decode(content, type=dict[str, msgspec.Raw]))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return next((each for each in _KINDS if each.fields <= fields), None)
