"""`busbw run` on the Slurm of the lab."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.runner import clean_environment, environment_of, read_run
from tests.lab.host import ENVIRONMENT, HostProcess
from tests.lab.ranks import MPICH, OPEN_MPI
from tests.lab.slurm import Cluster

from busbw.base import layout
from busbw.model.run import Run

# Ranks of all hosts share this machine's cores: none keeps one, and a few short sizes are enough.
SHORT = ("-b", "8", "-e", "512", "-f", "8", "--bind-to", "none", "--time-limit", "3", "--min-samples", "5")
_SETTINGS: dict[str, Mapping[str, str]] = {"Open MPI": OPEN_MPI, "MPICH": MPICH}


class Jobs:
    """The command, on n0."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder

    def environment(self, mpi: str = "Open MPI") -> dict[str, str]:
        """Return what a command on n0 gets."""
        path = clean_environment(environment_of(mpi), self.folder / "runs")["PATH"]
        return {**ENVIRONMENT, "PATH": path, "BUSBW_RUNS": str(self.folder / "runs"), **_SETTINGS[mpi]}

    def __call__(
        self, *arguments: object, mpi: str = "Open MPI", within: tuple[object, ...] = (), timeout_s: float = 100.0
    ) -> "subprocess.CompletedProcess[str]":
        """Run `busbw` with `arguments` to its end; `within`: a command that it is started by, such as salloc."""
        done = self.cluster.run(
            self._command(mpi, within, arguments), env=self.environment(mpi), cwd=str(self.folder), timeout_s=timeout_s
        )
        assert "Traceback" not in done.stderr, done
        return done

    def start(self, *arguments: object, mpi: str = "Open MPI") -> HostProcess:
        """Start `busbw`; what it says goes to files `out` and `err`."""
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            return self.cluster.lab.start(
                "n0",
                self._command(mpi, (), arguments),
                env=self.environment(mpi),
                cwd=str(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def err(self) -> str:
        """What standard error holds so far."""
        return (self.folder / "err").read_text(encoding="utf-8", errors="replace")

    def run(self, where: Path) -> Run:
        """Return the result in a run directory."""
        assert (where / layout.PLAN_FILE).is_file(), sorted(self.folder.rglob("*"))
        return read_run(where)

    @staticmethod
    def _command(mpi: str, within: tuple[object, ...], arguments: tuple[object, ...]) -> list[str]:
        return [*map(str, within), str(environment_of(mpi) / "bin" / "busbw"), *map(str, arguments)]
