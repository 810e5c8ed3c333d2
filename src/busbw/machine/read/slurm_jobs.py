"""Jobs as `scontrol --oneliner show job` lists them: a line a job, words of NAME=value."""

import re

from busbw.model.batch_job import BatchJob

# Values of a user's own words (names, comments, commands) may hold anything; these stand before all of them but one.
_FIELDS = {
    name: re.compile(rf"(?:^| ){name}=(\S*)")
    for name in ("JobId", "ArrayJobId", "ArrayTaskId", "JobState", "Reason", "ExitCode", "Restarts")
}
_HOSTS = re.compile(r" NodeList=(\S*)")
_NUMBER = re.compile(r"\d{1,18}")
_EXIT = re.compile(r"(\d{1,6}):\d{1,6}")
_NOTHING = ("None", "(null)", "", "N/A")
# The user's own name for the job comes second, and may imitate what follows it.
_NAME = re.compile(r" JobName=.*? (?=UserId=)")


def jobs(text: str) -> tuple[BatchJob, ...]:
    """Return the jobs of a listing; lines that are none are left out."""
    return tuple(found for line in text.splitlines() if (found := _job(line)) is not None)


def _job(line: str) -> BatchJob | None:
    line = _NAME.sub(" ", line, count=1)
    fields = {name: match[1] for name, pattern in _FIELDS.items() if (match := pattern.search(line)) is not None}
    number, state = fields.get("JobId", ""), fields.get("JobState", "")
    if _NUMBER.fullmatch(number) is None or not state:
        return None
    task = fields.get("ArrayTaskId")
    ended = _EXIT.fullmatch(fields.get("ExitCode", ""))
    hosts = _HOSTS.search(line)
    restarts = fields.get("Restarts", "")
    return BatchJob(
        job_id=f"{fields.get('ArrayJobId', number)}_{task}" if task is not None else number,
        state=state,
        reason=_said(fields.get("Reason")),
        exit_code=int(ended[1]) if ended is not None else None,
        hosts=_said(hosts[1] if hosts is not None else None),
        restarts=int(restarts) if _NUMBER.fullmatch(restarts) is not None else 0,
    )


def _said(value: str | None) -> str | None:
    return None if value is None or value in _NOTHING else value
