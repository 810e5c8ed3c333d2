"""The verbs of the history: `runs`, `runs tag`, `runs untag` and `trend`, and the options that select runs."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec

from busbw.api.history import opened
from busbw.base.errors import ExitCode, InputError
from busbw.base.moment import parse_moment
from busbw.base.text import printable
from busbw.cli.options import SIZE
from busbw.model.history import PointSelection, Selection, Trend
from busbw.store import directory as directories
from busbw.store.selecting import count, rows

_OUTCOMES = ("ok", "slow", "wrong", "failed", "cannot-tell", "unreadable", "imported")
_CLAIMS = ("faster", "slower", "mixed", "same", "none", "found")
_KINDS = ("run", "import", "comparison", "bisection", "isolation")
_SELECTING = (
    click.option(
        "--kind",
        type=click.Choice(_KINDS),
        help="Nothing but these.",
    ),
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
    """List the runs, imports, comparisons, bisections and searches over groups there are, newest last; tag them."""
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


_EXITS = {"worse": ExitCode.FINDINGS, "cannot_tell": ExitCode.CANNOT_TELL}


@click.command("trend")
@click.argument("metric")
@selecting_options
@click.option("--size", "sizes", type=SIZE, multiple=True, help="This size; several where repeated [default: all].")
@click.option("--dtype", metavar="TYPE", help="This data type.")
@click.option("--op", metavar="OP", help="This operation of reductions.")
@click.option("--in-place", "placement", type=click.Choice(["out", "in"]), help="Out of place or in place.")
@click.option("--ranks", "--np", type=int, metavar="N", help="This many ranks.")
@click.option(
    "--by",
    type=click.Choice(["host", "platform", "tag"]),
    default="host",
    show_default=True,
    help="A series for each host (or set of hosts), platform, or tag.",
)
@click.option(
    "--least", "least_percent", type=float, default=1.0, show_default=True, metavar="PERCENT", help="Least change told."
)
@click.option(
    "--false-alarms",
    type=float,
    default=0.01,
    show_default=True,
    metavar="RATE",
    help="How often a call over series that keep their level may tell a change.",
)
@click.option(
    "--fail-on-regression", is_flag=True, help="Exit with 1 where a series is worse, 4 where none can be told."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "csv", "markdown", "prometheus"]),
    default="text",
    help="What to print.",
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="FILE", help="Write FILE, whole or not at all.")
def trend(metric: str, **asked: Any) -> NoReturn:  # noqa: ANN401 - as click gives them
    """Show a METRIC of stored runs over time, and where its level changed.

    METRIC is busbw, algbw, time, p50, p95, p99, min, max, mean, messages, or bandwidth of imports. One series needs 23
    runs before a change can be told at the default rate of false alarms, and each of many needs more. Exit code 0, with
    --fail-on-regression also 1: a series is worse; 4: none of them can be told.
    """
    _check_trend(asked)
    wanted = PointSelection(
        collective=asked["collective"],
        sizes_bytes=asked["sizes"],
        dtype=asked["dtype"],
        op=asked["op"],
        in_place=None if asked["placement"] is None else asked["placement"] == "in",
        ranks=asked["ranks"],
    )
    from busbw.api.history import trend_of

    found = trend_of(
        directories.root(),
        metric,
        selection_of(asked),
        wanted,
        by=asked["by"],
        false_alarms=asked["false_alarms"],
        least_change=asked["least_percent"] / 100,
        say=say,
    )
    _present_trend(found, asked["form"], asked["output"])
    if asked["fail_on_regression"] and (asked["form"] != "text" or asked["output"] is not None):
        say(found.sentence)
    print(end="", flush=True)
    sys.exit(_EXITS.get(found.outcome, ExitCode.OK) if asked["fail_on_regression"] else ExitCode.OK)


def _check_trend(asked: dict[str, Any]) -> None:
    if not 0 < asked["false_alarms"] <= 0.2:
        raise InputError("a rate of false alarms lies above 0 and is at most 0.2", where="--false-alarms", hint="0.01")
    if not 0 <= asked["least_percent"] < 100:
        raise InputError("a least change lies from 0 to 100 percent", where="--least", hint="--least 1")
    from busbw.store.files import check_replaceable

    output: Path | None = asked["output"]
    if output is not None:
        check_replaceable(output)


def _present_trend(trend: Trend, form: str, output: Path | None) -> None:
    from busbw.show.text.history import trend_lines
    from busbw.show.text.terminal import console
    from busbw.store.files import write_whole

    if form == "text":
        content = "\n".join(trend_lines(trend, console().width if output is None else 100)) + "\n"
    else:
        content = _written_trend(trend, form)
    if output is None:
        print(content, end="")
    else:
        write_whole(output.absolute(), content.encode())
        print(f"wrote {printable(str(output))}", file=sys.stderr)


def _written_trend(trend: Trend, form: str) -> str:
    from busbw.model import codec
    from busbw.show.exports.markdown import trend_markdown
    from busbw.show.exports.prometheus import trend_prometheus
    from busbw.show.exports.tables import trend_csv

    if form == "json":
        return codec.encode_pretty(trend).decode()
    return {"csv": trend_csv, "markdown": trend_markdown, "prometheus": trend_prometheus}[form](trend)
