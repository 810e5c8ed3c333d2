"""NCCL's own diagnosis service (RAS, since 2.24): what it says of all ranks of the job while a call hangs."""

import os
import socket

# Where NCCL listens unless told otherwise by NCCL_RAS_ADDR (its documentation, "RAS").
_HOST, _PORT = "localhost", 28028
_QUESTION = b"verbose status\n"
_TIMEOUT_S = 8.0
_MOST_BYTES = 1 << 20


def ras_status() -> bytes:
    """Return the service's answer; empty where there is none: an older NCCL, or it was turned off."""
    host, _, port = os.environ.get("NCCL_RAS_ADDR", f"{_HOST}:{_PORT}").rpartition(":")
    answer = bytearray()
    try:
        with socket.create_connection((host or _HOST, int(port)), timeout=_TIMEOUT_S) as connection:
            connection.sendall(_QUESTION)
            while len(answer) < _MOST_BYTES and (part := connection.recv(65536)):
                answer += part
    except (OSError, ValueError):
        return bytes(answer)
    return bytes(answer)
