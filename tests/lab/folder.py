"""The folder of a lab, and the end of what a killed earlier run has left.

Hosts die with the process that made them (their first process asks the kernel for that), so what is left is as a rule
a mount and files. A folder is named by the process that owns it, by id and start.
"""

import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from .processes import send, start_ticks

_ROOT = Path(tempfile.gettempdir()) / "busbw-lab"
_PROCESSES = "processes"
_SMALL = "small"


def make_folder() -> Path:
    """Return a new folder that only root reads, with a small file system in `small`."""
    _ROOT.mkdir(mode=0o700, exist_ok=True)
    if _ROOT.is_symlink() or _ROOT.stat().st_uid != os.geteuid():
        raise PermissionError(f"{_ROOT} belongs to somebody else")
    owner = f"{os.getpid()}.{start_ticks(os.getpid())}"
    folder = next(path for number in itertools.count() if not (path := _ROOT / f"{owner}.{number}").exists())
    for path in (folder, folder / "log", folder / "slurm", folder / _SMALL):
        path.mkdir(mode=0o700)
    # Before the hosts are made: they get a copy of every mount there is then.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "busbw-lab", str(small_in(folder))], check=True)
    return folder


def small_in(folder: Path) -> Path:
    """Return where the small file system of a lab is mounted."""
    return folder / _SMALL


def note_process(folder: Path, process_id: int) -> None:
    """Write down a process that must not outlive the lab."""
    with (folder / _PROCESSES).open("a", encoding="ascii") as file:
        file.write(f"{process_id} {start_ticks(process_id)}\n")


def remove_folder(folder: Path) -> None:
    """End the processes that are written down in a folder and are still themselves; unmount and remove it."""
    noted = folder / _PROCESSES
    for line in noted.read_text(encoding="ascii").splitlines() if noted.exists() else ():
        process_id, _, start = line.partition(" ")
        if start == str(start_ticks(int(process_id))):
            send(int(process_id), signal.SIGKILL)
    if small_in(folder).is_mount():
        subprocess.run(["umount", "--lazy", str(small_in(folder))], check=True)
    shutil.rmtree(folder)


def remove_leftovers() -> tuple[Path, ...]:
    """Remove the folders whose owner has ended, with all that is written down there; return them."""
    if not _ROOT.is_dir():
        return ()
    left = []
    lock = os.open(_ROOT, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time
        for folder in sorted(_ROOT.iterdir()):
            owner, start, _ = folder.name.split(".")
            if start != str(start_ticks(int(owner))):
                remove_folder(folder)
                left.append(folder)
    finally:
        os.close(lock)
    return tuple(left)
