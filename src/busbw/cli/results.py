"""The verbs that print stored results, `show`, `load` and `export`; a result on standard output, and its exit code."""

import shlex
import sys
from pathlib import Path
from typing import NoReturn

import click

from busbw.base.errors import ExitCode, InputError
from busbw.base.text import printable
from busbw.cli.checks import code_of
from busbw.model import codec
from busbw.model.finding import Finding, Verdict
from busbw.model.gates import GateOutcome
from busbw.model.run import Run
from busbw.model.verdict import ExplainedVerdict

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON: the content of run.json.")


@click.command("show")
@click.argument("run_name", metavar="RUN", default="last")
@_JSON
def show(run_name: str, *, as_json: bool) -> None:
    """Print the result of a RUN, an import, a comparison or a search: a path, the beginning of its name, or `last`."""
    from busbw.api.loading import read
    from busbw.api.stored import find_stored, is_bisection, is_comparison, is_import, is_isolation

    where = find_stored(run_name)
    if is_comparison(where):
        from busbw.cli.compare import show_comparison

        show_comparison(where, as_json=as_json)
    if is_bisection(where):
        from busbw.cli.bisect import show_bisection

        show_bisection(where, as_json=as_json)
    if is_isolation(where):
        from busbw.cli.nodes.isolate import show_isolation

        show_isolation(where, as_json=as_json)
    if is_import(where):
        from busbw.cli.import_ import show_import

        show_import(where, as_json=as_json)
    present_run(read(where), where, as_json=as_json)


@click.command("load")
@click.argument("run_name", metavar="RUN")
@_JSON
def load(run_name: str, *, as_json: bool) -> None:
    """Rebuild the result of a RUN from its raw records, and print it."""
    from busbw.api.loading import load as rebuilt
    from busbw.api.stored import find, is_import
    from busbw.base import layout

    where = find(run_name)
    if is_import(where):
        copies = shlex.quote(str(where / layout.RAW_DIRECTORY))
        raise InputError(
            "this is an import: it stays as it was read, and is not rebuilt",
            where=str(where),
            hint=f"read its copies into a new one: busbw import {copies}",
        )
    present_run(rebuilt(where), where, as_json=as_json)


@click.command("export")
@click.argument("run_name", metavar="RUN", default="last")
@click.option(
    "--format",
    "form",
    type=click.Choice(["nccl-tests", "json", "csv", "parquet", "superbench", "prometheus", "junit", "markdown"]),
    required=True,
    help="What to write: see docs/export.md.",
)
@click.option(
    "-o", "output", type=click.Path(path_type=Path), metavar="FILE", help="The file to write [default: print it]."
)
def export(run_name: str, form: str, output: Path | None) -> None:
    """Write a RUN in a format that other tools read."""
    from busbw.api.reports import export as exported
    from busbw.api.stored import find
    from busbw.show.exports import registry
    from busbw.store.files import check_replaceable, write_whole

    if output is None and not registry.find(form).is_text and sys.stdout.isatty():
        raise InputError(
            f"{form} is not text, and this is a terminal",
            hint=f"busbw export {shlex.quote(run_name)} --format {form} -o FILE",
        )
    # A device or a pipe cannot be replaced by a file, and must not be: that would take it from everybody.
    if output is not None:
        check_replaceable(output)
    content = exported(find(run_name), form)
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_whole(output.absolute(), content)
        print(f"wrote {printable(str(output))}", file=sys.stderr)


def present_run(run: Run, where: Path, *, as_json: bool) -> NoReturn:
    """Print a run as `print_run` does, and exit with its code."""
    print_run(run, where, as_json=as_json)
    sys.exit(exit_code(run))


def print_run(run: Run, where: Path, *, as_json: bool) -> None:
    """Print a run as a table with its verdict, or as the JSON of run.json."""
    if as_json:
        sys.stdout.write(codec.encode_pretty(run).decode())
    else:
        from busbw.show.text.terminal import run_text
        from busbw.show.text.train_step import replay_text

        (replay_text if run.plan.step is not None else run_text)(run, where)
    sys.stdout.flush()


_OF_GATES: dict[GateOutcome, ExitCode] = {
    "pass": ExitCode.OK,
    "fail": ExitCode.FINDINGS,
    "cannot_tell": ExitCode.CANNOT_TELL,
}


def exit_code(run: Run) -> ExitCode:
    """Return 0 for ok (notes allowed), 1 for findings, 3 for a failed run, 4 for cannot tell."""
    return _code(run.verdict, run.findings)


def exit_code_of(explained: ExplainedVerdict) -> ExitCode:
    """Return the same for results that were explained; with gates 0 where all pass, 1 where one fails, else 4."""
    if explained.gates is not None:
        return _OF_GATES[explained.gates.outcome]
    return _code(explained.verdict, explained.findings)


def _code(verdict: Verdict, findings: tuple[Finding, ...]) -> ExitCode:
    if verdict.outcome == "failed":
        return ExitCode.RUN_FAILED
    if verdict.outcome in ("slow", "wrong"):
        return ExitCode.FINDINGS
    if verdict.outcome == "cannot_tell":
        return ExitCode.CANNOT_TELL
    return code_of(findings)
