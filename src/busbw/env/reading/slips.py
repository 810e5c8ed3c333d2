"""Slips of the pen in NAME=VALUE: a space on either side of the `=`."""

import re

from busbw.env.reading.context import NAME, Context
from busbw.env.reading.expansion import Field

# What stands behind a `= ` and is no program: a list for NCCL_IB_HCA, a number, a word in capitals, a device.
_VALUE = re.compile(r"[=^].*|[\d.]+[kKmMgG]?|[A-Z][A-Z0-9,_-]*|[a-z]{2,}[a-z_]*\d+(?:[:,].*)?|hsn|true|false")
# Variables of the interconnect: nobody sets one of these to nothing for a program that has no slash in its name.
_FAMILIES = ("NCCL_", "UCX_", "FI_", "OFI_NCCL_", "SHARP_", "OMPI_MCA_", "RCCL_", "HCOLL_")
# What stands further away was not meant to follow.
_WIDEST_GAP = 8


def is_cut_off(field: Field, following: Field | None) -> bool:
    """Whether `NAME=` was meant to go on with what follows it."""
    return (
        field.text.endswith("=")
        and not field.is_quoted
        and NAME.fullmatch(field.text[:-1]) is not None
        and following is not None
        and 0 < following.start - field.end <= _WIDEST_GAP
        and (following.is_quoted or _VALUE.fullmatch(following.text) is not None)
    )


def is_cut_off_alone(field: Field, following: Field) -> bool:
    """Whether `NAME= word`, a whole command, was meant as one assignment."""
    name = field.text.removesuffix("=")
    is_family = name.startswith(_FAMILIES) and "/" not in following.text and not following.text.startswith("-")
    return is_cut_off(field, following) or (field.text.endswith("=") and not field.is_quoted and is_family)


def note_space_after(context: Context, field: Field, following: Field) -> None:
    """Take down that a value stands behind a space."""
    context.ledger.slip(
        "space_after_equals",
        field.start,
        f"{field.text} {context.shown(following)}",
        name=field.text[:-1],
        meant=context.shown(following),
    )


def note_space_before(context: Context, fields: list[Field]) -> bool:
    """Take down `NAME =VALUE` and `NAME = VALUE`; False where a command is none of these."""
    name, equals = fields[0].text, context.shown(fields[1]) if len(fields) > 1 else ""
    if not equals.startswith("=") or not re.fullmatch(r"[A-Z_][A-Z0-9_]{2,}", name):
        return False
    meant = equals[1:] or (context.shown(fields[2]) if len(fields) > 2 else "")
    context.ledger.slip("space_before_equals", fields[0].start, f"{name} {equals}", name=name, meant=meant)
    return True
