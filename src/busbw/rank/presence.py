"""What a rank leaves on its host so that a visit finds it: its heartbeat, its processes, where it writes its stack."""

import contextlib
import faulthandler
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from busbw.base import layout
from busbw.rank.network import read_counters

# A visit sends it; faulthandler answers without Python's lock, so that a rank that hangs in a call answers too.
STACK_SIGNAL = signal.SIGUSR2
_SHARED = "/dev/shm/"  # noqa: S108 - where every MPI library keeps its segments
_MOST_MAPS_BYTES = 8 * 2**20
# Launchers' processes on a host that start ranks and outlive them.
_STARTERS = ("prted", "orted", "hydra_pmi_proxy", "hydra_bstrap_pr", "pmi_proxy")
_MOST_PARENTS = 16


class Presence:
    """The files of one process beside its heartbeat.

    With several hosts that is a folder of this host alone (`is_own_folder`), else the one that the launching side
    watches.
    """

    def __init__(self, folder: Path, ranks: Sequence[int], *, keeps_counters: bool, is_own_folder: bool) -> None:
        self._folder = folder
        self._ranks = tuple(ranks)
        self._keeps_counters = keeps_counters
        self._is_own_folder = is_own_folder
        self._stack: BinaryIO = (folder / layout.stack_name(self._ranks[0])).open("wb", buffering=0)
        faulthandler.register(STACK_SIGNAL, file=self._stack, all_threads=True, chain=False)
        self.note()

    def note(self) -> None:
        """Write down what belongs to this process now: who started it, what it shares with others on this host."""
        said = {"process_id": os.getpid(), "starters": _starters(), "shared_memory": sorted(_shared_memory())}
        path = self._folder / layout.presence_name(self._ranks[0])
        # A folder in memory that is full must not end a measurement.
        with contextlib.suppress(OSError):
            path.write_bytes(msgspec.json.encode(said))

    def begin_point(self) -> None:
        """Keep the counters of the network devices as they are before a point; one process of each host does."""
        if self._keeps_counters:
            with contextlib.suppress(OSError):
                (self._folder / layout.COUNTERS_FILE).write_bytes(msgspec.json.encode(read_counters()))

    def leave(self) -> None:
        """Remove what this process has written, and its own folder with the last one."""
        faulthandler.unregister(STACK_SIGNAL)
        self._stack.close()
        for rank in self._ranks:
            for name in (layout.stack_name(rank), layout.presence_name(rank)):
                (self._folder / name).unlink(missing_ok=True)
        if self._keeps_counters:
            (self._folder / layout.COUNTERS_FILE).unlink(missing_ok=True)
        if not self._is_own_folder:
            return
        for rank in self._ranks:
            (self._folder / layout.heartbeat_name(rank)).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def _shared_memory() -> frozenset[str]:
    with Path("/proc/self/maps").open("rb") as file:
        lines = file.read(_MOST_MAPS_BYTES).splitlines()
    paths = (line.split(maxsplit=5)[5].decode("utf-8", errors="replace") for line in lines if line.count(b"/"))
    own = layout.hearts_folder(os.getuid(), "")
    return frozenset(
        path for path in paths if path.startswith(_SHARED) and not path.startswith(own) and "(deleted)" not in path
    )


def _starters() -> list[tuple[int, int]]:
    """Return the launcher's processes among the parents, as id and start time: an id alone may be given again."""
    found: list[tuple[int, int]] = []
    process_id = os.getppid()
    while process_id > 1 and len(found) < _MOST_PARENTS:
        try:
            line = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        name = line[line.index("(") + 1 : line.rindex(")")]
        fields = line.rpartition(")")[2].split()
        if name in _STARTERS:
            # The start time is field 22 of the line; the list begins with field 3.
            found.append((process_id, int(fields[19])))
        process_id = int(fields[1])
    return found
