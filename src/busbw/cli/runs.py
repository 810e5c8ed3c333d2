"""The options of `busbw runs` and what stands below it."""

from collections.abc import Callable
from typing import Any

import click

_OUTCOMES = ("ok", "slow", "wrong", "failed", "cannot-tell", "unreadable", "imported")
_SELECTING = (
    click.option("--host", metavar="PATTERN", help="Runs on such a host: node07, or 'node0*'."),
    click.option("--platform", metavar="PATTERN", help="Runs on such a platform, as busbw platform list names them."),
    click.option("--collective", metavar="NAME", help="Runs that measured it."),
    click.option("--verdict", "verdicts", type=click.Choice(_OUTCOMES), multiple=True, help="One of these."),
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
    """List the runs and imports there are, newest last; give them tags."""
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
