"""From a request to a plan: every decision taken and written down before anything starts."""

import datetime as dt
import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

from busbw import __version__
from busbw.api.memory import check_fits, need_of
from busbw.api.request import Request
from busbw.api.sweeps import sweeps_of
from busbw.backends import registry
from busbw.launchers import local
from busbw.model.machine import Host, MpiLibrary
from busbw.model.plan import Placement, Plan
from busbw.model.sweep import Sampling
from busbw.probe import capture

# On a larger machine more ranks are asked for by name: a first look should be over in a minute.
_MOST_DEFAULT_RANKS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a plan depends on beside the request: the machine, and who asks."""

    host: Host
    mpi: MpiLibrary
    # The interpreter that the ranks run.
    python: str
    as_root: bool
    created: dt.datetime
    # Tells runs of the same second apart.
    token: str


def plan(request: Request, directory: Path | None, base: Path) -> tuple[Plan, Path]:
    """Return the plan of a request, and the run directory it is for: `directory`, or a new one under `base`.

    Raises InputError for what cannot be measured on this machine.
    """
    host = capture.host()
    # Checked before the MPI is looked for: what is wrong with the request is the user's to hear first.
    sweeps_of(request, _ranks(host, request))
    surroundings = Surroundings(
        host=host,
        mpi=capture.mpi(request.mpirun),
        python=sys.executable,
        as_root=os.geteuid() == 0,
        created=dt.datetime.now(dt.UTC),
        token=secrets.token_hex(2),
    )
    return compose(request, surroundings, directory, base)


def compose(request: Request, around: Surroundings, directory: Path | None, base: Path) -> tuple[Plan, Path]:
    """Return the plan of a request in the given surroundings, and its run directory. Touches nothing."""
    host, mpi = around.host, around.mpi
    ranks = _ranks(host, request)
    sweeps, notes = sweeps_of(request, ranks)
    what = request.suite or "+".join(request.collectives[:3]) or "six"
    run_id = f"{around.created:%Y%m%dT%H%M%S}-{what}-x{ranks}-{around.token}"
    where = (directory if directory is not None else base / run_id).absolute()
    oversubscribed = ranks > host.cores
    placement = Placement(
        ranks=ranks,
        hosts=(host.name,),
        binding="none" if oversubscribed else "core",
        oversubscribed=oversubscribed,
    )
    memory = need_of(sweeps, ranks)
    tight = check_fits(memory, host, ranks)
    backend = registry.find("native-mpi")
    return (
        Plan(
            busbw_version=__version__,
            run_id=run_id,
            created=around.created.isoformat(timespec="seconds"),
            backend=backend.name,
            launcher=local.name,
            sweeps=sweeps,
            sampling=Sampling(mode=request.mode, min_samples=request.min_samples, time_limit_s=request.time_limit_s),
            placement=placement,
            host=host,
            mpi=mpi,
            memory=memory,
            job=local.job(
                backend.program(str(where), around.python),
                placement,
                mpi,
                directory=str(where),
                as_root=around.as_root,
                limits=(request.time_limit_s, request.stall_s),
            ),
            notes=(*notes, *([tight] if tight else [])),
            tag=request.tag,
        ),
        where,
    )


def _ranks(host: Host, request: Request) -> int:
    if request.ranks is not None:
        return request.ranks
    if request.suite == "p2p":
        return 2
    ranks = min(max(host.cores, 2), _MOST_DEFAULT_RANKS)
    return ranks - ranks % 2
