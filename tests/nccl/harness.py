"""Starts the installed `busbw` over the stand-ins for CUDA's driver, NVRTC and NCCL, and looks at what it left."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
from tests.e2e.runner import Busbw, Result, environment_of, read_run
from tests.standin.build import StandIn

from busbw.base.collectives import NCCL_COLLECTIVES
from busbw.model.plan import points_of
from busbw.model.run import Measurement, Run

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = (21803, 22203, 22809, 23203)
NEWEST = 23203
# A hypercube needs a power of two of ranks, a two-level alltoall a group that divides them.
EVERYWHERE = tuple(name for name in NCCL_COLLECTIVES if name not in ("hypercube", "alltoall_2dh"))
# One call a sample, as few samples as it goes: what is checked is the result, not the time.
BRIEF = ("--calls", 1, "-w", 1, "--max-samples", 1)
# What decides how a run over NCCL behaves must come from the test, not from the shell it was started in.
_FOREIGN = (
    "STANDIN_", "NCCL_", "CUDA_", "SLURM_", "PMI_", "TORCH_", "NVSHMEM_",
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "VIRTUAL_ENV", "CONDA_PREFIX",
)  # fmt: skip


def without(what: str) -> NoReturn:
    """Fail in CI, which must have everything, and skip elsewhere."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(what)


@dataclass(kw_only=True)
class NcclBusbw(Busbw):
    """The command beside the stand-ins."""

    standin: StandIn

    def environment(self, mpi: str = "Open MPI") -> dict[str, str]:
        """Return the environment that commands run in; the stand-ins give up before a test does."""
        kept = {name: value for name, value in super().environment(mpi).items() if not name.startswith(_FOREIGN)}
        cache = str(ROOT / "build" / "standin" / "cache")
        return {**kept, "STANDIN_CACHE": cache, "STANDIN_PATIENCE_S": "30"}

    def libraries(self, version: int = 22809, *, kernels: bool = True) -> tuple[object, ...]:
        """Return the options that name the stand-ins; without `kernels` the host checks results."""
        nvrtc = self.standin.nvrtc if kernels else "none"
        return ("--nccl", self.standin.nccl(version), "--driver", self.standin.cuda, "--nvrtc", nvrtc)

    def nccl(
        self,
        *arguments: object,
        version: int = 22809,
        kernels: bool = True,
        launcher: str = "processes",
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """Run `busbw run ARGUMENTS` over the stand-ins to its end."""
        given = self.nccl_arguments(*arguments, version=version, kernels=kernels, launcher=launcher)
        return self.forked(*given, env=env)

    def nccl_arguments(
        self, *arguments: object, version: int = 22809, kernels: bool = True, launcher: str = "processes"
    ) -> tuple[object, ...]:
        """Return what `nccl` gives to the command."""
        libraries = self.libraries(version, kernels=kernels)
        return ("run", *arguments, "--backend", "nccl", "--launcher", launcher, *libraries)

    @property
    def python(self) -> str:
        """The interpreter that the command runs in."""
        return str(environment_of("Open MPI") / "bin" / "python")

    def run_of(self) -> Run:
        """Return what the only run came to."""
        return read_run(self.directory())


def assert_all_right(busbw: NcclBusbw, result: Result, env: Mapping[str, str] | None = None) -> tuple[Measurement, ...]:
    """Check that every point was measured and every element of it right.

    Resumes a run that had too little time, in the environment that it had.
    """
    for _attempt in range(20):
        assert result.code in {0, 1, 4}, result
        run = busbw.run_of()
        assert run.outcome is not None
        assert run.outcome.ended in {"complete", "time"}, result
        if len(run.measurements) == len(points_of(run.plan.sweeps)):
            break
        result = busbw.forked("run", "--resume", busbw.directory(), env=env)
    assert len(run.measurements) == len(points_of(run.plan.sweeps)), result
    assert run.unreadable == ()
    assert [label(one) for one in run.measurements if one.wrong is not None or not one.verified] == []
    assert all(one.median_s > 0 for one in run.measurements)
    return run.measurements


def assert_refused(result: Result, *words: str) -> None:
    """Check that the user is told what is wrong in at most four lines, before anything has started."""
    assert result.code == 2, result
    assert result.out == ""
    lines = result.err.splitlines()
    assert len(lines) <= 4, result
    assert lines[0].startswith("error: "), result
    for word in words:
        assert word in result.err, result


def label(one: Measurement) -> str:
    """Return what a measurement is of, for a failing test."""
    return (
        f"{one.collective} {one.size_bytes} {one.dtype} {one.op} root {one.root} in place {one.in_place}: {one.wrong}"
    )
