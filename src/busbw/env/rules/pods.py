"""Manifests of jobs with a launcher: what is set for it and not for the workers."""

from collections.abc import Iterator

from busbw.env.rules.subject import Subject, report, setting_text, where
from busbw.model.assignment import Assignment
from busbw.model.finding import Finding

_LAUNCHER, _WORKER = "Launcher:", "Worker:"
_FOR_RANKS = ("NCCL_", "UCX_", "FI_", "OFI_", "SHARP_")


def pods(subject: Subject) -> Iterator[Finding]:
    """Yield variables that an MPIJob sets for its launcher only."""
    reading = subject.reading
    if reading.language != "kubernetes" or not any("MPIJob" in line for line in reading.lines):
        return
    roles = {id(each): _role(reading.lines, each) for each in reading.assignments if each.form == "manifest"}
    workers = {each.name for each in reading.assignments if roles.get(id(each)) == _WORKER}
    passed = {each.name for each in reading.assignments if each.form in ("mpirun", "mca", "export", "prefix")}
    passed |= {name for launch in reading.launches for name in launch.forwards}
    for each in reading.assignments:
        if roles.get(id(each)) != _LAUNCHER or each.name in workers | passed:
            continue
        if each.name.startswith(_FOR_RANKS):
            yield report(
                "ENV106",
                at=where(each),
                evidence=setting_text(each),
                confidence="likely",
                effect="the ranks run with the default",
                fix=f"-x {each.name} in the launcher's mpirun, or the same entry for the workers",
                name=each.name,
            )


def _role(lines: tuple[str, ...], each: Assignment) -> str | None:
    """Return the key of the replica that a line of a manifest belongs to."""
    for line in reversed(lines[: each.line]):
        key = line.strip()
        if key in (_LAUNCHER, _WORKER):
            return key
        if key == "---":
            return None
    return None
