"""One collective of several, for one task of an array."""

import os
from pathlib import Path

import msgspec

from busbw.api.batch import names_asked
from busbw.base.errors import InputError
from busbw.measure.plan.request import Request

_VARIABLE = "SLURM_ARRAY_TASK_ID"


def part_of(request: Request, directory: Path | None, part: str) -> tuple[Request, Path]:
    """Return the request for one of its collectives, and the folder for that. Raises InputError."""
    text = os.environ.get(_VARIABLE, "") if part == "slurm" else part
    names = names_asked(request)
    if not text.isdecimal() or len(text) > 9 or int(text) >= len(names):
        raise InputError(
            f"{text[:40]!r} is none of the numbers 0 to {len(names) - 1}",
            where=_VARIABLE if part == "slurm" else f"--split-part {part[:40]}",
            hint=f"they stand for {', '.join(names)}",
        )
    assert directory is not None
    name = names[int(text)]
    return msgspec.structs.replace(request, collectives=(name,), suite=None), directory / name
