"""The verb `scaling`: results over the size of the machine."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from busbw.api.scaling_reports import Form, ScalingRequest
from busbw.api.scaling_reports import scaling as scaling_report
from busbw.base.errors import ExitCode
from busbw.cli.options import JSON, SIZE
from busbw.judge.scaling.conclusion import can_tell
from busbw.model import codec
from busbw.model.scaling import ScalingReport

_HELP = """Draw results over the number of nodes: bus bandwidth under its limit, or the speed of an application.

SOURCES are runs and imports (paths, names, folders of them), logs that `busbw import` reads, tables of comma-separated
values (nodes, time_s), logs of applications with --pattern or --app, and - for standard input.

Exit code 0: told, with notes at most; 1: findings; 2: bad input; 4: nothing can be told beyond the numbers.
"""


_FORMS: dict[str | None, Form] = {"in": "in place", "out": "out of place"}


@click.command(help=_HELP)
@click.argument("sources", nargs=-1, metavar="SOURCES...")
@click.option("--by", "axis", type=click.Choice(["nodes", "gpus", "ranks", "cores"]), help="What to draw over.")
@click.option("--series", multiple=True, metavar="NAME", help="A setting that tells lines apart, such as tag.")
@click.option("--against", metavar="LINE", help="Hold lines against this one, or this system [default: first of 2].")
@click.option("--collective", metavar="NAME", help="Of several collectives the one to draw.")
@click.option("--size", "sizes_bytes", multiple=True, type=SIZE, help="A size to draw [default: the largest all have].")
@click.option("--dtype", metavar="NAME", help="Of several data types the one to draw.")
@click.option("--op", metavar="NAME", help="Of several operations the one to draw.")
@click.option("--form", type=click.Choice(["in", "out"]), help="In place, or out of place [default: out, if both].")
@click.option("--platform", metavar="ID", help="Draw the limit of this platform's line rates.")
@click.option("--algorithm", metavar="NAME", help="The limit of this algorithm [default: that used, else the highest].")
@click.option("--ranks-per-node", type=int, metavar="N", help="Nodes are ranks over this, where a log names no hosts.")
@click.option("--predict", is_flag=True, help="Lay the predicted 90 % interval beside each point of a collective.")
@click.option("--published", metavar="ID", help="Add what somebody published of this platform.")
@click.option("--pattern", "patterns", multiple=True, metavar="TEXT", help="Logs: a line, as 'wall time: {time_s} s'.")
@click.option("--app", "application", metavar="NAME", help="Logs: of this application: starccm, gromacs, ...")
@click.option("--name", "name_pattern", metavar="TEXT", help="Logs: the file's name, as 'run-{nodes}n', 'osu-{ranks}'.")
@click.option("--last", type=int, metavar="N", help="Logs: only the last N results of each.")
@click.option("--result", metavar="COLUMN", help="Tables: the column with the result, if there are several.")
@click.option("--weak", is_flag=True, help="The work grew with the machine.")
@click.option("--base", type=int, metavar="N", help="Efficiency is against this place [default: the smallest].")
@click.option("--ignore", "ignored", multiple=True, metavar="COLUMN", help="A column that may differ from the base.")
@click.option("--beyond", multiple=True, type=int, metavar="N", help="Extrapolate to this place by Amdahl's law.")
@JSON
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, a line a point.")
def scaling(*, as_json: bool, as_csv: bool, **asked: object) -> None:
    """Draw results over the size of the machine."""
    if as_json and as_csv:
        raise click.UsageError("--json and --csv say two forms; leave one out")
    report = scaling_report(_request(asked))
    if as_json:
        sys.stdout.write(codec.encode_pretty(report).decode())
    elif as_csv:
        from busbw.show.exports.tables import scaling_csv

        sys.stdout.write(scaling_csv(report))
    else:
        from busbw.show.text.scaling import scaling_text

        scaling_text(report)
    sys.exit(_exit_code(report))


def _request(options: Mapping[str, Any]) -> ScalingRequest:
    """Return the options as a request."""
    same = {
        name: options[name]
        for name in (
            "sources",
            "published",
            "platform",
            "algorithm",
            "collective",
            "sizes_bytes",
            "dtype",
            "op",
            "axis",
            "against",
            "ranks_per_node",
            "patterns",
            "application",
            "name_pattern",
            "last",
            "result",
            "base",
            "beyond",
            "ignored",
            "predict",
        )
    }
    return ScalingRequest(
        **same,
        form=_FORMS.get(options["form"]),
        series=options["series"] or None,
        kind="weak" if options["weak"] else "strong",
    )


def _exit_code(report: ScalingReport) -> ExitCode:
    if any(finding.is_serious for finding in report.findings):
        return ExitCode.FINDINGS
    return ExitCode.OK if any(can_tell(view) for view in report.views) else ExitCode.CANNOT_TELL
