"""The verb `import`, and imports shown again."""

import sys
from pathlib import Path
from typing import NoReturn

from busbw.api.importing import Import, import_files, load_import
from busbw.base.errors import ExitCode
from busbw.model import codec
from busbw.show.text.imported import import_text
from busbw.store import directory as directories


def import_results(
    paths: tuple[str, ...], directory: Path | None, *, tag: str | None, with_copies: bool, as_json: bool
) -> NoReturn:
    """Import files and print what they hold."""
    present_import(
        import_files(paths, directory, directories.root(), tag=tag, with_copies=with_copies), as_json=as_json
    )


def show_import(where: Path, *, as_json: bool) -> NoReturn:
    """Print a stored import."""
    present_import(load_import(where), as_json=as_json)


def present_import(done: Import, *, as_json: bool) -> NoReturn:
    """Print an import as a table with its findings, or as the JSON of import.json, and exit with its code."""
    if as_json:
        sys.stdout.write(codec.encode_pretty(done.imported).decode())
    else:
        import_text(done.imported, done.digests, done.unread, done.where)
    sys.stdout.flush()
    serious = any(finding.severity != "note" for finding in done.imported.findings)
    sys.exit(ExitCode.FINDINGS if serious else ExitCode.OK)
