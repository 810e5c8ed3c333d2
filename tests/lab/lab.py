"""A lab: hosts n0, n1, ... on this machine, what is done to them, and their sure end."""

import contextlib
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.patience import holds_within, wait_until

from . import secure_shell
from .folder import make_folder, note_process, remove_folder, remove_leftovers, small_in
from .host import Boot, Host, HostProcess
from .network import PER_LEAF, Network, address_of
from .processes import Process, children_of, in_namespace_of, send, stop_all


@dataclass(frozen=True, kw_only=True)
class Service:
    """A daemon that runs in a host as long as the host does, in the foreground."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] | None
    ready: Callable[[Host], bool]


class Lab:
    """Several hosts; also a context manager that ends them."""

    def __init__(self, hosts: int = 4, *, per_leaf: int = PER_LEAF) -> None:
        remove_leftovers()
        self.hosts = tuple(f"n{number}" for number in range(hosts))
        self.addresses = {name: address_of(number) for number, name in enumerate(self.hosts)}
        # Seen from every host as from outside; what was logged, for the message of a test that fails.
        self.folder = make_folder()
        self._services: dict[str, list[Service]] = {name: [] for name in self.hosts}
        self._daemons: dict[str, list[HostProcess]] = {name: [] for name in self.hosts}
        # Ids of the daemons and of what they had started when they were ready.
        self._known: dict[str, set[int]] = {name: set() for name in self.hosts}
        self._up: dict[int, Host] = {}
        self._cut: set[str] = set()
        self._paused: set[str] = set()
        self._shaped: set[str] = set()
        self._shaped_leaves: set[int] = set()
        try:
            self._write_files()
            self._network = Network(hosts, per_leaf)
            self._note(self._network.process_ids)
            self._boot(self.hosts)
        except BaseException:
            remove_folder(self.folder)
            raise
        for name in self.hosts:
            self.serve(name, "sshd", secure_shell.server(self.folder / "ssh"), ready=lambda host: host.listens(22))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every host and remove what the lab has written."""
        for name in self.hosts:
            self.kill_host(name)
        self._network.close()
        remove_folder(self.folder)

    @property
    def remote_shell(self) -> Path:
        """Return a program for `-launcher-exec` and its like: `PROGRAM [OPTIONS] HOST COMMAND`, as ssh does.

        It notes each call in `remote_shell_calls`, so that a test sees that this program was used.
        """
        return self.folder / "remote-shell"

    @property
    def remote_shell_calls(self) -> tuple[str, ...]:
        """Return the arguments of each call of `remote_shell`, the oldest first."""
        calls = self.folder / "log" / "remote-shell"
        return tuple(calls.read_text(encoding="utf-8").splitlines()) if calls.exists() else ()

    def start(
        self,
        host: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path = "/",
        **options: Any,
    ) -> HostProcess:
        """Start a process on a host. `env` is all it gets, None a login's; `options` are those of Popen."""
        return self._host(host).start(argv, env=env, cwd=cwd, **options)

    def run(
        self,
        host: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path = "/",
        timeout_s: float = 60.0,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command on a host to its end; after `timeout_s` kill it and raise subprocess.TimeoutExpired."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with self.start(host, argv, env=env, cwd=cwd, text=True, errors="replace", **streams) as process:
            try:
                out, err = process.communicate(timeout=timeout_s)
            except BaseException:
                process.kill_group()
                raise
        return subprocess.CompletedProcess(list(map(str, argv)), process.returncode, out, err)

    def serve(
        self,
        host: str,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        ready: Callable[[Host], bool],
    ) -> None:
        """Run a daemon on a host, now and after each start of it; `ready` says when it is."""
        service = Service(name=name, argv=tuple(argv), env=env, ready=ready)
        self._services[host].append(service)
        self._serve(host, service)

    def processes(self, host: str) -> tuple[Process, ...]:
        """Return what runs on a host beside its first process and its services; none on one that is down."""
        known = self._known[host]
        return tuple(process for process in self.everything(host) if process.id not in known)

    def everything(self, host: str) -> tuple[Process, ...]:
        """Return what runs on a host beside its first process: also its services."""
        return in_namespace_of(self._up[self._number(host)].init)

    def listens(self, host: str, port: int) -> bool:
        """Whether something on a host listens on a TCP port."""
        return self._host(host).listens(port)

    def kill_processes(self, host: str) -> None:
        """Send SIGKILL to what `processes` returns."""
        for process in self.processes(host):
            send(process.id, signal.SIGKILL)

    def kill_host(self, host: str) -> None:
        """End everything on a host at once. Its connections are closed, unless it was cut off before."""
        self._up[self._number(host)].kill()
        for daemon in self._daemons[host]:
            daemon.wait()
        self._daemons[host] = []
        self._known[host] = set()

    def restart(self, host: str) -> None:
        """Start a host anew, with its services; what was in its memory is lost."""
        self.kill_host(host)
        for names in (self._cut, self._paused, self._shaped):
            names.discard(host)
        self._boot((host,))
        for service in self._services[host]:
            self._serve(host, service)

    def cut(self, host: str) -> None:
        """Pull the network cable of a host."""
        self._network.set_link(self._number(host), "down")
        self._cut.add(host)

    def mend(self, host: str) -> None:
        """Put the network cable of a host back."""
        self._network.set_link(self._number(host), "up")
        self._cut.discard(host)

    def shape(self, host: str, rate: str | None, ways: Sequence[str] = ("sends", "receives")) -> None:
        """Limit what a host sends and what it receives, each to a rate such as `50mbit`; None: no limit."""
        self._network.shape(self._number(host), self._host(host), rate, ways)
        (self._shaped.discard if rate is None else self._shaped.add)(host)

    def shape_uplink(self, leaf: int, rate: str | None) -> None:
        """Limit the cable between a leaf and the spine, each direction by itself; None: no limit."""
        self._network.shape_uplink(leaf, rate)
        (self._shaped_leaves.discard if rate is None else self._shaped_leaves.add)(leaf)

    def pause(self, host: str) -> None:
        """Stop everything on a host, its services too, as a machine that hangs."""
        stop_all(self._host(host).init)
        self._paused.add(host)

    def unpause(self, host: str) -> None:
        """Let everything on a host go on."""
        for process in in_namespace_of(self._host(host).init):
            send(process.id, signal.SIGCONT)
        self._paused.discard(host)

    @contextlib.contextmanager
    def small_file_system(self, size_bytes: int) -> Iterator[Path]:
        """Give an empty folder that holds `size_bytes` and is the same on every host and outside."""
        mount = small_in(self.folder)
        subprocess.run(["mount", "-o", f"remount,size={size_bytes}", str(mount)], check=True)
        try:
            yield mount
        finally:
            subprocess.run(["find", str(mount), "-mindepth", "1", "-delete"], check=True)

    def undo(self) -> None:
        """Let hosts go on, connect and start them as they were at first."""
        for host in tuple(self._paused):
            self.unpause(host)
        for host in tuple(self._cut):
            self.mend(host)
        for host in self.hosts:
            if not self._up[self._number(host)].is_up:
                self.restart(host)
        for host in tuple(self._shaped):
            self.shape(host, None)
        for leaf in tuple(self._shaped_leaves):
            self.shape_uplink(leaf, None)

    def heal(self) -> tuple[Process, ...]:
        """Undo what was done to the hosts; end and return what runs there and does not end by itself in 3 s."""
        self.undo()
        holds_within(3.0, lambda: not any(self.processes(host) for host in self.hosts))
        left = tuple(process for host in self.hosts for process in self.processes(host))
        for host in self.hosts:
            self.kill_processes(host)
        return left

    def log(self, name: str) -> str:
        """Return what a service has logged on all hosts, or what `name` alone names."""
        paths = sorted((self.folder / "log").glob(f"{name}*"))
        return "\n".join(f"--- {path.name}\n{path.read_text(encoding='utf-8', errors='replace')}" for path in paths)

    def _host(self, name: str) -> Host:
        host = self._up[self._number(name)]
        assert host.is_up, f"{name} is down"
        return host

    def _number(self, host: str) -> int:
        return self.hosts.index(host)

    def _note(self, process_ids: tuple[int, ...]) -> None:
        for process_id in process_ids:
            note_process(self.folder, process_id)

    def _write_files(self) -> None:
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in self.addresses.items())]
        (self.folder / "hosts").write_text("\n".join(lines) + "\n", encoding="ascii")
        secure_shell.write(self.folder / "ssh", self.addresses)
        calls = shlex.quote(str(self.folder / "log" / "remote-shell"))
        self.remote_shell.write_text(f'#!/bin/sh\nprintf \'%s\\n\' "$*" >> {calls}\nexec ssh "$@"\n', encoding="ascii")
        self.remote_shell.chmod(0o755)

    def _boot(self, names: Sequence[str]) -> None:
        booting = {self._number(name): Boot(name, self.folder) for name in names}
        for number, boot in booting.items():
            self._up[number] = boot.finish()
            self._note(self._up[number].process_ids)
        self._network.plug_in(booting, self._up)

    def _serve(self, host: str, service: Service) -> None:
        up = self._host(host)
        with (self.folder / "log" / f"{service.name}-{host}").open("ab") as log:
            process = self.start(
                host, service.argv, env=service.env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        self._daemons[host].append(process)
        wait_until(
            lambda: process.poll() is not None or service.ready(up),
            30.0,
            lambda: f"{service.name} on {host}: {self.log(f'{service.name}-{host}')}",
        )
        ended = f"{service.name} on {host} ended: {self.log(f'{service.name}-{host}')}"
        assert process.poll() is None, ended
        assert process.inside is not None, ended
        self._known[host] |= {process.inside, *children_of(process.inside)}
