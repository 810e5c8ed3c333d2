"""Metadata services on a loopback port: real servers that answer, refuse, stay silent, drip or flood."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Respond = Callable[[BaseHTTPRequestHandler], None]
AZURE_DMI = {"sys_vendor": "Microsoft Corporation", "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"}
ORACLE_DMI = {"sys_vendor": "Oracle Corporation", "chassis_asset_tag": "OracleCloud.com"}
AMAZON_DMI = {"sys_vendor": "Amazon EC2", "product_name": "p5.48xlarge"}
GOOGLE_DMI = {"sys_vendor": "Google", "product_name": "Google Compute Engine"}


def say(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    """Answer a request."""
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def azure(name: str) -> Respond:
    """Play Azure's service: it wants its header, and knows more than the name."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        if handler.headers.get("Metadata") != "true" or handler.headers.get("X-Forwarded-For"):
            say(handler, 400, b"Bad request")
        elif handler.path.startswith("/metadata/instance/compute/vmSize?") and "format=text" in handler.path:
            say(handler, 200, name.encode())
        elif handler.path.startswith("/metadata/instance?"):
            known = {"compute": {"vmSize": name, "osProfile": {"adminUsername": "somebody"}, "userData": "c2VjcmV0"}}
            say(handler, 200, json.dumps(known).encode())
        else:
            say(handler, 404, b"Not found")

    return respond


def azure_of_old(name: str) -> Respond:
    """Play a service that knows the whole document only."""
    whole = azure(name)

    def respond(handler: BaseHTTPRequestHandler) -> None:
        if "vmSize?" in handler.path:
            say(handler, 404, b"Not found")
        else:
            whole(handler)

    return respond


def oracle(shape: str) -> Respond:
    """Play Oracle's service, version 2: without its header nothing is said."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        if handler.headers.get("Authorization") != "Bearer Oracle":
            say(handler, 403, b"forbidden")
        elif handler.path == "/opc/v2/instance/shape":
            say(handler, 200, shape.encode())
        else:
            say(handler, 404, b"not found")

    return respond


def amazon(name: str) -> Respond:
    """Play Amazon's service, version 2: first a token, by PUT, then the name for who shows it."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        if handler.command == "PUT" and handler.path == "/latest/api/token":
            wanted = handler.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
            say(handler, 200 if wanted.isdecimal() else 400, b"AQAEAtoken==")
        elif handler.headers.get("X-aws-ec2-metadata-token") != "AQAEAtoken==":
            say(handler, 401, b"Unauthorized")
        elif handler.path == "/latest/meta-data/instance-type":
            say(handler, 200, name.encode())
        else:
            say(handler, 404, b"")

    return respond


def amazon_of_old(name: str) -> Respond:
    """Play Amazon's service, version 1: no tokens."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        answered = handler.command == "GET" and handler.path == "/latest/meta-data/instance-type"
        say(handler, 200 if answered else 405, name.encode())

    return respond


def google(name: str) -> Respond:
    """Play Google's service: the name is the last part of a path."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        if handler.headers.get("Metadata-Flavor") != "Google":
            say(handler, 403, b"<html>Forbidden</html>")
        elif handler.path == "/computeMetadata/v1/instance/machine-type":
            say(handler, 200, f"projects/123456789/machineTypes/{name}".encode(), {"Metadata-Flavor": "Google"})
        else:
            say(handler, 404, b"")

    return respond


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Answer one byte at a time, for ever: no single read ever times out."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        handler.wfile.write(b"a")
        handler.wfile.flush()
        time.sleep(0.05)


def flood(handler: BaseHTTPRequestHandler) -> None:
    """Answer without end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        handler.wfile.write(b"a" * 65536)


@contextmanager
def service(respond: Respond) -> Iterator[tuple[tuple[str, int], list[str]]]:
    """Yield the address of a server that answers so, and the list of what it was asked, which grows."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path}")
            try:
                respond(self)
            except OSError:
                # The asking side has hung up.
                self.close_connection = True

        do_PUT = do_GET  # noqa: N815 - http.server calls it so

        def log_message(self, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield ("127.0.0.1", server.server_address[1]), asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def silent() -> Iterator[tuple[str, int]]:
    """Yield the address of a server that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield ("127.0.0.1", server.getsockname()[1])
