"""Everything that will be done, complete before the first process starts."""

from typing import Annotated

from msgspec import Meta

from busbw.model.machine import Host, MpiLibrary
from busbw.model.sweep import Sampling, Sweep
from busbw.model.value import Integer, Value

MOST_RANKS = 65_536
PLAN_SCHEMA = 1


class Placement(Value, kw_only=True, frozen=True):
    """How many ranks run where."""

    ranks: Annotated[int, Meta(ge=1, le=MOST_RANKS)]
    hosts: tuple[str, ...]
    # "core": each rank keeps one core; "none": the operating system moves them.
    binding: str
    # More ranks than cores: waiting ranks must give their core away.
    oversubscribed: bool


class Program(Value, kw_only=True, frozen=True):
    """What one rank runs: argv without the launcher, and the environment it needs beside its parent's."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


class Job(Value, kw_only=True, frozen=True):
    """A command ready to start. The environment is the caller's with `env` set and `prepend` put before lists."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    # (variable, directory): put first in a list such as PATH.
    prepend: tuple[tuple[str, str], ...] = ()
    # (path within the run directory, what it points to): symbolic links made before the start.
    links: tuple[tuple[str, str], ...] = ()
    # The launcher is ended when it still runs after this long.
    timeout_s: float
    # The run is ended when no rank makes progress for this long.
    stall_s: float


class MemoryNeed(Value, kw_only=True, frozen=True):
    """What the ranks of one host allocate, by their own arithmetic."""

    buffers_bytes: Integer
    # Interpreter, MPI and its shared-memory segments, per rank an allowance.
    overhead_bytes: Integer
    # What the MPI library may take besides for its algorithms; counted in the warning, not in the refusal.
    scratch_bytes: Integer

    @property
    def needed_bytes(self) -> int:
        """What must fit before anything starts."""
        return self.buffers_bytes + self.overhead_bytes


class Plan(Value, kw_only=True, frozen=True):
    """One run, word for word: what is measured, where, by which command."""

    schema: Integer = PLAN_SCHEMA
    busbw_version: str
    run_id: str
    created: str
    backend: str
    launcher: str
    sweeps: tuple[Sweep, ...]
    sampling: Sampling
    placement: Placement
    host: Host
    mpi: MpiLibrary
    memory: MemoryNeed
    job: Job
    # Decisions taken on the way that a reader should know: sizes dropped, limits met.
    notes: tuple[str, ...] = ()
    tag: str | None = None
