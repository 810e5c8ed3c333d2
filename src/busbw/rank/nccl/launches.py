"""What starting a kernel takes on this process's GPUs: part of every small message, and another in every start."""

from collections.abc import Sequence

from busbw import _core
from busbw.model.record import EmptyLaunches
from busbw.model.sweep import SMALL_NCCL_BYTES

# A batch is what a sample of small messages is in stream mode.
_LAUNCHES = 20
_BATCHES = 10


class Launcher:
    """Takes the time of empty launches. Every rank of the run must call it at the same places."""

    def __init__(self, gpus: Sequence[_core.Gpu], gate: _core.Gate) -> None:
        self._gpus = list(gpus)
        self._gate = gate

    def take(self) -> tuple[EmptyLaunches | None, ...]:
        """Return what launches take on each GPU; None where there are no kernels to launch."""
        if not all(gpu.has_kernels for gpu in self._gpus):
            return (None,) * len(self._gpus)
        found = _core.empty_launches(self._gpus, self._gate, batches=_BATCHES, launches=_LAUNCHES)
        return tuple(
            EmptyLaunches(
                launches=_LAUNCHES,
                issue_ns=tuple(one.issue_ns),
                device_ns=tuple(one.device_ns),
                done_ns=tuple(one.done_ns),
            )
            for one in found
        )

    def beside(self, size_bytes: int) -> tuple[EmptyLaunches | None, ...]:
        """Return the same beside messages of this size; None for each GPU where they are not small."""
        return self.take() if size_bytes < SMALL_NCCL_BYTES else (None,) * len(self._gpus)
