"""The verbs `runs`, `runs tag` and `runs untag`."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from busbw.api.history import opened
from busbw.base.moment import parse_moment
from busbw.model.history import Selection
from busbw.show.plain import printable
from busbw.store import directory as directories
from busbw.store.selecting import count, rows

# As many lines as somebody may want to scroll through; all where another program reads.
_LINES = 50


def list_runs(asked: dict[str, Any]) -> None:
    """Print the selected runs: one line each, JSON, or CSV. `asked`: the options of the command by name."""
    base = directories.root()
    as_text = not asked["as_json"] and not asked["as_csv"]
    limit = asked["limit"] if asked["limit"] is not None else _LINES if as_text else 0
    selection = selection_of(asked)
    with opened(base, say) as history:
        found = rows(history, selection, order=asked["order"], limit=limit or None)
        there = count(history, selection)
        any_at_all = bool(there or count(history, Selection()))
    if asked["as_json"]:
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    elif asked["as_csv"]:
        from busbw.show.exports.tables import run_table_csv

        print(run_table_csv(found), end="")
    elif found:
        from busbw.show.text.history import listing_lines
        from busbw.show.text.terminal import console

        print("\n".join(listing_lines(found, console().width)))
    elif any_at_all:
        say(f"no run in {base} fits; without options busbw runs lists all")
    else:
        say(f"no runs in {base}; make one with: busbw run")
    if as_text and len(found) < there:
        say(f"the last {len(found)} of {there}; all of them with: --limit 0")


def selection_of(asked: dict[str, Any]) -> Selection:
    """Return which runs the options mean. Raises InputError for a date that is none."""
    moments = {
        name: parse_moment(asked[name], where=f"--{name}") if asked[name] is not None else None
        for name in ("since", "until")
    }
    return Selection(
        kind=asked["kind"],
        host=asked["host"],
        platform=asked["platform"],
        collective=asked["collective"],
        outcomes=tuple(word.replace("-", "_") for word in asked["verdicts"]),
        since_unix_s=moments["since"],
        until_unix_s=moments["until"],
        tags=asked["tags"],
        backend=asked["backend"],
        nccl=asked["nccl"],
    )


def say(line: str) -> None:
    """Print a line for who waits, beside the result."""
    print(printable(line), file=sys.stderr)


def tag(name: str, given: Sequence[str]) -> None:
    """Give a run tags."""
    from busbw.api.history import tag_run

    where, tags = tag_run(name, given)
    say(f"{where.name}: {', '.join(tags)}")


def untag(name: str, taken: Sequence[str]) -> None:
    """Take tags from a run."""
    from busbw.api.history import untag_run

    where, tags = untag_run(name, taken)
    say(f"{where.name}: {', '.join(tags) or 'no tags left'}")
