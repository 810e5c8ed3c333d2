"""What the logs of a job say."""

from collections.abc import Sequence

from busbw.base.errors import InputError
from busbw.facts.platforms import find_platform
from busbw.logs.diagnosis import diagnose
from busbw.logs.reader import LogReader
from busbw.machine.capture.sites import site_files
from busbw.model.diagnosis import Diagnosis
from busbw.store import sources


def doctor_logs(paths: Sequence[str], *, platform: str | None = None) -> Diagnosis:
    """Return what is wrong with the job that wrote these logs: files, folders, or "-" for standard input.

    All of them belong to one job. `platform`: the machine it ran on, by any of its names. Raises InputError for what
    cannot be read, and where no line is NCCL's.
    """
    kind = find_platform(platform, site_files()).platform if platform is not None else None
    files = sources.found(tuple(paths))
    reader = LogReader()
    unread: list[str] = []
    for path in files:
        with sources.opened(path) as source:
            for block in source.blocks():
                reader.feed(block)
            reader.end_source()
            if source.problem is not None:
                unread.append(f"{path}: {source.problem}")
    names = tuple("standard input" if path == sources.STDIN else path for path in files)
    if not (reader.nccl_lines or reader.troubles.events or reader.ras.latest or reader.state.bare_version):
        raise _nothing(names, reader.sieve.lines, unread)
    return diagnose(reader, names, platform=kind, unread=tuple(unread))


def _nothing(names: tuple[str, ...], lines: int, unread: list[str]) -> InputError:
    where = names[0] if len(names) == 1 else f"{len(names)} files"
    if unread:
        return InputError(f"no line of NCCL in it: {unread[0].split(': ', 1)[1]}", where=where)
    what = f"none of its {lines} lines is of NCCL" if lines else "it is empty"
    return InputError(what, where=where, hint="export NCCL_DEBUG=INFO in the job makes NCCL log")
