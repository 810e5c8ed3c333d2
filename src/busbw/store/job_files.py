"""The files that a job needs, written into its folder before it starts."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.model.plan import JobFile

# What busbw itself keeps there.
_TAKEN = ((), (layout.PLAN_FILE,), (layout.RUN_FILE,), (layout.OUTCOME_FILE,), (layout.RAW_DIRECTORY,))


def write(files: Iterable[JobFile], folder: Path) -> None:
    """Write files below `folder`, which is made where it is missing.

    Raises InputError for two files of one name, for one that would lie elsewhere, and where nothing can be written.
    """
    written: dict[str, JobFile] = {}
    for file in files:
        if written.setdefault(file.path, file) != file:
            raise InputError(f"two jobs of the plan need another file at {file.path}", where=str(folder))
    for file in written.values():
        path = PurePosixPath(file.path)
        if path.is_absolute() or ".." in path.parts or path.parts[:1] in _TAKEN:
            raise InputError(f"a file of the plan must lie in the run's folder, and this does not: {file.path!r}")
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(file.text, encoding="utf-8", errors="surrogateescape", newline="")
            (folder / path).chmod(0o755 if file.executable else 0o644)
        except OSError as error:
            raise InputError(
                f"cannot write a file of the job: {error.strerror or error}",
                where=str(folder / path),
                hint="choose another folder with -o",
            ) from error
