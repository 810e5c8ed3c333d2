"""Whom a failure began on."""

from busbw.base.value import Integer, Value


class Culprit(Value, kw_only=True, frozen=True):
    """The rank a failure began on, as far as it could be told."""

    rank: Integer
    host: str
    process_id: Integer
    # What happened to it: "killed by signal 9 (SIGKILL)", "exited with code 3", "stopped (SIGSTOP)", ...
    what: str
    # What it was doing: "all_reduce 4 KiB, sample 17", "starting".
    step: str
