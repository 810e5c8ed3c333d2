"""Starts ranks on this host without MPI, with the variables that torchrun sets, and stays until they end.

Arguments: how many, then the command. The first rank that fails ends the others.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

_LOOK_S = 0.02
_TERM_GRACE_S = 3.0
_PR_SET_PDEATHSIG = 1


def start(count: int, command: Sequence[str]) -> int:
    """Run `count` ranks to their end. Returns the first exit code that is not 0, else 0."""
    libc = ctypes.CDLL(None)
    ranks = [
        subprocess.Popen(
            command,
            env={**os.environ, **_place(rank, count)},
            preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),  # noqa: PLW1509 - no threads here
        )
        for rank in range(count)
    ]
    signal.signal(signal.SIGTERM, lambda _signal, _frame: _end(ranks))
    while True:
        codes = [_exit_code(process.pid) for process in ranks]
        failed = [(rank, code) for rank, code in enumerate(codes) if code]
        if failed:
            rank, code = failed[0]
            how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
            print(f"busbw rank {rank} {how}", file=sys.stderr, flush=True)
            # Seen by the launching side first: it knows better than this which rank was the cause.
            time.sleep(_TERM_GRACE_S)
            _end(ranks)
            return max(code, 1)
        if all(code == 0 for code in codes):
            return 0
        time.sleep(_LOOK_S)


def _exit_code(process_id: int) -> int | None:
    """Return how a rank ended, as subprocess has it; None while it runs.

    It is not collected: until the end the launching side can ask the kernel for the same.
    """
    ended = os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _place(rank: int, count: int) -> dict[str, str]:
    """Return torchrun's variables. The ranks meet on this host even where its name leads nowhere."""
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1"}


def _end(ranks: Sequence["subprocess.Popen[bytes]"]) -> None:
    for process in ranks:
        if process.poll() is None:
            process.terminate()
    ends_s = time.monotonic() + _TERM_GRACE_S
    for process in ranks:
        try:
            process.wait(max(ends_s - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(start(int(sys.argv[1]), sys.argv[2:]))
