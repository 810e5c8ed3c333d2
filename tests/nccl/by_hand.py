"""Starts the ranks of a planned run without a launcher, each with the variables that some launcher would set."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.runner import read_records

from busbw.base import layout
from busbw.model import codec
from busbw.model.plan import Plan
from busbw.model.record import Finished, Measured
from busbw.store import directory as directories

from .harness import NcclBusbw

# For a rank: far more than any limit of the tests.
_TIMEOUT_S = 200.0


@dataclass(frozen=True)
class Left:
    """What one process left."""

    code: int
    err: str


class ByHand:
    """A run directory with its plan, and the processes that a test starts in it."""

    def __init__(self, busbw: NcclBusbw, *arguments: object) -> None:
        planned = busbw(*busbw.nccl_arguments(*arguments), "--plan", "--json")
        assert planned.code == 0, planned
        self.plan = codec.decode(planned.out.encode(), Plan, where="--plan")
        self.directory = Path(self.plan.job.argv[-1])
        self._busbw = busbw
        self._started: list[tuple[subprocess.Popen[bytes], Path]] = []
        directories.create(self.plan, self.directory)

    @property
    def meeting(self) -> Path:
        """Where rank 0 leaves its address."""
        return self.directory / layout.RAW_DIRECTORY / layout.meeting_name(0)

    def start(self, variables: Mapping[str, str]) -> None:
        """Start one rank; the run's own variable lets a test find what is left of it."""
        err = self.directory / f"by-hand-{len(self._started)}.stderr"
        tag = {layout.RUN_VARIABLE: f"{self.plan.run_id}.0"}
        with err.open("wb") as file:
            process = subprocess.Popen(
                [self._busbw.python, "-P", "-m", "busbw.rank", str(self.directory), "0", ""],
                env={**self._busbw.environment(), **tag, **variables}, cwd=self.directory, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=file,
            )  # fmt: skip
        self._started.append((process, err))

    def finish(self) -> list[Left]:
        """Wait for all of them."""
        ends = [process.wait(_TIMEOUT_S) for process, _err in self._started]
        return [Left(code, err.read_text()) for code, (_process, err) in zip(ends, self._started, strict=True)]

    def assert_complete(self) -> None:
        """Check that every rank came to its end with right results at every point."""
        for rank in range(self.plan.placement.ranks):
            records = read_records(self.directory, rank)
            measured = [record for record in records if isinstance(record, Measured)]
            points = range(sum(len(sweep.sizes_bytes) for sweep in self.plan.sweeps))
            assert {one.point for one in measured} == set(points)
            assert all(one.mismatch is None and one.verified_elements > 0 and one.duration_ns for one in measured)
            assert records[-1] == Finished(reason="complete")


def torchrun(rank: int, ranks: int) -> dict[str, str]:
    """Return what torchrun tells a rank."""
    return {
        "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "localhost", "MASTER_PORT": "29500",
    }  # fmt: skip


def srun(rank: int, ranks: int) -> dict[str, str]:
    """Return what srun tells a rank. Its host has a name that leads to it."""
    told = {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(ranks), "SLURM_LOCALID": str(rank), "SLURM_JOB_ID": "7"}
    return {**told, "MASTER_ADDR": os.uname().nodename}
