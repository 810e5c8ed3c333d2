"""Logs that scripts/doctor_logs.sh took of jobs on GPUs: each must be diagnosed as what was done to the job."""

from pathlib import Path

import pytest

from busbw.api.diagnoses import doctor_logs

LOGS = Path(__file__).parent / "logs"
# What must be found, and all that may be found besides: what a machine has of its own.
MUST = {
    "one-gpu": frozenset(),
    "healthy": frozenset(),
    "p2p-off": frozenset({"LOG010"}),
    "sockets": frozenset({"LOG012"}),
    "no-topology-file": frozenset({"LOG013"}),
    "no-plugin": frozenset({"LOG005"}),
    "one-rank-differs": frozenset({"LOG021"}),
    "one-rank-killed": frozenset({"LOG030"}),
}
MAY = frozenset({"LOG011", "LOG014", "LOG022", "LOG041", "LOG046", "LOG050"})


@pytest.mark.parametrize("name", MUST)
def test_a_job_on_gpus_is_diagnosed_as_what_was_done_to_it(name: str):
    log = LOGS / f"{name}.log"
    if not log.exists():
        pytest.skip(f"nobody has taken {log.name} yet: run scripts/doctor_logs.sh on a machine with GPUs")

    codes = {finding.code for finding in doctor_logs([str(log)]).findings}

    assert MUST[name] <= codes <= MUST[name] | MAY
