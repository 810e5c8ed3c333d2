"""The verb `compare`: results against each other, or settings that are measured in turn."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

from busbw.api.comparisons import compare_launches, compare_stored, read_comparison
from busbw.api.interleave import DEFAULT_BLOCKS, DEFAULT_BUDGET_S, ComparisonTerms, go_on, plan_comparison, start
from busbw.base.errors import ExitCode, InputError
from busbw.base.text import printable
from busbw.cli.options import GroupedCommand, GroupedOption
from busbw.cli.progress import comparison_progress
from busbw.cli.request import directory_of, given_for_launches, launch_options, setting_of
from busbw.model import codec
from busbw.model.comparison import Comparison, ComparisonPlan
from busbw.show.exports.tables import comparison_csv
from busbw.show.text.comparison import comparison_text, plan_of_comparison_text
from busbw.store import comparisons
from busbw.store import directory as directories

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
_OWN = (
    click.Argument(["names"], nargs=-1, metavar="[RESULTS|COLLECTIVES]..."),
    GroupedOption(
        ["--set", "settings"], multiple=True, group="what", metavar="WORDS", help="A setting to measure now; see above."
    ),
    GroupedOption(["--blocks"], type=int, metavar="N", help="Launches of each setting [default: 30]."),
    GroupedOption(
        ["--budget"], type=float, metavar="SECONDS", help="Start no launch that would end later [default: 900]."
    ),
    GroupedOption(["--seed"], type=int, metavar="N", help="What the order of launches is drawn with [default: drawn]."),
    GroupedOption(["--anyway"], is_flag=True, help="Compare what is not a fair comparison."),
    GroupedOption(["--geometric-mean"], is_flag=True, help="One number over all sizes and collectives, too."),
    GroupedOption(["--resume"], metavar="COMPARISON", help="Start what is missing of an earlier comparison."),
    GroupedOption(["--plan", "plan_only"], is_flag=True, help="Print what would be started, and stop."),
    GroupedOption(["--csv", "as_csv"], is_flag=True, help="Print one line a point, separated by commas."),
    GroupedOption(
        ["--json", "as_json"], is_flag=True, help="Print JSON: the content of result.json or comparison.json."
    ),
)
_ONLY_MEASURED = ("blocks", "budget", "seed")


def _compare(**given: Any) -> NoReturn:  # noqa: ANN401 - as click gives them
    """Compare what is stored, or measure and compare; print the result, and exit with its code."""
    names: tuple[str, ...] = given["names"]
    if given["resume"] is not None:
        if names or given["settings"]:
            raise InputError("--resume goes by the plan of that comparison", hint="leave out settings and results")
        _resume(given["resume"], given)
    if given["settings"]:
        _measure(given)
    measured = [name for name in _ONLY_MEASURED if given[name] is not None]
    if measured or given["plan_only"]:
        raise InputError(
            f"--{(measured or ['plan'])[0]} is for settings that are measured now",
            hint="busbw compare --set default --set 'NCCL_PROTO=LL'",
        )
    if len(names) == 1 and (place := comparisons.find(names[0], directories.root())) is not None:
        _present(compare_launches(place), given)
    if len(names) < 2:
        raise InputError(
            "nothing to compare: name two results, or two settings to measure",
            hint="busbw compare RUN1 RUN2, or: busbw compare --set default --set 'NCCL_PROTO=LL'",
        )
    _present(compare_stored(names, anyway=given["anyway"], geometric_mean=given["geometric_mean"]), given)


def _measure(given: Mapping[str, Any]) -> NoReturn:
    common = given_for_launches(given)
    directory = directory_of(common)
    asked = tuple(setting_of(text, f"--set {text!r}").asked(common) for text in given["settings"])
    terms = ComparisonTerms(
        blocks=given["blocks"] if given["blocks"] is not None else DEFAULT_BLOCKS,
        budget_s=given["budget"] if given["budget"] is not None else DEFAULT_BUDGET_S,
        seed=given["seed"],
        anyway=given["anyway"],
        geometric_mean=given["geometric_mean"],
    )
    plan, launches, where = plan_comparison(asked, terms, directory, directories.root())
    if given["plan_only"]:
        _print_plan(plan, as_json=given["as_json"])
        sys.exit(ExitCode.OK)
    with comparison_progress(plan, where) as follower:
        found = start(plan, launches, where, follower)
    _ended(found, where, given)


def _resume(name: str, given: Mapping[str, Any]) -> NoReturn:
    where = comparisons.find(name, directories.root())
    if where is None:
        raise InputError(f"no comparison {name!r}", where=str(directories.root()))
    plan = comparisons.read_plan(where)
    if given["plan_only"]:
        _print_plan(plan, as_json=given["as_json"])
        sys.exit(ExitCode.OK)
    with comparison_progress(plan, where) as follower:
        found = go_on(where.absolute(), follower)
    _ended(found, where, given)


def show_comparison(where: Path, *, as_json: bool) -> NoReturn:
    """Print the result of a stored comparison, or of what there is of one, and exit with its code."""
    _ended(read_comparison(where), where, {"as_json": as_json, "as_csv": False})


def _ended(found: Comparison, where: Path, given: Mapping[str, Any]) -> NoReturn:
    if found.blocks < found.blocks_planned:
        # The folder stays as it is: what is missing can be started any time.
        print(f"go on with: busbw compare --resume {printable(shlex.quote(str(where)))}", file=sys.stderr)
    _present(found, given)


def _present(found: Comparison, given: Mapping[str, Any]) -> NoReturn:
    if given["as_json"]:
        sys.stdout.write(codec.encode_pretty(found).decode())
    elif given["as_csv"]:
        sys.stdout.write(comparison_csv(found))
    else:
        comparison_text(found)
    sys.stdout.flush()
    sys.exit(exit_code(found))


def exit_code(found: Comparison) -> ExitCode:
    """Return 0 where nothing is slower or unfair, 1 where something is, 4 for cannot tell."""
    if found.verdict.outcome == "cannot_tell":
        return ExitCode.CANNOT_TELL
    doubtful = any(finding.is_serious for finding in found.findings)
    worse = found.verdict.outcome in ("slower", "mixed", "wrong")
    return ExitCode.FINDINGS if doubtful or worse else ExitCode.OK


def _print_plan(plan: ComparisonPlan, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(codec.encode_pretty(plan).decode())
    else:
        plan_of_comparison_text(plan)


compare = GroupedCommand("compare", callback=_compare, params=[*_OWN, *launch_options()], help=_HELP)
