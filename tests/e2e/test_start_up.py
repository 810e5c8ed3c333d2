"""Asking for help costs next to nothing."""

import os
import subprocess

from .runner import Busbw, environment_of

# A promise of the house. CPU time, not wall time: a busy machine makes it later. A slow one, or one whose cores are two
# halves of one, makes it more: there it is so many bare starts of Python, measured beside it, the smallest of each.
MOST_CPU_S = 0.150
MOST_BARE_STARTS = 10
TIMES = 7


def test_help_takes_less_than_150_ms_of_cpu(busbw: Busbw):
    command = [str(environment_of("Open MPI") / "bin" / "busbw"), "--help"]

    bare = [str(environment_of("Open MPI") / "bin" / "python"), "-c", "pass"]

    spent_s, bare_s = [], []
    for _ in range(TIMES):
        spent_s.append(_cpu_s(command, busbw.environment()))
        bare_s.append(_cpu_s(bare, busbw.environment()))

    most_s = max(MOST_CPU_S, MOST_BARE_STARTS * min(bare_s))
    assert min(spent_s) < most_s, [f"{value * 1e3:.0f} ms" for value in (*spent_s, most_s)]


def _cpu_s(command: list[str], environment: dict[str, str]) -> float:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _process_id, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime
