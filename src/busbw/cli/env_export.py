"""The verb `env export`."""

import sys
from pathlib import Path

import click

from busbw.base.errors import ExitCode
from busbw.env.export import export as export_settings
from busbw.model.recommendation import Recommendation
from busbw.show.plain import printable


def write_settings(found: Recommendation, form: str, output: Path | None) -> None:
    """Write recommended settings into `output`, or to standard output; notes go to standard error.

    Exits with 4, and writes nothing, where there is nothing to recommend.
    """
    if not found.settings:
        for reason in (f"nothing is recommended for {found.platform}: nothing is written", *found.cannot_tell):
            click.echo(f"note: {printable(reason)}", err=True)
        sys.exit(ExitCode.OK if found.recommends else ExitCode.CANNOT_TELL)
    written = export_settings(form, found)
    for note in (*written.notes, *(f"cannot tell: {each}" for each in found.cannot_tell)):
        click.echo(f"note: {printable(note)}", err=True)
    if output is None:
        sys.stdout.write(written.text)
        sys.stdout.flush()
        return
    from busbw.store.files import write_whole

    write_whole(output.absolute(), written.text.encode())
    click.echo(printable(f"wrote {output}"), err=True)
