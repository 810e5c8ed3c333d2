"""A job of a batch system, as the batch system sees it."""

from busbw.base.value import Integer, Value

# States of Slurm in which a job still has something before it (man squeue, JOB STATE CODES).
_WAITING = frozenset(
    ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT")
)
_RUNNING = frozenset(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"))


class BatchJob(Value, kw_only=True, frozen=True):
    """One job, or one task of an array."""

    # As `17`, or `17_3` for task 3 of an array.
    job_id: str
    # PENDING, RUNNING, COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL, PREEMPTED, OUT_OF_MEMORY...
    state: str
    # Why it waits or ended; None: the batch system gives none.
    reason: str | None = None
    exit_code: Integer | None = None
    # The hosts it has or had, as a list such as n[0-3]; None: none yet.
    hosts: str | None = None
    # How often it was started again.
    restarts: Integer = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state not in _WAITING | _RUNNING
