"""The door to the programs that know the machine: all asked at once, each within its time and its length."""

import contextlib
import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence

from busbw.formats.lines.environment import scrub
from busbw.machine.read.commands import Command
from busbw.model.host import Answer

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
    return _read(command.name, argv, process, timeout_s)


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
