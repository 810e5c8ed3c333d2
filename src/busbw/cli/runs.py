"""The options of `busbw runs`, what stands below it, and `busbw trend`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from busbw.cli.sizes import SIZE

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
    from busbw.cli.listing import list_runs

    list_runs(asked)


@runs.command("tag")
@click.argument("run_name", metavar="RUN")
@click.argument("names", metavar="TAG...", nargs=-1, required=True)
def tag(run_name: str, names: tuple[str, ...]) -> None:
    """Give a RUN tags to find it by; the run itself stays as it is."""
    from busbw.cli.listing import tag as give

    give(run_name, names)


@runs.command("untag")
@click.argument("run_name", metavar="RUN")
@click.argument("names", metavar="TAG...", nargs=-1, required=True)
def untag(run_name: str, names: tuple[str, ...]) -> None:
    """Take tags from a RUN."""
    from busbw.cli.listing import untag as take

    take(run_name, names)


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
def trend(metric: str, **asked: object) -> None:
    """Show a METRIC of stored runs over time, and where its level changed.

    METRIC is busbw, algbw, time, p50, p95, p99, min, max, mean, messages, or bandwidth of imports. One series needs 23
    runs before a change can be told at the default rate of false alarms, and each of many needs more. Exit code 0, with
    --fail-on-regression also 1: a series is worse; 4: none of them can be told.
    """
    from busbw.cli.trending import show_trend

    show_trend(metric, asked)
