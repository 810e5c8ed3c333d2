"""The heartbeat files of this process, one for each of its ranks: where it is, readable from outside while it hangs."""

import contextlib
import fcntl
import mmap
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from busbw.base import layout
from busbw.base.layout import HEARTBEAT_BYTES, HEARTBEAT_STATES, HEARTBEAT_WORDS
from busbw.model.plan import Plan, Sweep
from busbw.model.record import step_words

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


_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# How often a folder is made anew that somebody took for a left one in the moment after it was made.
_MOST_TRIES = 100


class Hearts(msgspec.Struct, frozen=True):
    """A folder for heartbeats. `lock`: a descriptor that says to others that it is in use; None in a run's folder."""

    folder: Path
    lock: int | None = None


def hearts_of(plan: Plan, raw: Path, attempt: int) -> Hearts:
    """Return where heartbeats of this host go: `raw` where all ranks are on one host, else memory of this host.

    Raises RuntimeError when the folder is there and somebody else's.
    """
    if not plan.placement.is_spread:
        return Hearts(raw)
    folder = Path(layout.hearts_folder(os.getuid(), f"{plan.run_id}.{attempt}"))
    for _try in range(_MOST_TRIES):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        lock = _opened(folder)
        if lock is not None:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if _is_same(folder, lock):
                return Hearts(folder, lock)
            os.close(lock)
        elif os.path.lexists(folder):
            break
    raise RuntimeError(f"{folder} is there already, and not this user's folder")


def remove_left() -> None:
    """Remove this user's folders of heartbeats that no process holds any more: busbw was killed, or cut off.

    The kernel gives a lock back when its process ends, however it ends and in whatever namespace it was.
    """
    import shutil  # noqa: PLC0415 - it takes 2 ms of every rank, and only the first of a host has a use for it

    own = Path(layout.hearts_folder(os.getuid(), ""))
    with contextlib.suppress(OSError):
        for folder in list(own.parent.glob(f"{own.name}*")):
            with _held(folder) as lock:
                if lock is not None and _is_same(folder, lock):
                    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[int | None]:
    """Give a descriptor that holds a folder alone; None where somebody else has it."""
    lock = _opened(folder)
    if lock is None:
        yield None
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield None
    else:
        yield lock
    finally:
        os.close(lock)


def _opened(folder: Path) -> int | None:
    """Return a descriptor of a folder of this user; None where it is not a folder, another's, or gone."""
    try:
        descriptor = os.open(folder, _FOLDER_FLAGS)
    except OSError:
        return None
    if os.fstat(descriptor).st_uid == os.geteuid():
        return descriptor
    os.close(descriptor)
    return None


def _is_same(folder: Path, descriptor: int) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    opened = os.fstat(descriptor)
    return stat.S_ISDIR(found.st_mode) and (found.st_dev, found.st_ino) == (opened.st_dev, opened.st_ino)
