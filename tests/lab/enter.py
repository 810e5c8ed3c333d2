"""Runs a command in the namespaces of another process: `python -I -S enter.py INIT DIRECTORY COMMAND...`.

Does what nsenter does but for three things: it goes on when the command is stopped, so that the command can be waited
for; the command ends with it; and the command leads a session of its own.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def main(init: str, directory: str, command: list[str]) -> NoReturn:
    """Run `command` in `directory`, and end as it does."""
    libc = ctypes.CDLL(None, use_errno=True)
    # As it was given: Python adds a variable of its own where the locale is C.
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    environment = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
    # The PID namespace is for children; after the mount namespace /proc is another one.
    for namespace in [os.open(f"/proc/{init}/ns/{name}", os.O_RDONLY) for name in ("ipc", "uts", "net", "pid", "mnt")]:
        if libc.setns(namespace, 0) != 0:
            sys.exit(f"cannot enter a namespace of {init}: {os.strerror(ctypes.get_errno())}")
        os.close(namespace)
    child = os.fork()
    if child == 0:
        os.setsid()
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for number in signal.SIGPIPE, signal.SIGXFSZ:  # Python ignores them, and a command inherits that
            signal.signal(number, signal.SIG_DFL)
        try:
            os.chdir(directory)
            os.execvpe(command[0], command, environment)
        except OSError as error:
            os.write(2, f"{command[0]} in {directory}: {error.strerror}\n".encode())
        os._exit(127)
    # What a terminal sends is for the one who started this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
