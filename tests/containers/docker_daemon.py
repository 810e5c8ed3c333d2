"""A daemon of Docker's for one test module: its own socket, storage and pid file, no bridge, no rules of a firewall."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.patience import holds_within

_STARTS_WITHIN_S = 30
_ENDS_WITHIN_S = 20


@contextlib.contextmanager
def docker_daemon(folder: Path) -> Iterator[str]:
    """Start a daemon that keeps everything below `folder`; give its address, and end it with all that it started."""
    socket, log = folder / "docker.sock", folder / "dockerd.log"
    command = [
        "dockerd",
        f"--host=unix://{socket}",
        f"--data-root={folder}/data",
        f"--exec-root={folder}/exec",
        f"--pidfile={folder}/dockerd.pid",
        "--storage-driver=vfs",
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
    ]
    with log.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            ready = [shutil.which("docker") or "docker", "-H", f"unix://{socket}", "version"]
            answers = holds_within(
                _STARTS_WITHIN_S,
                lambda: (
                    process.poll() is not None
                    or (socket.exists() and subprocess.run(ready, capture_output=True, check=False).returncode == 0)
                ),
            )
            if not answers or process.poll() is not None:
                pytest.fail(f"dockerd does not start here: {log.read_text(errors='replace')[-2000:]}")
            yield f"unix://{socket}"
        finally:
            process.terminate()
            try:
                process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
            # It leaves the network of `--network host` mounted.
            subprocess.run(["umount", folder / "exec" / "netns" / "default"], capture_output=True, check=False)
