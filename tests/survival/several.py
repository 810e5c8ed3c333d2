"""`busbw run` on hosts of the lab, started on n0 as a user would."""

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.runner import NO_DEVICES, ROOT, clean_environment, program, read_run
from tests.lab.host import ENVIRONMENT, HostProcess
from tests.lab.lab import Lab
from tests.lab.processes import Process
from tests.patience import wait_until
from tests.sleeping import SLEEPING

from busbw.base import layout
from busbw.model.run import Run

from .mpi import Mpi

HOSTS = ("n0", "n1", "n2")
# Six sizes, more than a second each: enough to be caught in the middle of.
BYTES = [4096 * number for number in range(1, 7)]
SIZES = ("-b", "4K", "-e", "24K", "-i", "4K", "--time-limit", "8", "--stall-timeout", "8", "--min-samples", "5")
FIRST_DONE = "ended by"
TIMEOUT_S = 200.0


class Several:
    """The command, with its runs in a folder that every host sees."""

    def __init__(self, lab: Lab, folder: Path, mpi: Mpi) -> None:
        self.lab = lab
        self.folder = folder
        self.mpi = mpi
        self.process: HostProcess | None = None
        self._shell = folder / "remote-shell"
        self._write_shell(mpi.there)

    @property
    def runs(self) -> Path:
        """Where runs go."""
        return self.folder / "runs"

    @property
    def directory(self) -> Path:
        """The directory of the only run."""
        (found,) = [path.parent for path in self.runs.glob(f"*/{layout.PLAN_FILE}")]
        return found

    def environment(self, **more: str) -> dict[str, str]:
        """Return what a command on n0 gets."""
        path = f"{self.mpi.mpirun.parent}:{clean_environment(self.mpi.busbw, self.runs)['PATH']}"
        own = {"PATH": path, "BUSBW_RUNS": str(self.runs), "TMPDIR": "/run"}
        return {**ENVIRONMENT, **SLEEPING, **NO_DEVICES, **own, **more}

    def everywhere(self, **variables: str) -> None:
        """Give ranks and daemons of every other host these variables, too."""
        self._write_shell({**self.mpi.there, **variables})

    def _write_shell(self, there: Mapping[str, str]) -> None:
        # PRRTE's daemons keep their sockets in the folder for temporary files, which hosts of the lab share.
        words = " ".join(f"{name}={value}" for name, value in {"TMPDIR": "/run", **there}.items())
        # Hydra puts an option of ssh first.
        text = f'if [ "$1" = -x ]; then shift; fi\nhost=$1\nshift\nexec ssh "$host" "export {words}; $*"\n'
        program(self._shell, f"#!/bin/sh\n{text}")

    def start(self, *arguments: object, env: Mapping[str, str] | None = None) -> None:
        """Start `busbw` with `arguments` on n0."""
        command = [str(self.mpi.busbw / "bin" / "busbw"), *map(str, arguments)]
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            self.process = self.lab.start(
                "n0", command, env=self.environment(**(env or {})), cwd=str(ROOT), stdin=subprocess.DEVNULL,
                stdout=out, stderr=err,
            )  # fmt: skip

    def measure(self, *more: object) -> None:
        """Start a run over the hosts, and wait until its first size is done."""
        self.start("run", "all_reduce", *SIZES, *self.way, *more)
        self.wait_for(FIRST_DONE)

    @property
    def way(self) -> tuple[str, ...]:
        """How the hosts are reached."""
        reached = ("--interface", "eth0", "--remote-shell", str(self._shell))
        return ("--hosts", ",".join(HOSTS), "-n", str(len(HOSTS)), *reached)

    def wait_for(self, text: str) -> None:
        """Wait until standard error holds `text`."""
        assert self.process is not None
        process = self.process
        wait_until(lambda: text in self.err or process.poll() is not None, TIMEOUT_S, f"{text!r} on stderr")
        assert text in self.err, self.said

    def finish(self, timeout_s: float = TIMEOUT_S) -> int:
        """Wait for the end; return the exit code."""
        assert self.process is not None
        code = self.process.wait(timeout_s)
        assert "Traceback" not in self.err, self.said
        return code

    @property
    def err(self) -> str:
        """What standard error holds so far."""
        return (self.folder / "err").read_text(encoding="utf-8", errors="replace")

    @property
    def out(self) -> str:
        """What standard output holds."""
        return (self.folder / "out").read_text(encoding="utf-8", errors="replace")

    @property
    def said(self) -> str:
        """Everything, for the message of a failure."""
        return f"--- stdout\n{self.out}\n--- stderr\n{self.err}"

    def rank_on(self, host: str) -> Process:
        """Return the only rank on a host, of a run under way."""
        (rank,) = [process for process in self.lab.processes(host) if "busbw.rank" in process.argv]
        return rank

    def run(self) -> Run:
        """Return the stored result."""
        return read_run(self.directory)

    def left_on(self, host: str) -> list[str]:
        """Return what is left on a host: processes, and files in its memory."""
        processes = [" ".join(process.argv)[:200] for process in self.lab.processes(host)]
        return processes + self.lab.run(host, ["ls", "/dev/shm"]).stdout.split()

    def clear(self, host: str) -> None:
        """Remove what a run has left in the memory of a host that busbw could not reach."""
        self.lab.run(host, ["sh", "-c", "rm -rf /dev/shm/*"])

    def check_nothing_left(self, *hosts: str) -> None:
        """Check that hosts are as they were before the run."""
        # The connections of ended remote shells close a moment later.
        for host in hosts or HOSTS:
            wait_until(lambda host=host: self.left_on(host) == [], 30, f"{host} to be empty: {self.left_on(host)}")

    def resume(self) -> None:
        """Go on, and check that what is missing is measured, and what was finished is kept as it was."""
        before = self.run().measurements
        for _attempt in range(5):
            self.start("run", "--resume", self.directory)
            code = self.finish(150)
            # On cores that others hold a size may have run out of time before it had a sample.
            if len(self.run().measurements) == len(BYTES):
                break
        assert code in {0, 1, 4}, self.said
        after = self.run()
        assert after.outcome is not None
        # How many samples the sizes get in the limit is decided by who else holds the cores.
        assert after.outcome.ended in {"complete", "time"}, self.said
        assert [point.size_bytes for point in after.measurements] == BYTES
        kept = {one.point: one for one in after.measurements}
        assert all(kept[one.point] == one for one in before if one.ended in ("interval", "samples"))
        self.check_nothing_left()

    def close(self) -> None:
        """End busbw."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)
