"""Requests to stop that reach a rank as signals, where the launching side is on another host."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

# Launchers forward the first; batch systems and launchers send the second before they kill.
_SIGNALS = (signal.SIGUSR1, signal.SIGTERM)
_LOOK_S = 5.0
_ALONE_STALLS = 2
_ALONE_S = 60.0
_EXIT_CODE = 128 + signal.SIGTERM


class StopRequests:
    """Listens from the start of a rank, before any library makes threads of its own.

    A thread waits for the signals, which all others block: a rank that is inside a call of MPI for long is told too.
    The measuring loops let go of Python's lock, and nothing wakes this thread but a signal, and a look now and then
    whether anything moves at all: a host that is cut off has nobody who would end its ranks.
    """

    def __init__(self, grace_s: float, stall_s: float) -> None:
        self._grace_s = grace_s
        # The launching side, which can say more, gives up first.
        self._alone_s = _ALONE_STALLS * stall_s + _ALONE_S
        self._asked = False
        self._obey: Callable[[], None] | None = None
        self._progress: Callable[[], bytes] = bytes
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        threading.Thread(target=self._listen, daemon=True).start()

    def tell(self, obey: Callable[[], None], progress: Callable[[], bytes]) -> None:
        """Have `obey` called at each request, at once if there was one; `progress` differs when there is any."""
        self._progress = progress
        self._obey = obey
        if self._asked:
            obey()

    def _listen(self) -> None:
        seen, seen_s = b"", time.monotonic()
        while True:
            info = signal.sigtimedwait(_SIGNALS, _LOOK_S)
            now = self._progress()
            if now != seen:
                seen, seen_s = now, time.monotonic()
            if time.monotonic() - seen_s > self._alone_s:
                _leave(f"saw nothing move for {self._alone_s:.0f} s, and nobody ended it")
            if info is None:
                continue
            self._asked = True
            if self._obey is not None:
                self._obey()
            if info.si_signo == signal.SIGTERM:
                self._end_after_grace()

    def _end_after_grace(self) -> None:
        """Leave the rank its time to write down what it has, then end it, whatever it waits for."""
        again = signal.sigtimedwait((signal.SIGTERM,), self._grace_s)
        _leave("was told to end twice" if again is not None else f"did not stop within {self._grace_s:g} s of SIGTERM")


def _leave(why: str) -> NoReturn:
    sys.stderr.write(f"busbw: this rank {why}\n")
    sys.stderr.flush()
    os._exit(_EXIT_CODE)
