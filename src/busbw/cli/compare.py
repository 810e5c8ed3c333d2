"""The verb `compare`: its options, and those of `busbw run` for what is measured."""

from pathlib import Path
from typing import Any

import click

from busbw.cli.options import NOT_OF_JOBS

_HELP = """Compare two or more results, or measure settings in turn and compare those.

RESULTS are stored runs, imports, or files of other tools; launches of one side are separated by commas: A1,A2 B1,B2.
The name of an earlier comparison alone shows it again.

With --set, given twice or more, each setting is measured now, launch by launch in random order: --set default
--set 'NCCL_PROTO=LL'. A setting is NAME=VALUE and -u NAME as for env(1), then options of `busbw run` that it alone
has: --set '--register 2'. Arguments are then COLLECTIVES, and all options of `busbw run` that say what is measured,
where and by whom are taken.

Exit code 0: compared, nothing slower; 1: something is slower, wrong or may be unfair; 2: bad input, or no fair
comparison; 3: a launch failed; 4: cannot tell.
"""
# Options of `busbw run` that are not those of a launch of a comparison.
_NOT_OF_LAUNCHES = (NOT_OF_JOBS - {"hosts", "nodes", "launcher", "directory"}) | {"tag", "collectives"}
_OWN = (
    click.Argument(["names"], nargs=-1, metavar="[RESULTS|COLLECTIVES]..."),
    click.Option(["--set", "settings"], multiple=True, metavar="WORDS", help="A setting to measure now; see above."),
    click.Option(["--blocks"], type=int, metavar="N", help="Launches of each setting [default: 30]."),
    click.Option(
        ["--budget"], type=float, metavar="SECONDS", help="Start no launch that would end later [default: 900]."
    ),
    click.Option(["--seed"], type=int, metavar="N", help="What the order of launches is drawn with [default: drawn]."),
    click.Option(["--anyway"], is_flag=True, help="Compare what is no fair comparison."),
    click.Option(["--geometric-mean"], is_flag=True, help="One number over all sizes and collectives, too."),
    click.Option(["--resume"], metavar="COMPARISON", help="Start what is missing of an earlier comparison."),
    click.Option(["--plan", "plan_only"], is_flag=True, help="Print what would be started, and stop."),
    click.Option(["--csv", "as_csv"], is_flag=True, help="Print one line a point, separated by commas."),
    click.Option(
        ["--json", "as_json"], is_flag=True, help="Print JSON: the content of result.json or comparison.json."
    ),
)


def measuring_options(run: click.Command) -> list[click.Parameter]:
    """Return the options of `busbw run` that say what one launch of a comparison is."""
    return [parameter for parameter in run.params if parameter.name not in _NOT_OF_LAUNCHES]


def compare_command(run: click.Command) -> click.Command:
    """Return the command; `run` is `busbw run`, whose options it takes as they are."""

    def compare(**given: Any) -> None:  # noqa: ANN401 - as click gives them
        from busbw.cli.comparing import compare_verb

        compare_verb(run, given)

    return click.Command("compare", callback=compare, params=[*_OWN, *measuring_options(run)], help=_HELP)


def given_of_run(given: dict[str, Any], run: click.Command) -> dict[str, Any]:
    """Return the options of `busbw run` as a launch of a comparison has them."""
    defaults = run.make_context("run", []).params
    directory: Path | None = given.get("directory")
    return {**defaults, **{name: value for name, value in given.items() if name in defaults}, "directory": directory}
