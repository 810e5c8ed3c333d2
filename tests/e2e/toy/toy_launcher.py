"""A launcher that a site might bring: its mpirun behind a wrapper."""

import msgspec

from busbw.measure.launchers import mpirun
from busbw.measure.launchers.launcher import RankLauncher, words_of_job
from busbw.model.launch import Start
from busbw.model.plan import Job


def job(start: Start) -> Job:
    """Return the command of mpirun, started by env."""
    made = mpirun.job(start)
    return msgspec.structs.replace(made, argv=("env", "TOY_LAUNCHER=wrapped", *made.argv))


LAUNCHER = RankLauncher(name="wrapped", job=job, visit=mpirun.visit, words=words_of_job(job))
