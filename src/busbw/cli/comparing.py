"""What `busbw compare` does once its options are read."""

import shlex
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from busbw import codec
from busbw.api.comparing import compare_launches, compare_stored
from busbw.api.interleaving import DEFAULT_BLOCKS, DEFAULT_BUDGET_S, Terms, go_on, plan_comparison, start
from busbw.api.side import Asked, parse_words
from busbw.cli.asked import request_of
from busbw.cli.compare import given_of_run
from busbw.cli.comparison_progress import comparison_progress
from busbw.errors import ExitCode, InputError
from busbw.exports.comparison_csv import comparison_csv
from busbw.model.comparison import Comparison
from busbw.model.comparison_plan import ComparisonPlan
from busbw.report.comparison_text import comparison_text, plan_of_comparison_text
from busbw.report.plain import printable
from busbw.store import comparisons
from busbw.store import directory as directories

_ONLY_MEASURED = ("blocks", "budget", "seed")


def compare_verb(run: click.Command, given: dict[str, Any]) -> NoReturn:
    """Compare what is stored, or measure and compare; print the result, and exit with its code."""
    names: tuple[str, ...] = given["names"]
    if given["resume"] is not None:
        if names or given["settings"]:
            raise InputError("--resume goes by the plan of that comparison", hint="leave out settings and results")
        _resume(given["resume"], given)
    if given["settings"]:
        _measure(run, given)
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


def _measure(run: click.Command, given: dict[str, Any]) -> NoReturn:
    common = given_of_run(given, run) | {"collectives": given["names"]}
    asked, directory = sides_of(run, common, given["settings"])
    terms = Terms(
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


def _resume(name: str, given: dict[str, Any]) -> NoReturn:
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


def sides_of(
    run: click.Command, common: dict[str, Any], settings: tuple[str, ...]
) -> tuple[tuple[Asked, ...], Path | None]:
    """Return the sides asked for, and the folder. Raises InputError for words that are no setting."""
    _request, directory = request_of(common)
    return tuple(_side(run, common, text) for text in settings), directory


def _side(run: click.Command, common: dict[str, Any], text: str) -> Asked:
    where = f"--set {text!r}"
    try:
        words = parse_words(shlex.split(text), where)
    except ValueError as error:
        raise InputError(f"this setting cannot be read: {error}", where=where) from error
    own = _own_options(run, words.options, where)
    request, _directory = request_of({**common, **own, "directory": None, "letter_o": own.get("letter_o")})
    if request.launcher == "sbatch":
        raise InputError(
            "a comparison starts its launches itself", where="--launcher sbatch", hint="run it inside a job"
        )
    return Asked(
        name=" ".join(text.split()) or "default",
        environment=words.environment,
        unset=words.unset,
        options=words.options,
        request=request,
    )


def _own_options(run: click.Command, options: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return the options that a side alone has, by name. Raises InputError for those that `busbw run` has not."""
    try:
        context = run.make_context("run", list(options))
    except click.ClickException as error:
        raise InputError(error.format_message(), where=where) from error
    except click.exceptions.Exit as error:
        raise InputError("--help is no setting", where=where) from error
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE and value != ()
    }
    shared = sorted(given.keys() & {"collectives", "directory", "resume", "plan_only", "as_json", "tag", "time_limit"})
    if shared:
        raise InputError(f"not an option of one setting: {', '.join(shared)}", where=where)
    return given


def _ended(found: Comparison, where: Path, given: dict[str, Any]) -> NoReturn:
    if found.blocks < found.blocks_planned:
        # The folder stays as it is: what is missing can be started any time.
        print(f"go on with: busbw compare --resume {printable(where.name)}", file=sys.stderr)
    _present(found, given)


def _present(found: Comparison, given: dict[str, Any]) -> NoReturn:
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
    doubtful = any(finding.severity != "note" for finding in found.findings)
    worse = found.verdict.outcome in ("slower", "mixed", "wrong")
    return ExitCode.FINDINGS if doubtful or worse else ExitCode.OK


def _print_plan(plan: ComparisonPlan, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(codec.encode_pretty(plan).decode())
    else:
        plan_of_comparison_text(plan)
