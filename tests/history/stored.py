"""Runs as they lie on disk, written through the store as `busbw run` writes them."""

import datetime as dt
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.exports.factories import make_right_run
from tests.judge.factories import make_hello

from busbw.model.run import Run
from busbw.model.settings import JobEnvironment
from busbw.store import directory as directories
from busbw.store import outcome
from busbw.store import outcome as outcomes

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def make_run(
    number: int = 0,
    *,
    host: str = "node00",
    platform: str | None = None,
    tag: str | None = None,
    slower: float = 1.0,
    mpi_version: str = "5.0.7",
    settings: dict[str, str] | None = None,
    **changes: Any,
) -> Run:
    """Return a run of all_reduce that was planned `number` days after START; its times are `slower` than usual."""
    run = make_right_run()
    created = START + dt.timedelta(days=number)
    assert run.plan.mpi is not None
    plan = replace(
        run.plan,
        run_id=f"{created:%Y%m%dT%H%M%S}-{number:04d}",
        created=created.isoformat(),
        tag=tag,
        host=replace(run.plan.host, name=host),
        placement=replace(run.plan.placement, hosts=(host,)),
        mpi=replace(run.plan.mpi, version=mpi_version),
        surroundings=JobEnvironment(where="here", environment=settings or {}, platform=platform),
    )
    measurements = tuple(
        replace(
            each,
            median_s=each.median_s * slower,
            busbw_Bps=each.busbw_Bps / slower,
            algbw_Bps=each.algbw_Bps / slower,
        )
        for each in run.measurements
    )
    made = replace(run, plan=plan, measurements=measurements, ranks=tuple(make_hello(rank) for rank in range(4)))
    return replace(made, **changes)


def keep(run: Run, base: Path) -> Path:
    """Store a run as the launching side does, step by step, and return its directory."""
    directory = base / run.plan.run_id
    directories.create(run.plan, directory)
    assert run.outcome is not None
    outcomes.write(directory, run.outcome)
    outcome.write_run(directory, run)
    return directory
