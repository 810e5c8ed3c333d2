"""Which algorithm, protocol and channels NCCL chose: by the plug-in that it shows its calls to, or by its own log."""

import ctypes
import os
import re
from importlib import resources
from pathlib import Path
from types import TracebackType

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


PLUGIN = "_nccl_profiler.so"
_SPACE_BYTES = 1 << 16
_NOT_TOLD = "-"


class Watcher:
    """Looks while it is entered; `seen` is what the last such stretch showed."""

    def __init__(self, loaded: bool, log: TuningLog | None) -> None:  # noqa: FBT001 - a fact of the plan
        self.seen: tuple[NcclChoice, ...] = ()
        self._plugin = ctypes.CDLL(str(resources.files("busbw") / PLUGIN)) if loaded else None
        self._log = log

    def __enter__(self) -> None:
        if self._log is not None:
            self._log.begin()
        if self._plugin is not None:
            self._plugin.busbw_watch(1)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.seen = self._log.end() if self._log is not None else ()
        if self._plugin is None:
            return
        self._plugin.busbw_watch(0)
        space = ctypes.create_string_buffer(_SPACE_BYTES)
        if not self.seen and self._plugin.busbw_seen(space, len(space)) <= len(space):
            self.seen = tuple(_choice(line) for line in space.value.decode(errors="replace").splitlines())


def _choice(line: str) -> NcclChoice:
    function, algorithm, protocol, channels = line.split(" ")
    return NcclChoice(
        function=function,
        algorithm=None if algorithm == _NOT_TOLD else algorithm,
        protocol=None if protocol == _NOT_TOLD else protocol,
        channels=int(channels) if int(channels) >= 0 else None,
    )
