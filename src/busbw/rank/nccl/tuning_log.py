"""What NCCL's own tuning log says of calls: the lines it writes where its profiler interface is silent.

Symmetric kernels and copy-engine collectives are chosen before the point at which a profiler is told of a call.
"""

import os
import re
from pathlib import Path

from busbw import _core
from busbw.model.record import NcclChoice

_MOST_BYTES = 1 << 20
# As NCCL 2.24 to 2.30 writes them (src/enqueue.cc, src/scheduler/symmetric_sched.cc, src/ce_coll.cc).
_SYMMETRIC = re.compile(r"NCCL INFO (\w+) \[Symmetric\]: \d+ Bytes -> Kernel (\w+) nchannels (\d+)")
_COPY_ENGINE = re.compile(r"NCCL INFO (\w+) \[Copy Engine\]: \d+ Bytes")
_USUAL = re.compile(r"NCCL INFO (\w+): \d+ Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}")
_VARIABLES = ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE")


class TuningLog:
    """Makes NCCL write its tuning log for a while, into a file of ours."""

    def __init__(self, nccl: _core.Nccl, path: Path) -> None:
        self._nccl = nccl
        self._path = path
        # A log that the user asked for must not be cut off: NCCL opens its file anew each time.
        self._possible = nccl.has_debug_reset and not any(name in os.environ for name in _VARIABLES)

    def begin(self) -> None:
        """Turn the log on."""
        if self._possible:
            os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING", NCCL_DEBUG_FILE=str(self._path))
            self._nccl.reset_debug()

    def end(self) -> tuple[NcclChoice, ...]:
        """Turn the log off and return what it says."""
        if not self._possible:
            return ()
        for name in _VARIABLES:
            del os.environ[name]
        self._nccl.reset_debug()
        try:
            with self._path.open("rb") as file:
                text = file.read(_MOST_BYTES).decode(errors="replace")
        except OSError:
            return ()
        self._path.unlink(missing_ok=True)
        return choices_in(text)


def choices_in(text: str) -> tuple[NcclChoice, ...]:
    """Return what the lines of a tuning log say, each choice once."""
    found: dict[NcclChoice, None] = {}
    for line in text.splitlines():
        if match := _SYMMETRIC.search(line):
            name = match[2].removeprefix("ncclSymk")
            found[NcclChoice(function=match[1], algorithm="SYMMETRIC", protocol=name, channels=int(match[3]))] = None
        elif match := _COPY_ENGINE.search(line):
            found[NcclChoice(function=match[1], algorithm="COPY_ENGINE", protocol=None, channels=None)] = None
        elif match := _USUAL.search(line):
            channels = int(match[5]) - int(match[4]) + 1
            found[NcclChoice(function=match[1], algorithm=match[2], protocol=match[3], channels=channels)] = None
    return tuple(found)
