"""Imports, and files of other tools, as a report is about them."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from busbw.api.imported import load_import
from busbw.api.importing import import_files
from busbw.api.judge import judge_import
from busbw.judge.explaining.grounds import Grounds
from busbw.judge.explaining.told import Told
from busbw.show.page.import_subject import ImportSubject
from busbw.store import imports

# Rows that go into a page.
_MOST_READINGS = 5000


def import_subject(where: Path, grounds: Grounds) -> ImportSubject:
    """Return a stored import for a report, held against `grounds`. Raises InputError when it is damaged or too new."""
    found = load_import(where)
    rows = iter(imports.readings(where))
    first = tuple(islice(rows, _MOST_READINGS))
    imported = found.imported
    return ImportSubject(
        label=imported.tag or imported.import_id,
        imported=imported,
        digests=found.digests,
        unread=found.unread,
        readings=first,
        left_out=imported.readings - len(first),
        explained=judge_import(where, imported.import_id, grounds, Told()),
    )


def file_subject(path: Path, grounds: Grounds) -> ImportSubject:
    """Return a file of another tool for a report; it is read as an import is, and no import is kept.

    Raises InputError for a file in which there is nothing to read.
    """
    with TemporaryDirectory(prefix="busbw-report-") as folder:
        done = import_files((str(path),), Path(folder) / path.name, Path(folder))
        found = import_subject(done.where, grounds)
    return replace(found, label=path.name)
