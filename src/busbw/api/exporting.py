"""A stored run, or an import, in a format that other tools read."""

from pathlib import Path

from msgspec.structs import replace

from busbw.api.judge import grounds_of_run, judge_run
from busbw.api.loading import read
from busbw.api.locating import is_import
from busbw.judge.explaining.told import Told
from busbw.model.finding import Verdict
from busbw.model.run import Run
from busbw.show.exports import registry
from busbw.show.exports.imports import export_of_import
from busbw.show.exports.runs import export_of_run
from busbw.store import imports


def export(directory: Path, form: str) -> bytes:
    """Return what is in `directory` in the format called `form`.

    Raises InputError when there is no such format, or when it cannot hold anything of this.
    """
    written = registry.find(form)
    if is_import(directory):
        return written.write(export_of_import(imports.read(directory), imports.readings(directory)))
    run = read(directory)
    export = export_of_run(run)
    return written.write(replace(export, judged=judged_points(run)) if written.has_verdicts else export)


def judged_points(run: Run) -> tuple[tuple[int, Verdict], ...]:
    """Return what each point was judged to be, held against what the run itself knows of its machine."""
    explained = judge_run(run, grounds_of_run(run), Told())
    sizes = (size for series in explained.series for size in series.sizes)
    return tuple((size.point, size.verdict) for size in sizes if size.point is not None)
