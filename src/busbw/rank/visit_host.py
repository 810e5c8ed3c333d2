"""What a host says beside its processes: heartbeats, shared memory, the kernel's log, NCCL's own diagnosis."""

import json
import os
import re
import struct
import subprocess
from pathlib import Path

from busbw.base import layout
from busbw.model.visit import BeatSeen, CounterSeen
from busbw.rank.visit_processes import within

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
