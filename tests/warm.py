"""`busbw` forked from a process that has imported it already: what it says in a tenth of the time of a start.

For tests of many starts that measure nothing. How a start itself behaves (signals, terminals, closed outputs, what is
imported) only a real one shows: tests/e2e/runner.py.
"""

import array
import atexit
import gc
import importlib
import inspect
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("busbw"))
# What decides when Python starts how it writes: the server's own is that of a process without them.
_OF_PYTHON = ("PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8")
_MOST_BYTES = 2**20
_MOST_START_S = 250.0


def warm_busbw(
    *arguments: object,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60,
    text: bool = True,
) -> "subprocess.CompletedProcess[str] | subprocess.CompletedProcess[bytes]":
    """Run `busbw` with `arguments`, no standard input, to its end; return its exit code and what it printed."""
    argv = [PROGRAM, *map(str, arguments)]
    request = {"argv": argv, "env": dict(os.environ if env is None else env), "cwd": str(cwd or Path.cwd())}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = _ask(json.dumps(request).encode(), (out.fileno(), err.fileno()), timeout)
        out.seek(0)
        err.seek(0)
        printed, said = out.read(), err.read()
    if text:
        return subprocess.CompletedProcess(argv, code, printed.decode(), said.decode())
    return subprocess.CompletedProcess(argv, code, printed, said)


def _ask(request: bytes, files: tuple[int, int], timeout_s: float) -> int:
    line = _server(os.getpid())
    # The server answers once it has imported everything, which is none of the time of what is asked.
    line.settimeout(_MOST_START_S)
    socket.send_fds(line, [request], list(files))
    process_id = int(line.recv(64))
    line.settimeout(timeout_s)
    try:
        return int(line.recv(64))
    except TimeoutError:
        os.kill(process_id, signal.SIGKILL)
        line.settimeout(None)
        line.recv(64)
        raise subprocess.TimeoutExpired(json.loads(request)["argv"], timeout_s) from None


@cache
def _server(_owner: int) -> socket.socket:
    """Return the line to the server of this process, which ends with it."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
    server = subprocess.Popen(
        [sys.executable, __file__, str(its.fileno())],
        pass_fds=[its.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name not in _OF_PYTHON},
    )
    its.close()

    def end() -> None:
        mine.close()
        server.wait()

    atexit.register(end)
    return mine


def _import_all() -> None:
    for package in ("busbw.cli", "busbw.api", "busbw.show", "busbw.judge", "busbw.env"):
        found = importlib.import_module(package)
        for each in pkgutil.walk_packages(found.__path__, f"{package}."):
            importlib.import_module(each.name)


def _read_facts() -> None:
    """Fill every cache of what the package itself brings: reading all platforms takes as long as a start."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("busbw.facts.", "busbw.env.")):
            for each in vars(module).values():
                if hasattr(each, "cache_info") and not inspect.signature(each).parameters:
                    each()


def serve(line: socket.socket) -> None:
    """Fork a busbw for each request, and answer with its id and its exit code."""
    _import_all()
    _read_facts()
    gc.freeze()
    while True:
        request, places, _flags, _address = line.recvmsg(_MOST_BYTES, socket.CMSG_LEN(2 * array.array("i").itemsize))
        if not request:
            return
        files = array.array("i", b"".join(data for _level, _type, data in places))
        process_id = os.fork()
        if process_id == 0:
            line.close()
            _become(json.loads(request), files[0], files[1])
        for file in files:
            os.close(file)
        line.send(str(process_id).encode())
        _id, status = os.waitpid(process_id, 0)
        line.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(request: dict[str, object], out: int, err: int) -> None:
    """Be the busbw asked for: ends the process."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = request["argv"]
    from busbw.cli import main

    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(code)  # taking all modules apart takes as long as a start


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    serve(socket.socket(fileno=int(sys.argv[1])))
