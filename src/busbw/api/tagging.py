"""Tags of runs, imports and comparisons, given and taken after they were made."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from busbw.api.listing import run_of
from busbw.api.locating import find_stored
from busbw.base.errors import InputError
from busbw.store import tags


def tag_run(name: str, given: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """Give something stored tags, and return where it is and all it was given. Raises InputError and RunError.

    Nothing is written unless every one of them can be a tag.
    """
    where = find_stored(name).absolute()
    for tag in given:
        tags.check_tag(tag)
    for tag in given:
        tags.add(where, tag)
    return where, tags.tags_of(where)


def untag_run(name: str, taken: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """Take tags from something stored, and return where it is and what it still has. Raises InputError and RunError.

    The tag that it was made with is part of it and stays: to ask for that one is an error.
    """
    where = find_stored(name).absolute()
    there = tags.tags_of(where)
    for tag in taken:
        tags.check_tag(tag)
        if tag not in there:
            raise _not_there(where, tag, there)
    for tag in taken:
        tags.remove(where, tag)
    return where, tags.tags_of(where)


def _not_there(where: Path, tag: str, there: tuple[str, ...]) -> InputError:
    if run_of(where).row.tag == tag:
        return InputError(
            f"{where.name} was made with --tag {tag}: that is part of it, and stays",
            where=str(where),
        )
    hint = f"it has: {', '.join(there)}" if there else f"give it one: busbw runs tag {shlex.quote(where.name)} {tag}"
    return InputError(f"{where.name} has no tag {tag}", where=str(where), hint=hint)
