"""The verb `import`, and imports shown again. Alone because a verb is imported when it is called."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from busbw.api.importing import Import, import_files, load_import, stated_figures
from busbw.base.errors import ExitCode
from busbw.cli.options import COLLECTIVE
from busbw.cli.progress import import_progress
from busbw.model import codec
from busbw.show.text.imported import import_text
from busbw.store import directory as directories


@click.command("import")
@click.argument("paths", metavar="FILE|DIR|-...", nargs=-1, required=True)
@click.option("-o", "directory", type=click.Path(path_type=Path), metavar="DIR", help="Folder for this import.")
@click.option("--tag", help="A word to find this import by later.")
@click.option("--no-copy", is_flag=True, help="Keep no copy of the files, not even with secrets withheld.")
@click.option(
    "--collective", type=COLLECTIVE, metavar="NAME", help="What tables measure that do not say it: all_gather, ..."
)
@click.option("--ranks", type=int, metavar="N", help="Ranks of tables that do not list them.")
@click.option("--nodes", type=int, metavar="N", help="Nodes of tables that do not name their hosts.")
@click.option("--platform", metavar="ID", help="The machine that it was measured on.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the content of import.json.")
def import_(
    paths: tuple[str, ...],
    *,
    directory: Path | None,
    tag: str | None,
    no_copy: bool,
    collective: str | None,
    ranks: int | None,
    nodes: int | None,
    platform: str | None,
    as_json: bool,
) -> NoReturn:
    """Read results of other tools: files, folders, or - for standard input.

    Known are nccl-tests, rccl-tests, OSU, IMB and others, as text or JSON, with a launcher's prefixes, between log
    lines, compressed or not. What a log does not say can be stated; what it says itself goes first, and both are told
    apart in import.json. Exit code 0: read; 1: findings; 2: nothing in it could be read.
    """
    stated = stated_figures(collective=collective, ranks=ranks, nodes=nodes, platform_name=platform)
    with import_progress() as told:
        done = import_files(
            paths, directory, directories.root(), tag=tag, with_copies=not no_copy, stated=stated, told=told
        )
    _present(done, as_json=as_json)


def show_import(where: Path, *, as_json: bool) -> NoReturn:
    """Print a stored import."""
    _present(load_import(where), as_json=as_json)


def _present(done: Import, *, as_json: bool) -> NoReturn:
    """Print an import as a table with its findings, or as the JSON of import.json, and exit with its code."""
    if as_json:
        sys.stdout.write(codec.encode_pretty(done.imported).decode())
    else:
        import_text(done.imported, done.digests, done.unread, done.where)
    sys.stdout.flush()
    serious = any(finding.is_serious for finding in done.imported.findings)
    sys.exit(ExitCode.FINDINGS if serious else ExitCode.OK)
