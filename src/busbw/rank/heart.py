"""The heartbeat files of this process, one for each of its ranks: where it is, readable from outside while it hangs."""

import mmap
import os
from collections.abc import Sequence
from pathlib import Path

from busbw.base.layout import HEARTBEAT_BYTES, HEARTBEAT_STATES, HEARTBEAT_WORDS
from busbw.model.step import step_words
from busbw.model.sweep import Sweep

_WORD = {name: index for index, name in enumerate(HEARTBEAT_WORDS)}


class Heart:
    """Eight words in a mapped file for each rank; the measuring loops count in them, this class sets the rest."""

    def __init__(self, paths: Sequence[Path], sweeps: tuple[Sweep, ...]) -> None:
        self._sweeps = sweeps
        self.memories = tuple(_mapped(path) for path in paths)
        self._words = tuple(memoryview(memory).cast("Q") for memory in self.memories)
        for words in self._words:
            for index in range(len(HEARTBEAT_WORDS)):
                words[index] = 0
            words[_WORD["process_id"]] = os.getpid()

    @property
    def memory(self) -> mmap.mmap:
        """The words of the first rank."""
        return self.memories[0]

    def enter(self, state: str, point: int | None = None) -> None:
        """Say what this process does next; with a point, another turn of one begins."""
        for words in self._words:
            words[_WORD["state"]] = HEARTBEAT_STATES.index(state)
            if point is not None:
                words[_WORD["point"]] = point
                words[_WORD["samples"]] = 0
                words[_WORD["turns"]] += 1

    @property
    def step(self) -> str:
        """What this process is doing, in words."""
        words = self._words[0]
        state = HEARTBEAT_STATES[words[_WORD["state"]]]
        return step_words(state, words[_WORD["point"]], words[_WORD["samples"]], self._sweeps)

    @property
    def stop_asked(self) -> bool:
        """Whether the launching side wants this run to end after the samples in hand."""
        return self._words[0][_WORD["stop_asked"]] != 0

    def read(self) -> bytes:
        """Return the words of all ranks of this process as they are now."""
        return b"".join(memory[:] for memory in self.memories)

    def ask_to_stop(self) -> None:
        """Ask this process to end after the samples in hand; rank 0 decides for all."""
        self._words[0][_WORD["stop_asked"]] = 1


def _mapped(path: Path) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        # Reserved, not sparse: on a full disk a sparse page would be a bus error at its first write.
        os.posix_fallocate(descriptor, 0, HEARTBEAT_BYTES)
        return mmap.mmap(descriptor, HEARTBEAT_BYTES)
    finally:
        os.close(descriptor)
