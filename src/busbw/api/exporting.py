"""A stored run, or an import, in a format that other tools read."""

from pathlib import Path

from busbw.api.loading import read
from busbw.api.locating import is_import
from busbw.exports import registry
from busbw.exports.imports import export_of_import
from busbw.exports.rows import Export
from busbw.exports.runs import export_of_run
from busbw.store import imports


def export(directory: Path, form: str) -> bytes:
    """Return what is in `directory` in the format called `form`.

    Raises InputError when there is no such format, or when it cannot hold anything of this.
    """
    written = registry.find(form)
    return written.write(_rows(directory))


def _rows(directory: Path) -> Export:
    if is_import(directory):
        return export_of_import(imports.read(directory), imports.readings(directory))
    return export_of_run(read(directory))
