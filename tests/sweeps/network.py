"""The command on the hosts of a lab, and faults that come and go with its rounds."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.e2e.runner import clean_environment, environment_of
from tests.lab.host import ENVIRONMENT, HostProcess
from tests.lab.lab import Lab
from tests.lab.ranks import OPEN_MPI
from tests.patience import holds_within, wait_until

HOSTS, PER_LEAF = 8, 3
ALL = "n[0-7]"
# What every cable carries, so little that all pairs together leave the cores of this machine idle.
RATE = "30mbit"
_UPLINK = "1000mbit"
# Messages so small that a window takes some hundredths of a second, and times to match.
SMALL = ("--metric", "bandwidth", "-b", "8K", "--pair-time", "0.15", "--pair-limit", "4")
_TOPOLOGY = """\
SwitchName=leaf0 Nodes=n[0-2]
SwitchName=leaf1 Nodes=n[3-5]
SwitchName=leaf2 Nodes=n[6-7]
SwitchName=spine Switches=leaf[0-2]
"""


class Fabric:
    """`busbw fabric` on n0."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self.run = folder / "run"
        self.topology = folder / "topology.conf"
        self.topology.write_text(_TOPOLOGY, encoding="ascii")
        for host in lab.hosts:
            lab.shape(host, RATE)
        for leaf in range(-(-HOSTS // PER_LEAF)):
            lab.shape_uplink(leaf, _UPLINK)

    def __call__(self, *arguments: object, timeout_s: float = 200.0) -> "subprocess.CompletedProcess[str]":
        """Run `busbw fabric` with `arguments` to its end."""
        done = self.lab.run(
            "n0", self._command(arguments), env=self.environment, cwd=str(self.folder), timeout_s=timeout_s
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def measure(self, *arguments: object, seed: int = 1) -> dict[str, Any]:
        """Measure every pair of the hosts once, and what is open then; return the report."""
        words = ("--hosts", ALL, *SMALL, "--pairs", "all", "--topology", self.topology, "--seed", seed)
        done = self(*words, "--out", self.run, "--json", *arguments)
        assert done.stdout.startswith("{"), done
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def start(self, *arguments: object) -> HostProcess:
        """Start `busbw fabric`; what it says goes to files `out` and `err`."""
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            return self.lab.start(
                "n0",
                self._command(arguments),
                env=self.environment,
                cwd=str(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def environment(self) -> Mapping[str, str]:
        """What the command gets."""
        path = clean_environment(environment_of("Open MPI"), self.folder / "runs")["PATH"]
        found = {**ENVIRONMENT, **OPEN_MPI, "PATH": path, "BUSBW_RUNS": str(self.folder / "runs")}
        return {**found, "PRTE_MCA_prte_if_include": "eth0"}

    @property
    def rounds(self) -> int:
        """How many rounds are on disk."""
        path = self.run / "raw" / "rank-00000.0.jsonl"
        return path.read_bytes().count(b'"type":"round"') if path.exists() else 0

    def rank_of(self, host: str) -> int:
        """Return the process of the rank on a host."""
        found: list[int] = []

        def there() -> bool:
            found[:] = [each.id for each in self.lab.processes(host) if "busbw.rank" in each.argv]
            return bool(found)

        wait_until(there, 60, f"a rank on {host}")
        return found[-1]

    @contextlib.contextmanager
    def meanwhile(self, act: Callable[[threading.Event], None]) -> Iterator[None]:
        """Do something beside the block; the event says that the block has ended."""
        ended = threading.Event()
        thread = threading.Thread(target=act, args=(ended,))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def flap(self, host: str, ended: threading.Event) -> None:
        """Make the cable of a host slow in every second pair of rounds."""
        is_slow = False
        while not ended.wait(0.02):
            wanted = self.rounds % 4 in (1, 2)
            if wanted != is_slow:
                self.lab.shape(host, "8mbit" if wanted else RATE)
                is_slow = wanted

    def stop_rank(self, host: str, ended: threading.Event) -> None:
        """Stop the rank of a host with SIGSTOP after the second round."""
        process_id = self.rank_of(host)
        while self.rounds < 2 and not ended.wait(0.02):
            pass
        os.kill(process_id, signal.SIGSTOP)

    def wait_for_round(self, number: int) -> None:
        """Wait until so many rounds are on disk."""
        assert holds_within(60, lambda: self.rounds >= number), (self.folder / "err").read_text(encoding="utf-8")

    @staticmethod
    def _command(arguments: tuple[object, ...]) -> list[str]:
        return [str(environment_of("Open MPI") / "bin" / "busbw"), "fabric", *map(str, arguments)]
