"""Starts the installed `busbw` as a user would: a process with arguments, an environment, and what it leaves behind."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.patience import wait_until
from tests.warm import warm_busbw

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.measure.execute import watch
from busbw.model import codec
from busbw.model.plan import Plan
from busbw.model.record import AnyRecord
from busbw.model.run import Run

ROOT = Path(__file__).resolve().parents[2]
SHIMS = Path(__file__).with_name("shims")
# Each environment holds the same wheel of busbw beside another MPI (`make envs`). The first is the one tests run in;
# the others can be named by a variable, to try one that is already there.
ENVIRONMENTS = {
    "Open MPI": Path(sys.prefix),
    "MPICH": Path(os.environ.get("BUSBW_TEST_MPICH", ROOT / ".venv-mpich")),
    "Intel MPI": Path(os.environ.get("BUSBW_TEST_IMPI", ROOT / ".venv-impi")),
}
# A run of the tests takes a few seconds; a busy machine may take ten times as long.
TIMEOUT_S = 200.0
# How long without a sign of life makes a rank of a test hang: more than a busy machine keeps one from running.
STALL_S = 6
# Open MPI 5 asks libfabric for devices at every start, which sleeps a second and finds none here.
NO_DEVICES = {"OMPI_MCA_btl": "^ofi"}
# Ranks of Open MPI leave their core while they wait. Where tests share the cores, and results count and not times, two
# ranks then get three times as many samples in the same time.
YIELDING = {"OMPI_MCA_mpi_yield_when_idle": "1"}
# What decides how an MPI behaves must come from the test, not from the shell it was started in.
_FOREIGN = (
    "BUSBW_",
    "OMPI_",
    "PMIX_",
    "PRTE_",
    "MPICH_",
    "MPIR_",
    "HYDRA_",
    "I_MPI_",
    "FI_",
    "MPI4PY_",
    "PYTHON",
    "LD_",
)


def environment_of(mpi: str) -> Path:
    """Return where `mpi` is, with busbw beside it; without it the test fails in CI and is skipped elsewhere."""
    prefix = ENVIRONMENTS[mpi]
    if not (prefix / "bin" / "busbw").exists():
        reason = f"no busbw with {mpi} in {prefix}: make envs"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return prefix


def clean_environment(prefix: Path, runs: Path) -> dict[str, str]:
    """Return the caller's environment without anything about MPI, and with no mpirun on PATH but that of `prefix`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    path = [folder for folder in os.get_exec_path() if folder and not _has_mpirun(Path(folder))]
    own = {"PATH": ":".join([str(prefix / "bin"), *path]), "BUSBW_RUNS": str(runs), "LC_ALL": "C.UTF-8"}
    return {**kept, **own, **NO_DEVICES}


def _has_mpirun(folder: Path) -> bool:
    return (folder / "mpirun").exists() or (folder / "mpiexec").exists()


@dataclass(frozen=True)
class Result:
    """What a process of `busbw` left: its exit code and what it printed."""

    code: int
    out: str
    err: str
    wall_s: float

    def run(self) -> Run:
        """Return the run that `--json` printed."""
        return codec.decode(self.out.encode(), Run, where="standard output")

    def __str__(self) -> str:
        return f"exit code {self.code} after {self.wall_s:.1f} s\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Started:
    """A `busbw` under way."""

    def __init__(self, process: "subprocess.Popen[bytes]", out: Path, err: Path) -> None:
        self.process = process
        self._out, self._err = out, err
        self._began_s = time.monotonic()

    def wait_for(self, text: str, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until standard error holds `text`."""
        wait_until(lambda: text in self.err or self.process.poll() is not None, timeout_s, f"{text!r} on stderr")
        assert text in self.err, self.finish()

    @property
    def err(self) -> str:
        """What standard error holds so far."""
        return self._err.read_text(encoding="utf-8", errors="replace")

    def interrupt(self) -> None:
        """Send SIGINT to busbw alone, as `kill -INT` does."""
        self.process.send_signal(signal.SIGINT)

    def finish(self, timeout_s: float = TIMEOUT_S) -> Result:
        """Wait for the end and return what came of it."""
        code = self.process.wait(timeout_s)
        wall_s = time.monotonic() - self._began_s
        result = Result(code, self._out.read_text(encoding="utf-8", errors="replace"), self.err, wall_s)
        # Python's exit code for a crash is 1, and 1 means findings: a crash must not pass for them.
        assert "Traceback" not in result.err, result
        return result


@dataclass
class Busbw:
    """The command, for one test: keeps its runs in a folder of their own and leaves no process behind."""

    folder: Path
    settings_of_mpi: Mapping[str, str] = field(default_factory=dict)
    started: list[Started] = field(default_factory=list)

    @property
    def runs(self) -> Path:
        """Where runs go."""
        return self.folder / "runs"

    def environment(self, mpi: str = "Open MPI") -> dict[str, str]:
        """Return the environment that commands with `mpi` run in."""
        return {**clean_environment(environment_of(mpi), self.runs), **self.settings_of_mpi}

    def start(
        self, *arguments: object, mpi: str = "Open MPI", env: Mapping[str, str] | None = None, realtime: bool = False
    ) -> Started:
        """Start `busbw` with `arguments`. `realtime`: before every other process, where that is allowed."""
        command = [str(environment_of(mpi) / "bin" / "busbw"), *map(str, arguments)]
        return self.start_command(command, {**self.environment(mpi), **(env or {})}, realtime=realtime)

    def start_command(self, command: list[str], environment: Mapping[str, str], *, realtime: bool = False) -> Started:
        """Start any command and follow it like a `busbw`."""
        number = len(self.started)
        out, err = self.folder / f"{number}.stdout", self.folder / f"{number}.stderr"
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
                cwd=self.folder,
                preexec_fn=_before_all_others if realtime else None,
            )
        self.started.append(Started(process, out, err))
        return self.started[-1]

    def __call__(
        self,
        *arguments: object,
        mpi: str = "Open MPI",
        env: Mapping[str, str] | None = None,
        realtime: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> Result:
        """Run `busbw` with `arguments` to its end."""
        return self.start(*arguments, mpi=mpi, env=env, realtime=realtime).finish(timeout_s)

    def forked(self, *arguments: object, env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S) -> Result:
        """Run `busbw` to its end where how it starts is not looked at: tests/warm.py."""
        began_s = time.monotonic()
        done = warm_busbw(*arguments, env={**self.environment(), **(env or {})}, cwd=self.folder, timeout=timeout_s)
        result = Result(done.returncode, done.stdout, done.stderr, time.monotonic() - began_s)
        assert "Traceback" not in result.err, result
        return result

    def to_the_end(
        self,
        result: Result,
        mpi: str = "Open MPI",
        where: Path | None = None,
        *,
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """Resume the only run, or the one in `where`, until its time limit was enough for a busy machine."""
        directory = where if where is not None else self.directory()
        for _attempt in range(20):
            run = read_run(directory)
            ended = run.outcome.ended if run.outcome is not None else None
            if ended != "time":
                return result
            result = self("run", "--resume", directory, mpi=mpi, env=env)
        return result

    def directory(self) -> Path:
        """Return the directory of the only run there is."""
        (directory,) = [path.parent for path in self.runs.glob(f"*/{layout.PLAN_FILE}")]
        return directory

    def shim(self, name: str, mpi: str = "Open MPI") -> dict[str, str]:
        """Compile shims/NAME.c with the mpicc of `mpi`; return what preloads it into the processes of a run."""
        library = self.folder / f"{name}-{mpi.replace(' ', '')}.so"
        mpicc = environment_of(mpi) / "bin" / "mpicc"
        subprocess.run(
            [
                str(mpicc),
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-shared",
                "-fPIC",
                "-o",
                str(library),
                str(SHIMS / f"{name}.c"),
            ],
            check=True,
            env=self.environment(mpi),
        )
        return {"LD_PRELOAD": str(library)}

    def held(self, count: int, mpi: str = "Open MPI") -> dict[str, str]:
        """Return what makes rank 1 hang in its tenth call of `count` elements: the run goes on until the test ends it.

        Otherwise a run of a second may be over before a busy machine lets the test strike. Intel MPI has no mpicc here.
        """
        if mpi == "Intel MPI":
            return {}
        return {
            **self.shim("fail", mpi),
            "FAIL_RANK": "1",
            "FAIL_COUNT": str(count),
            "FAIL_CALL": "10",
            "FAIL_HOW": "hang",
        }

    def clean_up(self) -> tuple[int, ...]:
        """End what this test started and return the processes of its runs that were left."""
        for started in self.started:
            if started.process.poll() is None:
                started.process.kill()
                started.process.wait()
        left = left_of(self.folder)
        for process_id in left:
            with contextlib.suppress(ProcessLookupError):  # ranks end by themselves when their launcher has
                os.kill(process_id, signal.SIGKILL)
        return left


def _before_all_others() -> None:
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return


def left_of(folder: Path) -> tuple[int, ...]:
    """Return the processes that carry in their environment a run whose plan lies anywhere below `folder`."""
    names = []
    for path in folder.rglob(layout.PLAN_FILE):
        with contextlib.suppress(InputError):  # a test may have damaged it
            names.append(read_plan(path.parent).run_id)
    wanted = tuple(f"{layout.RUN_VARIABLE}={name}.".encode() for name in names)
    return tuple(process_id for process_id in _process_ids() if wanted and _carries(process_id, wanted))


def _process_ids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _carries(process_id: int, wanted: tuple[bytes, ...]) -> bool:
    try:
        # Empty for a process that has ended and was not collected yet.
        variables = Path(f"/proc/{process_id}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(variable.startswith(wanted) for variable in variables)


def read_plan(directory: Path) -> Plan:
    """Return the plan of a run directory."""
    return codec.decode((directory / layout.PLAN_FILE).read_bytes(), Plan, where=str(directory))


def read_run(directory: Path) -> Run:
    """Return the stored result of a run directory."""
    return codec.decode((directory / layout.RUN_FILE).read_bytes(), Run, where=str(directory))


def read_records(directory: Path, rank: int, attempt: int = 0) -> list[AnyRecord]:
    """Return what `rank` wrote."""
    lines = (directory / layout.RAW_DIRECTORY / layout.records_name(rank, attempt)).read_bytes().splitlines()
    return [codec.decode(line, AnyRecord, where="record") for line in lines]  # type: ignore[arg-type]


def process_of(directory: Path, rank: int) -> int:
    """Return the process id of `rank` in a run under way."""
    beat = watch.read(directory / layout.RAW_DIRECTORY, rank)
    assert beat is not None
    return beat.process_id


def children_of(process_id: int) -> tuple[int, ...]:
    """Return the children of a process."""
    text = Path(f"/proc/{process_id}/task/{process_id}/children").read_text(encoding="ascii")
    return tuple(int(word) for word in text.split())


def program(path: Path, text: str) -> Path:
    """Write a program that the test made up, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def mount_tmpfs(folder: Path, size_bytes: int) -> None:
    """Mount an empty file system of `size_bytes` at `folder`, or skip the test where that is not allowed."""
    folder.mkdir()
    command = [shutil.which("mount") or "mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
