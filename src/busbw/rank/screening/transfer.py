"""Sends to another host and takes from it over TCP, and prints the rates.

`python -P -m busbw.rank.screening.transfer HOST SECONDS -- REMOTE SHELL` starts the other end through the remote
shell, with `serve`, and connects to the port that it names. The other end takes one connection, from whoever knows its
secret, and ends by itself.
"""

import contextlib
import hmac
import json
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

_GREETING = b"busbw-listens "
_CHUNK_BYTES = 2**18
# Windows that a direction is counted in; the first is the start of TCP.
_WINDOWS = 4
# Of a remote shell with Python behind it, on a busy host; of a connection; beyond the seconds of the transfers.
_START_S = 12.0
_CONNECT_S = 3.0
_SECRET_BYTES = 16


def serve(seconds: float) -> None:
    """Be the other end: print the port, take one connection that knows the secret, receive, send, end."""
    secret = bytes.fromhex(sys.stdin.readline(2 * _SECRET_BYTES + 1).strip())
    # Whatever happens, this process does not stay.
    signal.setitimer(signal.ITIMER_REAL, _START_S + _CONNECT_S + 4 * seconds)
    with socket.create_server(("", 0)) as listening:
        listening.settimeout(_CONNECT_S + _START_S)
        sys.stdout.write(f"{_GREETING.decode()}{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        connection, _address = listening.accept()
    with connection:
        connection.settimeout(_CONNECT_S + 2 * seconds)
        if not hmac.compare_digest(_exactly(connection, _SECRET_BYTES), secret):
            return
        connection.sendall(b"+")
        # What was received is counted where it arrives.
        sys.stdout.write(json.dumps(_receive(connection, seconds)) + "\n")
        sys.stdout.flush()
        _send(connection, seconds)


def transfers(host: str, seconds: float, remote_shell: Sequence[str]) -> dict[str, list[float]]:
    """Return the rates of each direction in bytes per second, window by window. Raises OSError, RuntimeError."""
    secret = secrets.token_bytes(_SECRET_BYTES)
    command = shlex.join((sys.executable, "-P", "-m", "busbw.rank.screening.transfer", "serve", f"{seconds:g}"))
    with subprocess.Popen(
        [*remote_shell, host, command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as other:
        try:
            assert other.stdin is not None
            assert other.stdout is not None
            # A remote shell that has ended says why.
            with contextlib.suppress(BrokenPipeError):
                other.stdin.write(secret.hex().encode() + b"\n")
                other.stdin.close()
            port = _port(other)
            with socket.create_connection((host, port), _CONNECT_S) as connection:
                connection.settimeout(_CONNECT_S + 2 * seconds)
                connection.sendall(secret)
                if _exactly(connection, 1) != b"+":
                    raise RuntimeError("what listens there is not the other end")
                _send(connection, seconds)
                received = _receive(connection, seconds)
            sent = json.loads(other.stdout.readline(2**16) or b"[]")
        finally:
            other.kill()
    if len(sent) < _WINDOWS - 1 or len(received) < _WINDOWS - 1:
        raise RuntimeError("the connection ended early")
    return {"send": sent[1:], "receive": received[1:]}


def _port(other: "subprocess.Popen[bytes]") -> int:
    """Return the port that the other end listens on. Raises RuntimeError with the remote shell's own words."""
    assert other.stdout is not None
    for _line in range(50):
        line = other.stdout.readline(2**12)
        if not line:
            break
        if line.startswith(_GREETING) and (port := line.removeprefix(_GREETING).strip()).isdigit():
            return int(port)
    assert other.stderr is not None
    said = [line.strip() for line in other.stderr.read(2**16).decode("utf-8", "replace").splitlines() if line.strip()]
    raise RuntimeError(f"the remote shell says: {said[-1][:200]}" if said else "the other end did not start")


def _send(connection: socket.socket, seconds: float) -> None:
    """Send for a while, then end this direction; the other end counts."""
    # What waits in a buffer would come long after the windows, where the link is slow.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _CHUNK_BYTES)
    content = bytes(_CHUNK_BYTES)
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        connection.sendall(content)
    connection.shutdown(socket.SHUT_WR)


def _receive(connection: socket.socket, seconds: float) -> list[float]:
    """Return the rates at which bytes arrived, window by window, until the other end sends no more."""
    into = memoryview(bytearray(_CHUNK_BYTES))
    window_s = seconds / _WINDOWS
    counts = [0] * _WINDOWS
    begins_s: float | None = None
    while True:
        count = connection.recv_into(into)
        if not count:
            break
        now_s = time.monotonic()
        begins_s = now_s if begins_s is None else begins_s
        at = int((now_s - begins_s) / window_s)
        # What was under way when the other end stopped is not of these windows.
        if at < _WINDOWS:
            counts[at] += count
    return [count / window_s for count in counts]


def _exactly(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count and (more := connection.recv(count - len(content))):
        content += more
    return content


def main(arguments: Sequence[str]) -> int:
    """Print the rates as one line of JSON; 1 with the cause where nothing was measured."""
    try:
        if arguments[0] == "serve":
            serve(float(arguments[1]))
            return 0
        # A remote shell that never answers must not hold up the rest.
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, _START_S + 3 * _CONNECT_S + 4 * float(arguments[1]))
        found = transfers(arguments[0], float(arguments[1]), arguments[3:])
    except (RuntimeError, ValueError, OSError) as error:
        sys.stderr.write(f"cannot measure: {error}\n")
        return 1
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


def _give_up(_number: int, _frame: object) -> None:
    raise TimeoutError("no answer in time")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
