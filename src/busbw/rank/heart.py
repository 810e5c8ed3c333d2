"""The heartbeat file of this rank: where it is, readable from outside while it hangs."""

import mmap
import os
from pathlib import Path

from busbw.layout import HEARTBEAT_BYTES, HEARTBEAT_STATES, HEARTBEAT_WORDS

_WORD = {name: index for index, name in enumerate(HEARTBEAT_WORDS)}


class Heart:
    """Eight words in a mapped file; the measuring loops count in them, this class sets the rest."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            # Reserved, not sparse: on a full disk a sparse page would be a bus error at its first write.
            os.posix_fallocate(descriptor, 0, HEARTBEAT_BYTES)
            self.memory = mmap.mmap(descriptor, HEARTBEAT_BYTES)
        finally:
            os.close(descriptor)
        self._words = memoryview(self.memory).cast("Q")
        for index in range(len(HEARTBEAT_WORDS)):
            self._words[index] = 0
        self._words[_WORD["process_id"]] = os.getpid()

    def enter(self, state: str, point: int | None = None) -> None:
        """Say what this rank does next."""
        self._words[_WORD["state"]] = HEARTBEAT_STATES.index(state)
        if point is not None and point != self._words[_WORD["point"]]:
            self._words[_WORD["point"]] = point
            self._words[_WORD["samples"]] = 0

    @property
    def step(self) -> str:
        """What this rank is doing, in words."""
        state = HEARTBEAT_STATES[self._words[_WORD["state"]]]
        return f"{state}, point {self._words[_WORD['point']]}"

    @property
    def stop_asked(self) -> bool:
        """Whether the launching side wants this run to end after the samples in hand."""
        return self._words[_WORD["stop_asked"]] != 0
