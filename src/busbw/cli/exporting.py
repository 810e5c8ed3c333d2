"""The verb `export`."""

import shlex
import sys
from pathlib import Path

from busbw.api.locating import find
from busbw.api.report import export
from busbw.base.errors import InputError
from busbw.show.exports import registry
from busbw.show.plain import printable
from busbw.store.files import write_whole


def export_run(name: str, form: str, output: Path | None) -> None:
    """Write a run or an import in another tool's format into `output`, or to standard output."""
    if output is None and not registry.find(form).is_text and sys.stdout.isatty():
        raise InputError(
            f"{form} is not text, and this is a terminal",
            hint=f"busbw export {shlex.quote(name)} --format {form} -o FILE",
        )
    # A device or a pipe cannot be replaced by a file, and must not be: that would take it from everybody.
    if output is not None and output.exists() and not output.is_file():
        raise InputError(f"{output} is not a file", hint="leave out -o to print it")
    content = export(find(name), form)
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_whole(output.absolute(), content)
        print(f"wrote {printable(str(output))}", file=sys.stderr)
