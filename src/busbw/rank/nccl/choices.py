"""Which algorithm, protocol and channels NCCL chose: by the plug-in that it shows its calls to, or by its own log."""

import ctypes
from importlib import resources
from types import TracebackType

from busbw.model.record import NcclChoice
from busbw.rank.nccl.tuning_log import TuningLog

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
