"""One host: the first process of network, UTS, mount, PID and IPC namespaces of its own."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.patience import wait_until

from .processes import children_of, command_of, send

_ENTER = str(Path(__file__).with_name("enter.py"))
# What a login shell of root has, and nothing of the shell that started the tests.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "SHELL": "/bin/bash",
    "LC_ALL": "C.UTF-8",
}
# $1: the folder of the lab, $2: the name of the host, $3: a Python, $4: what it runs. A host has its own processes,
# devices, /run, /dev/shm and /tmp. All else is shared, as a cluster shares its home directories, and so is each folder
# that is in /tmp when the host starts: tests have theirs there. MPIs find sockets in /tmp by host or by process id.
_SET_UP = """
set -e
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755,size=64m tmpfs /run
mount -t tmpfs -o mode=1777,size=1g tmpfs /dev/shm
mkdir /run/tmp
mount -t tmpfs -o mode=1777,size=256m tmpfs /run/tmp
for folder in /tmp/*/; do
    name=${folder#/tmp/}
    case $name in
        prte*|ompi.*|pmix*|systemd-private*) continue ;;
    esac
    mkdir "/run/tmp/$name" && mount --rbind "$folder" "/run/tmp/$name" || rmdir "/run/tmp/$name"
done
mount --move /run/tmp /tmp
rmdir /run/tmp
mount --bind "$1/hosts" /etc/hosts
mount --bind "$1/ssh/config" /etc/ssh/ssh_config
if [ -d /etc/slurm ]; then mount --bind "$1/slurm" /etc/slurm; fi
mkdir -m 755 /run/pmix /run/slurmd /run/sshd /run/munge /run/lock
hostname "$2"
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
ip link set lo up
exec "$3" -I -S -c "$4"
"""
# The first process of a PID namespace inherits what others leave behind, and has to collect it.
_INIT = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
os.write(1, b"ready")
null = os.open(os.devnull, os.O_RDWR)
for stream in 0, 1, 2:
    os.dup2(null, stream)
while True:
    try:
        os.wait()
    except ChildProcessError:
        signal.sigwait({signal.SIGCHLD})
"""


class HostProcess(subprocess.Popen[Any]):
    """A process in a host. Signals go to it, and not to the one outside that waits for its end."""

    def __init__(self, init: int, argv: Sequence[str | Path], *, cwd: str | Path, **options: Any) -> None:
        super().__init__([sys.executable, "-I", "-S", _ENTER, str(init), str(cwd), *map(str, argv)], **options)
        # The id, outside, of the process in the host; None: it has ended already.
        self.inside: int | None = None
        wait_until(self._has_begun, 30, f"{argv[0]} to begin")

    def send_signal(self, sig: int) -> None:
        """Send a signal to the process in the host, unless it has ended."""
        if self.inside is not None and self.poll() is None:
            send(self.inside, sig)

    def kill_group(self) -> None:
        """End the process in the host and those it started, but for what made itself a session of its own."""
        if self.inside is not None and self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.inside, signal.SIGKILL)

    def _has_begun(self) -> bool:
        children = children_of(self.pid)
        if children and command_of(children[0]) != command_of(self.pid):
            self.inside = children[0]
        return self.inside is not None or self.poll() is not None


class Boot:
    """A host that is starting."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        isolate = ["unshare", "--net", "--uts", "--mount", "--pid", "--ipc", "--fork", "--kill-child"]
        script = ["sh", "-c", _SET_UP, "sh", str(folder), name, sys.executable, _INIT]
        self._process = subprocess.Popen(
            # Killed with the process that runs the tests, and with it all that runs in the host.
            ["setpriv", "--pdeathsig", "KILL", "--", *isolate, "--propagation", "private", "--", *script],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def finish(self) -> "Host":
        """Wait until the host is there."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with self._process.stdout as out, self._process.stderr as err:
            if out.read(len(b"ready")) != b"ready":
                raise OSError(f"{self.name} did not start: {err.read().decode(errors='replace').strip()}")
        (init,) = children_of(self._process.pid)
        return Host(self.name, init, self._process)


class Host:
    """A host that runs."""

    def __init__(self, name: str, init: int, outside: "subprocess.Popen[bytes]") -> None:
        self.name = name
        # The id, outside, of its first process; also the way to its files: /proc/INIT/root.
        self.init = init
        self._outside = outside

    @property
    def process_ids(self) -> tuple[int, int]:
        """Return the ids of what must not outlive the lab."""
        return self._outside.pid, self.init

    @property
    def is_up(self) -> bool:
        """Whether its first process runs."""
        return self._outside.poll() is None

    def start(
        self, argv: Sequence[str | Path], *, env: Mapping[str, str] | None, cwd: str | Path, **options: Any
    ) -> HostProcess:
        """Start a process there."""
        return HostProcess(self.init, argv, env=dict(ENVIRONMENT if env is None else env), cwd=cwd, **options)

    def path(self, path: str | Path) -> Path:
        """Return a way from outside to a file of the host's own, such as one in its /run."""
        return Path(f"/proc/{self.init}/root", *Path(path).parts[1:])

    def listens(self, port: int) -> bool:
        """Whether something there listens on a TCP port."""
        lines = Path(f"/proc/{self.init}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        fields = [line.split() for line in lines]
        return any(field[1].endswith(f":{port:04X}") and field[3] == "0A" for field in fields)

    def kill(self) -> None:
        """End all its processes at once."""
        send(self.init, signal.SIGKILL)
        # It waits for the first process, which ends after all others have.
        self._outside.wait(10.0)
