"""What is wrong: with a node, by checks that need no job; with a job, by its logs."""

from collections.abc import Sequence
from pathlib import Path

from busbw.base.errors import InputError
from busbw.facts.platforms import all_platforms, find_platform
from busbw.logs.diagnosis import diagnose
from busbw.logs.excerpts import lines_of
from busbw.logs.network_use import NetworkUse
from busbw.logs.pages import page_lines
from busbw.logs.reader import LogReader
from busbw.machine.capture.sites import site_files
from busbw.machine.detect.ladder import contradictions, detect, fit
from busbw.machine.health.network import features
from busbw.machine.health.node import node_of
from busbw.machine.health.system import examine
from busbw.machine.named import host_of_snapshot, snapshot_here, snapshot_of_file
from busbw.machine.read.state import state_of
from busbw.model.finding import Diagnosis, HostDiagnosis, Told, counts_of
from busbw.model.host import Answer, Contradiction, Hardware, Snapshot
from busbw.model.platform import Platform
from busbw.store import sources


def examine_here(*, platform: str | None = None, logs: Sequence[str] = ()) -> HostDiagnosis:
    """Return what is wrong with this host, without running anything on its GPUs or NICs. It takes some seconds.

    `platform` is what the host should be; None: it is detected. `logs`: of a job that ran here, which tell what it used
    of the network. Raises InputError for a platform that does not exist, and for logs that cannot be read.
    """
    used = _used(logs)
    return _examined(snapshot_here(), platform, used)


def examine_captured(path: Path, *, platform: str | None = None, logs: Sequence[str] = ()) -> HostDiagnosis:
    """Return what was wrong with a captured host. Raises InputError for a file that is not a snapshot too."""
    return _examined(snapshot_of_file(path), platform, _used(logs))


def _used(logs: Sequence[str]) -> dict[str, Told]:
    """Return what logs say that a job used of the network, by the id of the feature."""
    use = NetworkUse()
    for path in sources.found(tuple(logs)) if logs else ():
        with sources.opened(path) as source:
            for block in source.blocks():
                use.feed(block)
    return use.told()


def _examined(snapshot: Snapshot, named: str | None, used: dict[str, Told]) -> HostDiagnosis:
    probe = host_of_snapshot(snapshot)
    platform, differences = _platform(probe.hardware, snapshot.answers, named)
    node = node_of(probe, state_of(snapshot, probe.settings), platform, differences)
    checks = examine(node)
    return HostDiagnosis(
        hostname=probe.hardware.hostname,
        captured=snapshot.captured,
        root=snapshot.root,
        container=probe.hardware.container,
        platform=platform.id if platform is not None else None,
        checks=checks,
        counts=counts_of(found for check in checks for found in check.findings),
        network=features(node, used),
    )


def _platform(
    hardware: Hardware, answers: tuple[Answer, ...], named: str | None
) -> tuple[Platform | None, tuple[Contradiction, ...]]:
    """Return the platform that is named, else the one that is detected, and where the host is not like it."""
    sites = site_files()
    if named is not None:
        fitting = fit(find_platform(named, sites).platform, hardware)
        return fitting.platform, contradictions(fitting.platform, fitting.comparisons, hardware)
    detection = detect(hardware, answers, all_platforms(sites))
    if detection.platform is None:
        return None, ()
    return find_platform(detection.platform, sites).platform, detection.contradictions


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
    diagnosis = diagnose(reader, names, platform=kind, unread=tuple(unread))
    if diagnosis.verdict.outcome != "failed" and not diagnosis.verdict.because:
        if _is_page(reader):
            where = names[0] if len(names) == 1 else f"{len(names)} files"
            raise InputError("it is a page of text, and no log stands in it", where=where, hint=_PAGE_HINT)
        if not reader.knows_something:
            raise _nothing(names, reader.sieve.lines, unread)
    return diagnosis


_PAGE_HINT = "give doctor what the job printed; for the settings in a page: busbw env lint FILE"


def _is_page(reader: LogReader) -> bool:
    """Return whether all that was read are pages of text, as a README, in which no log stands."""
    kept = tuple(reader.excerpts.kept)
    pages = page_lines(kept, tuple(reader.lengths))
    return bool(pages) and all((source, number) in pages for source, number, text in lines_of(kept) if text.strip())


def _nothing(names: tuple[str, ...], lines: int, unread: list[str]) -> InputError:
    where = names[0] if len(names) == 1 else f"{len(names)} files"
    if unread:
        return InputError(f"no line of NCCL in it: {unread[0].split(': ', 1)[1]}", where=where)
    what = f"none of its {lines} lines is of NCCL, or an error of MPI or UCX that is known" if lines else "it is empty"
    return InputError(what, where=where, hint="export NCCL_DEBUG=INFO in the job makes NCCL log")
