"""Documents that busbw's commands write as JSON: what a file is, told by its fields, what reads it, and its numbers."""

from collections.abc import Iterator
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

# What a name says of a number, by its end; the ends of an interval may lie below, as those of a fit do, and so may a
# change. JSON has neither NaN nor infinity.
_NEVER_NEGATIVE = ("_s", "_Bps", "_bytes", "_flops", "gpus", "cores")
_SIGNED = ("change", "low", "high")
_POSITIVE = frozenset(("time_s", "ratio", "nodes", "ranks"))
_PROBABILITIES = frozenset(("confidence", "p_value", "false_claims"))
# An interval: its lower end, what it is around, its upper end.
_INTERVALS = (
    ("low", "value", "high"),
    ("low", "ratio", "high"),
    ("low_Bps", "busbw_Bps", "high_Bps"),
    ("low_ratio", "ratio", "high_ratio"),
)
# Of rounding.
_SLACK = 1e-9


def decoded(content: bytes, kind: type[T], *, where: str, called: str, hint: str) -> T:
    """Return the document that a file holds. `called`: what is wanted, as "a plan"; `hint`: what writes it.

    Raises InputError for something else, which says what it is and what reads it where that is known, and for numbers
    that cannot be.
    """
    try:
        read = codec.decode(content, kind, where=where)
    except InputError as error:
        found = document_kind(content)
        if found is None:
            raise InputError(
                f"this is not {called}{error.cause[error.cause.find(':') :]}", where=where, hint=hint
            ) from error
        if found.fields <= frozenset(kind.__struct_fields__):
            raise InputError(error.cause, where=where, hint=hint) from error
        raise InputError(f"this is not {called}: it is {found.words}", where=where, hint=found.reader) from error
    wrong = next(_impossible(read, ""), None)
    if wrong is not None:
        raise InputError(f"this is not {called}: {wrong}", where=where, hint=hint)
    return read


def _impossible(value: object, place: str) -> Iterator[str]:
    """Yield which numbers of a document cannot be, each by its place: `rows[0].expected.time_s is -1`."""
    if isinstance(value, tuple):
        for number, each in enumerate(value):
            yield from _impossible(each, f"{place}[{number}]")
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _impossible(getattr(value, name), f"{place}.{name}" if place else name)
        yield from _apart(value, place)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        # An estimate's value is what its field is, and so is each of several.
        name = place.removesuffix(".value").rpartition(".")[2].partition("[")[0]
        if name in _POSITIVE and value <= 0:
            yield f"{place} is {value:g}, and must be more than 0"
        elif name.endswith(_NEVER_NEGATIVE) and not name.startswith(_SIGNED) and value < 0:
            yield f"{place} is {value:g}, and must not be less than 0"
        elif name in _PROBABILITIES and not 0 <= value <= 1:
            yield f"{place} is {value:g}, and must be from 0 to 1"


def _apart(value: msgspec.Struct, place: str) -> Iterator[str]:
    """Yield which ends of an interval do not stand around its value."""
    for low_name, name, high_name in _INTERVALS:
        if {low_name, name, high_name} <= set(value.__struct_fields__):
            low, centre, high = (getattr(value, each) for each in (low_name, name, high_name))
            slack = _SLACK * abs(centre)
            at = f"{place}." if place else ""
            if low is not None and low > centre + slack:
                yield f"{at}{low_name} is {low:g}, above {name}, {centre:g}"
            if high is not None and high < centre - slack:
                yield f"{at}{high_name} is {high:g}, below {name}, {centre:g}"


def document_kind(content: bytes) -> _DocumentKind | None:
    """Return which kind of document a file is; None: of no kind that busbw writes."""
    try:
        fields = frozenset(msgspec.json.decode(content, type=dict[str, msgspec.Raw]))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return next((each for each in _KINDS if each.fields <= fields), None)
