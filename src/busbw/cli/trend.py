"""The verb `trend`."""

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from busbw.api.history import trend_of
from busbw.base.errors import ExitCode, InputError
from busbw.base.text import printable
from busbw.cli.options import SIZE
from busbw.cli.runs import say, selecting_options, selection_of
from busbw.model import codec
from busbw.model.history import PointSelection, Trend
from busbw.show.text.history import trend_lines
from busbw.show.text.terminal import console
from busbw.store import directory as directories
from busbw.store.files import check_replaceable, write_whole

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
    _check(asked)
    wanted = PointSelection(
        collective=asked["collective"],
        sizes_bytes=asked["sizes"],
        dtype=asked["dtype"],
        op=asked["op"],
        in_place=None if asked["placement"] is None else asked["placement"] == "in",
        ranks=asked["ranks"],
    )
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
    _present(found, asked["form"], asked["output"])
    if asked["fail_on_regression"] and (asked["form"] != "text" or asked["output"] is not None):
        say(found.sentence)
    print(end="", flush=True)
    sys.exit(_EXITS.get(found.outcome, ExitCode.OK) if asked["fail_on_regression"] else ExitCode.OK)


def _check(asked: dict[str, Any]) -> None:
    if not 0 < asked["false_alarms"] <= 0.2:
        raise InputError("a rate of false alarms lies above 0 and is at most 0.2", where="--false-alarms", hint="0.01")
    if not 0 <= asked["least_percent"] < 100:
        raise InputError("a least change lies from 0 to 100 percent", where="--least", hint="--least 1")
    output: Path | None = asked["output"]
    if output is not None:
        check_replaceable(output)


def _present(trend: Trend, form: str, output: Path | None) -> None:
    if form == "text":
        content = "\n".join(trend_lines(trend, console().width if output is None else 100)) + "\n"
    else:
        content = _written(trend, form)
    if output is None:
        print(content, end="")
    else:
        write_whole(output.absolute(), content.encode())
        print(f"wrote {printable(str(output))}", file=sys.stderr)


def _written(trend: Trend, form: str) -> str:
    from busbw.show.exports.markdown import trend_markdown
    from busbw.show.exports.prometheus import trend_prometheus
    from busbw.show.exports.tables import trend_csv

    if form == "json":
        return codec.encode_pretty(trend).decode()
    return {"csv": trend_csv, "markdown": trend_markdown, "prometheus": trend_prometheus}[form](trend)
