"""The verb `export`: a result in another tool's format."""

import shlex
import sys
from pathlib import Path

import click

from busbw.api.locating import find
from busbw.api.reports import export as write_export
from busbw.base.errors import InputError
from busbw.show.exports import registry
from busbw.show.plain import printable
from busbw.store.files import write_whole


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
    if output is None and not registry.find(form).is_text and sys.stdout.isatty():
        raise InputError(
            f"{form} is not text, and this is a terminal",
            hint=f"busbw export {shlex.quote(run_name)} --format {form} -o FILE",
        )
    # A device or a pipe cannot be replaced by a file, and must not be: that would take it from everybody.
    if output is not None and output.exists() and not output.is_file():
        raise InputError(f"{output} is not a file", hint="leave out -o to print it")
    content = write_export(find(run_name), form)
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_whole(output.absolute(), content)
        print(f"wrote {printable(str(output))}", file=sys.stderr)
