"""Looks at what is on this host of a run, or ends it: `python -P -m busbw.rank.visit DIRECTORY TAG look|end`.

The launching side starts it once on every host when something went wrong, and reads the one line it prints. Where there
are several it needs nothing of the run directory, which may be what hangs.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from busbw.base import layout
from busbw.model.visit import VISIT_PREFIX, BeatSeen, CounterSeen, ProcessSeen, Visit, progress
from busbw.rank import visit_processes
from busbw.rank.network import read_counters
from busbw.rank.visit_processes import ras_status, within

_WORDS = struct.Struct(f"={len(layout.HEARTBEAT_WORDS)}Q")
_BEAT = re.compile(r"rank-(\d{5})\.beat")
_PRESENCE = re.compile(r"rank-\d{5}\.json")
_SHARED = "/dev/shm/"  # noqa: S108 - where every MPI library keeps its segments
_LOG_S = 2.0
_MOST_LOG_LINES = 20
# GPUs that fall ill, network devices that lose their link, memory that ends: words of the drivers and of the kernel.
_TELLING = re.compile(
    r"NVRM|Xid|mlx[45]|cxi|bnxt|irdma|\bhfi1|link is (?:not ready|down)|Out of memory|oom-kill|hung task|MCE"
)
_MOST_BYTES = 2**20


def beats(folder: Path) -> tuple[BeatSeen, ...]:
    """Return every readable heartbeat in a folder, by rank."""
    found = []
    for path in _files(folder, _BEAT):
        content = _bytes(path)
        if len(content) != layout.HEARTBEAT_BYTES:
            continue
        process_id, state, point, samples, calls, in_call, stop_asked, turns = _WORDS.unpack(content)
        largest = max(process_id, point, samples, calls, turns)
        if process_id == 0 or state >= len(layout.HEARTBEAT_STATES) or largest >= 2**63 or in_call > 2:
            continue
        found.append(
            BeatSeen(
                rank=int(path.name[5:10]),
                process_id=process_id,
                state=layout.HEARTBEAT_STATES[state],
                point=point,
                samples=samples,
                calls=calls,
                in_call=in_call,
                told_to_stop=stop_asked != 0,
                turns=turns,
            )
        )
    return tuple(found)


def starters(folder: Path) -> tuple[tuple[int, int], ...]:
    """Return the launcher's processes that ranks have named as theirs: id and start time."""
    found = set()
    for said in _presences(folder):
        for pair in said.get("starters", ()):
            if isinstance(pair, list) and len(pair) == 2 and all(isinstance(each, int) for each in pair):
                found.add((pair[0], pair[1]))
    return tuple(sorted(found))


def shared_memory(folder: Path) -> tuple[str, ...]:
    """Return the files under /dev/shm that ranks have named as theirs, as far as they are there and this user's."""
    found = set()
    for said in _presences(folder):
        found |= {path for path in said.get("shared_memory", ()) if isinstance(path, str)}
    return tuple(sorted(path for path in found if path.startswith(_SHARED) and "/.." not in path and _is_own(path)))


def counters(folder: Path, now: dict[str, int], later: dict[str, int]) -> tuple[CounterSeen, ...]:
    """Return the counters that are not 0, with what they were when the point began."""
    try:
        before = json.loads(_bytes(folder / layout.COUNTERS_FILE) or b"{}")
    except ValueError:
        before = {}
    return tuple(
        CounterSeen(
            name=name,
            at_point=before[name] if isinstance(before, dict) and isinstance(before.get(name), int) else None,
            now=value,
            later=later[name],
        )
        for name, value in sorted(now.items())
        if name in later and max(value, later[name]) > 0
    )


def kernel_lines() -> tuple[str, ...]:
    """Return the last lines of the kernel's log that may explain a hang; () where this user may not read it."""
    try:
        answer = subprocess.run(
            ["dmesg"],  # noqa: S607 - wherever the host has it
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_LOG_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = answer.stdout.decode("utf-8", errors="replace").splitlines()
    return tuple(line[:300] for line in lines if _TELLING.search(line))[-_MOST_LOG_LINES:]


def _presences(folder: Path) -> list[dict[str, list[object]]]:
    found = []
    for path in _files(folder, _PRESENCE):
        try:
            said = json.loads(_bytes(path))
        except ValueError:
            continue
        if isinstance(said, dict):
            found.append({name: each for name, each in said.items() if isinstance(each, list)})
    return found


def _files(folder: Path, name: re.Pattern[str]) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if name.fullmatch(path.name))
    except OSError:
        return []


def _bytes(path: Path) -> bytes:
    def read() -> bytes:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)

    return within(1.0, read) or b""


def _is_own(path: str) -> bool:
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except OSError:
        return False


_WATCHED_S = 1.0
_RAS_S = 10.0
_FILE_S = 1.0
_END_S = 8.0
_TAG = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")


def _hearts(directory: str, tag: str) -> Path:
    """Return where the ranks of this host are told of: memory of the host, or the run's folder with one host."""
    folder = Path(layout.hearts_folder(os.getuid(), tag))
    return folder if folder.is_dir() else Path(directory) / layout.RAW_DIRECTORY


def look(directory: str, tag: str) -> Visit:
    """Return what is here of the run, and change nothing."""
    folder = _hearts(directory, tag)
    process_ids = visit_processes.of_run(directory, tag)
    seen = beats(folder)
    ranks = {beat.process_id: beat.rank for beat in reversed(seen)}
    before = {process_id: visit_processes.stat(process_id) for process_id in process_ids}
    counted = read_counters()
    began_s = time.monotonic()
    time.sleep(_WATCHED_S)
    after = {process_id: visit_processes.stat(process_id) for process_id in process_ids}
    watched_s = time.monotonic() - began_s
    counted_later = read_counters()
    ours = tuple(process_id for process_id in process_ids if process_id in ranks)
    # What the kernel says of a rank that waits must be asked before a signal has woken it.
    waits = {each: (visit_processes.wchan(each), visit_processes.kernel_stack(each)) for each in process_ids}
    stacks = visit_processes.ask(folder, {process_id: ranks[process_id] for process_id in ours})
    native = visit_processes.native(ours)
    processes = []
    for process_id in process_ids:
        then, now = before[process_id], after[process_id]
        if then is None or now is None:
            continue
        processes.append(
            ProcessSeen(
                process_id=process_id,
                rank=ranks.get(process_id),
                name=now.name,
                state=now.state,
                wchan=waits[process_id][0],
                kernel_stack=waits[process_id][1],
                busy_s=round(now.busy_s - then.busy_s, 3),
                system_s=round(now.system_s - then.system_s, 3),
                watched_s=round(watched_s, 3),
                python_stack=stacks.get(process_id, ()),
                native_stack=native.get(process_id, ()),
            )
        )
    has_nccl = any(visit_processes.mapped(process_id, "libnccl") for process_id in ours)
    status = within(_RAS_S, ras_status) if has_nccl else None
    return Visit(
        host=socket.gethostname(),
        asked="look",
        unix_s=time.time(),
        beats=seen,
        moved=progress(beats(folder)) != progress(seen),
        processes=tuple(processes),
        counters=counters(folder, counted, counted_later),
        shared_memory=shared_memory(folder),
        load_average=os.getloadavg()[0],
        sees_plan=within(_FILE_S, (Path(directory) / layout.PLAN_FILE).exists),
        kernel_lines=kernel_lines(),
        ras=status.decode("utf-8", errors="replace") if status else None,
    )


def end(directory: str, tag: str) -> Visit:
    """End every process of the run here, remove what it kept in memory, and say what would not go."""
    folder = Path(layout.hearts_folder(os.getuid(), tag))
    seen = beats(folder)
    started = starters(folder)
    ended: set[int] = set()
    ends_s = time.monotonic() + _END_S
    while left := (*visit_processes.of_run(directory, tag), *_still_there(started)):
        if time.monotonic() > ends_s:
            break
        for process_id in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process_id, signal.SIGKILL)
        ended.update(left)
        time.sleep(0.05)
    shared = shared_memory(folder)
    if not left:
        for path in _unused(shared):
            with contextlib.suppress(OSError):
                Path(path).unlink()
        if not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
    return Visit(
        host=socket.gethostname(),
        asked="end",
        unix_s=time.time(),
        beats=seen,
        shared_memory=tuple(path for path in shared if Path(path).exists()),
        ended=len(ended - set(left)),
        left=tuple(sorted(left)),
        problems=(f"{folder} could not be removed",) if not left and folder.exists() else (),
    )


def _still_there(starters: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return those of the launcher's processes that are the same as when a rank named them."""
    found = []
    for process_id, started in starters:
        seen = visit_processes.stat(process_id)
        if seen is not None and seen.started == started and seen.state not in "ZX":
            found.append(process_id)
    return tuple(found)


def _unused(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of `paths` that no process maps: another run of this user may share a name, never a mapping."""
    processes = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()] if paths else []
    return tuple(path for path in paths if not any(visit_processes.mapped(process, path) for process in processes))


def main(arguments: Sequence[str]) -> None:
    """Print one line, and leave without waiting for reads that never come back."""
    directory, tag, asked = arguments
    if _TAG.fullmatch(tag) is None or asked not in ("look", "end"):
        sys.stderr.write(f"busbw visit: not a run and a task: {tag!r} {asked!r}\n")
        os._exit(2)
    found = look(directory, tag) if asked == "look" else end(directory, tag)
    sys.stdout.write(VISIT_PREFIX + msgspec.json.encode(found).decode() + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
