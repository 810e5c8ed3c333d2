"""Small files, links and folders of the machine, collected as they are; what is there and unreadable is recorded so."""

import contextlib
import errno
import os
import re
import selectors
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from busbw.formats.lines.prefix import scrub
from busbw.machine.read.commands import Command
from busbw.model.host import Answer, CapturedFile, CapturedLink

# An attribute of sysfs is one page.
_MOST_BYTES = 64 * 2**10
_MOST_FILES = 40_000
_LONGEST_PATH = 230
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.ELOOP}


class Collection:
    """What was read so far. Paths are those of the host; `root` is where the host's tree begins for us."""

    def __init__(self, root: Path, *, timeout_s: float) -> None:
        self._root = root
        self._end_s = time.monotonic() + timeout_s
        self._files: dict[str, CapturedFile] = {}
        self._links: dict[str, CapturedLink] = {}

    @property
    def files(self) -> tuple[CapturedFile, ...]:
        """Return the files, by path."""
        return tuple(self._files[path] for path in sorted(self._files))

    @property
    def links(self) -> tuple[CapturedLink, ...]:
        """Return the links, by path."""
        return tuple(self._links[path] for path in sorted(self._links))

    @property
    def is_full(self) -> bool:
        """Whether no more is taken: too many files, or too much time."""
        return len(self._files) >= _MOST_FILES or time.monotonic() > self._end_s

    def file(
        self, path: str, *, keep: Callable[[str], str | None] | None = None, most_bytes: int = _MOST_BYTES
    ) -> str | None:
        """Take a file, or what `keep` leaves of it; None from `keep` leaves its text out. Returns what was taken.

        A file that is there and was not taken is recorded with the reason.
        """
        raw = self._taken(path, most_bytes)
        if raw is None:
            return None
        text = raw.decode("utf-8", "replace")
        kept = keep(text) if keep is not None else text
        if kept is None:
            self._unread(path, "is not what it should be, and was not taken")
        else:
            self._files[path] = CapturedFile(path=path, text=kept)
        return kept

    def binary(self, path: str, *, keep: Callable[[bytes], str]) -> None:
        """Take what `keep` says of a file that is not text."""
        raw = self._taken(path, _MOST_BYTES)
        if raw is not None:
            self._files[path] = CapturedFile(path=path, text=f"{keep(raw)}\n")

    def _taken(self, path: str, most_bytes: int) -> bytes | None:
        """Return the beginning of a file; None where there is nothing to take, recorded if it is there."""
        if self.is_full or len(path) > _LONGEST_PATH:
            return None
        try:
            raw = self._read(path, most_bytes)
        except OSError as error:
            if error.errno not in _ABSENT:
                self._unread(path, (error.strerror or "cannot be read").lower())
            return None
        if raw is None:
            self._unread(path, "is not a file")
        return raw

    def _read(self, path: str, most_bytes: int) -> bytes | None:
        """Return the beginning of a file; None for anything else: a pipe would wait, and a device may act."""
        at = self._at(path)
        if not stat.S_ISREG(at.stat().st_mode):
            return None
        with at.open("rb") as file:
            return file.read(most_bytes)

    def _unread(self, path: str, reason: str) -> None:
        self._files[path] = CapturedFile(path=path, text=None, reason=reason)

    def under(self, folder: str, names: tuple[str, ...]) -> None:
        """Take the files of these names in a folder, as far as they are there."""
        for name in names:
            self.file(f"{folder}/{name}")

    def link(self, path: str) -> str | None:
        """Take a symbolic link; returns its target, None where there is none."""
        if self.is_full or len(path) > _LONGEST_PATH:
            return None
        try:
            target = str(self._at(path).readlink())
        except OSError:
            return None
        self._links[path] = CapturedLink(path=path, target=target)
        return target

    def names(self, folder: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted; () where there is none. Nothing is taken."""
        try:
            return tuple(sorted(os.listdir(self._at(folder))))  # noqa: PTH208 - names are all that is wanted
        except OSError:
            return ()

    def _at(self, path: str) -> Path:
        return self._root / path.lstrip("/")


# The longest outputs seen, nvidia-smi -q -x of eight GPUs and lstopo of 256 cores, are below 1 MiB.
_MOST_OUTPUT_BYTES = 4 * 2**20
_MOST_ERROR_BYTES = 64 * 2**10
_BLOCK_BYTES = 64 * 2**10
_AT_ONCE = 6
# What administrators have on their PATH and users often lack.
_MORE_FOLDERS = ("/usr/sbin", "/sbin", "/usr/local/bin", "/opt/rocm/bin", "/opt/amazon/efa/bin")
_SERIAL = re.compile(r"""[ \t]*<info name="DMI\w{1,20}(?:Serial|UUID|AssetTag)" value="[^"]{0,200}"/>\n?""")


def ask(commands: Sequence[Command], *, total_s: float) -> tuple[Answer, ...]:
    """Return the answer to each command, in order; those that `total_s` leaves no time for have timed out."""
    deadline_s = time.monotonic() + total_s
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few verbs ask anything

    folders = [folder for folder in (*os.get_exec_path(), *_MORE_FOLDERS) if folder.startswith("/")]
    searched = os.pathsep.join(folders)
    if len(commands) == 1:
        # Without a thread, which would keep Ctrl-C waiting until its command has ended.
        return (_answer(commands[0], searched, deadline_s),)
    try:
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            return tuple(pool.map(lambda command: _answer(command, searched, deadline_s), commands))
    except RuntimeError:
        # A login node's limit on processes counts threads too and may leave room for none: one after the other then.
        return tuple(_answer(command, searched, deadline_s) for command in commands)


def _answer(command: Command, folders: str, deadline_s: float) -> Answer:
    found = next((path for name in command.programs if (path := shutil.which(name, path=folders))), None)
    if found is None:
        return Answer(name=command.name, argv=(command.programs[0], *command.arguments), ended="absent")
    argv = (found, *command.arguments)
    timeout_s = min(command.timeout_s, deadline_s - time.monotonic())
    if timeout_s <= 0:
        return Answer(name=command.name, argv=argv, ended="timeout", error="no time was left to ask")
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C", "NO_COLOR": "1", "TERM": "dumb"},
            start_new_session=True,
        )
    except OSError as error:
        return Answer(name=command.name, argv=argv, ended="failed", error=error.strerror or str(error))
    try:
        return _read(command.name, argv, process, timeout_s)
    except BaseException:
        _end(process, 0)
        raise


def _read(name: str, argv: tuple[str, ...], process: subprocess.Popen[bytes], timeout_s: float) -> Answer:
    """Return what a started program says until it ends, is too slow or says too much; it is gone afterwards."""
    assert process.stdout is not None
    assert process.stderr is not None
    output, error = bytearray(), bytearray()
    limits = {process.stdout: (output, _MOST_OUTPUT_BYTES), process.stderr: (error, _MOST_ERROR_BYTES)}
    end_s = time.monotonic() + timeout_s
    cut = False
    with selectors.DefaultSelector() as selector:
        for pipe, limit in limits.items():
            selector.register(pipe, selectors.EVENT_READ, limit)
        while selector.get_map() and not cut and (left_s := end_s - time.monotonic()) > 0:
            for key, _events in selector.select(left_s):
                block = os.read(key.fd, _BLOCK_BYTES)
                said, most_bytes = key.data
                said += block[: most_bytes - len(said)]
                cut = cut or (len(said) >= most_bytes and said is output)
                if not block:
                    selector.unregister(key.fileobj)
        still_talking = bool(selector.get_map())
    code = _end(process, 0 if still_talking else end_s - time.monotonic())
    ended = "cut" if cut else "timeout" if code is None or still_talking else "ok" if code == 0 else "failed"
    return Answer(
        name=name,
        argv=argv,
        ended=ended,  # type: ignore[arg-type]
        exit_code=code if ended in ("ok", "failed") else None,
        output=_without_secrets(_without_serials(_without_processes(bytes(output).decode("utf-8", "replace")))),
        error=_without_secrets(bytes(error).decode("utf-8", "replace")),
    )


def _end(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """Return the exit code of a process, ended with all it started when it does not end by itself; None for those."""
    code = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = process.wait(max(timeout_s, 0))
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # A process that waits in a broken driver cannot be killed: it is left behind, not waited for.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return code


def _without_processes(text: str) -> str:
    """Return XML of nvidia-smi without what runs on the GPUs: command lines are other people's business."""
    for name in ("processes", "accounted_processes"):
        kept = []
        rest = text
        while (start := rest.find(f"<{name}>")) >= 0 and (end := rest.find(f"</{name}>", start)) >= 0:
            kept.append(rest[:start])
            rest = rest[end + len(name) + 3 :]
        text = "".join([*kept, rest])
    return text


def _without_serials(text: str) -> str:
    """Return XML of lstopo without the firmware's serial numbers, which it tells to root."""
    return _SERIAL.sub("", text)


def _without_secrets(text: str) -> str:
    return "\n".join(scrub(line) for line in text.split("\n"))
