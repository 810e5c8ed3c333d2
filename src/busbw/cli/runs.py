"""The verbs `runs`, `runs tag` and `runs untag`, and the options that select runs."""

import sys
from collections.abc import Callable
from typing import Any

import click
import msgspec

from busbw.api.history import opened
from busbw.base.moment import parse_moment
from busbw.base.text import printable
from busbw.model.history import Selection
from busbw.store import directory as directories
from busbw.store.selecting import count, rows

_OUTCOMES = ("ok", "slow", "wrong", "failed", "cannot-tell", "unreadable", "imported")
_CLAIMS = ("faster", "slower", "mixed", "same", "none", "found")
_SELECTING = (
    click.option("--kind", type=click.Choice(["run", "import", "comparison", "bisection"]), help="Nothing but these."),
    click.option("--host", metavar="PATTERN", help="Runs on such a host: node07, or 'node0*'."),
    click.option("--platform", metavar="PATTERN", help="Runs on such a machine: a platform's name, or '*H100*'."),
    click.option("--collective", metavar="NAME", help="Runs that measured it."),
    click.option(
        "--verdict", "verdicts", type=click.Choice((*_OUTCOMES, *_CLAIMS)), multiple=True, help="One of these."
    ),
    click.option("--since", metavar="WHEN", help="2026-11-22, 2026-11-22T07:00 (UTC), or 36h, 7d, 2w ago."),
    click.option("--until", metavar="WHEN", help="Before this moment."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Runs with this tag; with all where repeated."),
    click.option("--backend", metavar="NAME", help="What measured: native-mpi, native-nccl, nccl-tests, osu, ..."),
    click.option("--nccl", metavar="VERSION", help="The NCCL in use: 2.28.9, or 2.28."),
)


def selecting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which runs are meant."""
    for option in reversed(_SELECTING):
        command = option(command)
    return command


@click.group("runs", invoke_without_command=True)
@selecting_options
@click.option(
    "--sort",
    "order",
    type=click.Choice(["time", "name", "host", "platform", "verdict", "collective", "ranks", "tag"]),
    default="time",
    show_default=True,
    help="Order of the lines; the last are nearest to the prompt.",
)
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="The last N; 0: all [default: 50 as text].")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, all of them.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, all of them.")
@click.pass_context
def runs(context: click.Context, /, **asked: object) -> None:
    """List the runs, imports, comparisons and bisections there are, newest last; give them tags."""
    if context.invoked_subcommand is not None:
        return
    if asked["as_json"] and asked["as_csv"]:
        raise click.UsageError("--json and --csv say two forms; leave one out")
    _list(asked)


@runs.command("tag")
@click.argument("run_name", metavar="RUN")
@click.argument("names", metavar="TAG...", nargs=-1, required=True)
def tag(run_name: str, names: tuple[str, ...]) -> None:
    """Give a RUN tags to find it by; the run itself stays as it is."""
    from busbw.api.history import tag_run

    where, tags = tag_run(run_name, names)
    say(f"{where.name}: {', '.join(tags)}")


@runs.command("untag")
@click.argument("run_name", metavar="RUN")
@click.argument("names", metavar="TAG...", nargs=-1, required=True)
def untag(run_name: str, names: tuple[str, ...]) -> None:
    """Take tags from a RUN."""
    from busbw.api.history import untag_run

    where, tags = untag_run(run_name, names)
    say(f"{where.name}: {', '.join(tags) or 'no tags left'}")


# As many lines as somebody may want to scroll through; all where another program reads.
_LINES = 50


def _list(asked: dict[str, Any]) -> None:
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
