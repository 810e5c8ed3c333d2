"""Why a foreign program ended before its time: by its own words, by its launcher's, by its exit code."""

from busbw.judge.autopsy import hosts_of_ranks
from busbw.measure.backends.foreign import Failure
from busbw.measure.execute import processes
from busbw.measure.execute.blame import Blame
from busbw.measure.launchers.notices import Notice, first_death
from busbw.model.culprit import Culprit
from busbw.model.plan import Plan, Step


def blame_program(plan: Plan, step: Step, text: str, failure: Failure | None, exit_code: int, where: str) -> Blame:
    """Return why a step ended. `text`: the end of what was printed; `where`: how far the program had come."""
    short = step.program.rsplit("/", 1)[-1]
    notice = first_death(text)
    culprit = _culprit(plan, failure, notice, where)
    if failure is not None:
        at = "" if culprit is not None or failure.host is None else f" ({_place(failure)})"
        return Blame(f"{short}: {failure.cause}{at}", culprit)
    if exit_code < 0:
        return Blame(f"{_started_by(plan, short)} was {processes.describe_status(exit_code)}, {where}", culprit)
    if culprit is not None:
        return Blame(f"rank {culprit.rank} of {short} {culprit.what}, {where}", culprit)
    if exit_code == 0 and ("USAGE:" in text or "Usage:" in text):
        return Blame(f"{short} printed its usage and measured nothing: it does not take one of its options", None)
    if exit_code == 0:
        return Blame(f"{short} ended without a row of results", None)
    said = next((line.strip() for line in text.splitlines() if _says_something(line)), None)
    words = f", {where}" + (f"; it says: {said[:200]}" if said is not None else "")
    return Blame(f"{_started_by(plan, short)} {processes.describe_status(exit_code)}{words}", None)


def _culprit(plan: Plan, failure: Failure | None, notice: Notice | None, where: str) -> Culprit | None:
    """Return the rank that failure or launcher names; None when neither tells which."""
    told = failure.rank if failure is not None and failure.rank is not None else None
    rank = told if told is not None else notice.rank if notice is not None else None
    if rank is None:
        return None
    process_id = failure.process_id if told is not None and failure is not None else None
    if process_id is None and notice is not None:
        process_id = notice.process_id
    return Culprit(
        rank=rank,
        host=(failure.host if failure is not None else None) or _host_of(plan, rank),
        process_id=process_id or 0,
        what=f"gave up: {failure.cause}" if failure is not None else notice.what if notice is not None else "",
        step=where,
    )


def _host_of(plan: Plan, rank: int) -> str:
    hosts = hosts_of_ranks(plan)
    return hosts[rank] if rank < len(hosts) else plan.host.name


def _place(failure: Failure) -> str:
    return f"host {failure.host}" + (f", process {failure.process_id}" if failure.process_id is not None else "")


def _started_by(plan: Plan, short: str) -> str:
    return f"mpirun of {short}" if plan.mpi is not None else short


def _says_something(line: str) -> bool:
    """Whether a line is neither empty, nor a divider, nor part of a table."""
    words = line.strip()
    return bool(words.strip("-=#* ")) and not words.startswith("#") and not words[0].isdigit()
