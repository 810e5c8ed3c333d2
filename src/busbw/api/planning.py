"""From a request to a plan: every decision taken and written down before anything starts."""

import datetime as dt
import os
import secrets
import sys
from pathlib import Path

from busbw import __version__
from busbw.api.memory import check_fits, need_of
from busbw.api.request import Request
from busbw.api.sweeps import sweeps_of
from busbw.backends import registry
from busbw.launchers import local
from busbw.model.machine import Host
from busbw.model.plan import Placement, Plan
from busbw.model.sweep import Sampling
from busbw.probe import capture

# On a larger machine more ranks are asked for by name: a first look should be over in a minute.
_MOST_DEFAULT_RANKS = 8


def plan(request: Request, directory: Path | None, base: Path) -> tuple[Plan, Path]:
    """Return the plan of a request, and the run directory it is for: `directory`, or a new one under `base`.

    Raises InputError for what cannot be measured on this machine.
    """
    host = capture.host()
    ranks = request.ranks if request.ranks is not None else _default_ranks(host, request)
    sweeps, notes = sweeps_of(request, ranks)
    mpi = capture.mpi(request.mpirun)
    backend = registry.find("native-mpi")
    created = dt.datetime.now(dt.UTC)
    what = request.suite or "+".join(request.collectives[:3]) or "six"
    run_id = f"{created:%Y%m%dT%H%M%S}-{what}-x{ranks}-{secrets.token_hex(2)}"
    where = (directory if directory is not None else base / run_id).absolute()
    placement = Placement(
        ranks=ranks,
        hosts=(host.name,),
        binding="none" if ranks > host.cores else "core",
        oversubscribed=ranks > host.cores,
    )
    memory = need_of(sweeps, ranks)
    tight = check_fits(memory, host, ranks)
    return (
        Plan(
            busbw_version=__version__,
            run_id=run_id,
            created=created.isoformat(timespec="seconds"),
            backend=backend.name,
            launcher=local.name,
            sweeps=sweeps,
            sampling=Sampling(mode=request.mode, min_samples=request.min_samples, time_limit_s=request.time_limit_s),
            placement=placement,
            host=host,
            mpi=mpi,
            memory=memory,
            job=local.job(
                backend.program(str(where), sys.executable),
                placement,
                mpi,
                as_root=os.geteuid() == 0,
                limits=(request.time_limit_s, request.stall_s),
            ),
            notes=(*notes, *([tight] if tight else [])),
            tag=request.tag,
        ),
        where,
    )


def _default_ranks(host: Host, request: Request) -> int:
    if request.suite == "p2p":
        return 2
    ranks = min(max(host.cores, 2), _MOST_DEFAULT_RANKS)
    return ranks - ranks % 2
