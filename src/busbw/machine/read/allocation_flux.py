"""Flux: the hosts of the instance or the job that a process is in, as `flux` tells them."""

import math

from busbw.base.errors import InputError
from busbw.base.hostlist import expand
from busbw.machine.read.allocation_seen import Seen
from busbw.machine.read.commands import Command
from busbw.model.launch import Allocation, HostSlots

# In a task FLUX_JOB_ID says which hosts are meant. The shell of `flux alloc` has an instance of its own, whose broker
# knows them; versions before 0.59 have no `flux hostlist`.
COMMANDS = (
    Command(name="flux-hostlist", programs=("flux",), arguments=("hostlist", "local")),
    Command(name="flux-attribute", programs=("flux",), arguments=("getattr", "hostlist")),
    Command(name="flux-jobid", programs=("flux",), arguments=("getattr", "jobid")),
    Command(name="flux-timeleft", programs=("flux",), arguments=("job", "timeleft")),
)


def allocation(seen: Seen) -> Allocation:
    """Return the hosts that Flux gave. Raises InputError where `flux` does not tell them."""
    inside = seen.environment.get("FLUX_JOB_ID") or None
    listed, asked = seen.said("flux-hostlist"), "flux hostlist local"
    if not listed and inside is None:
        listed, asked = seen.said("flux-attribute"), "flux getattr hostlist"
    if not listed:
        raise InputError(
            "FLUX_URI is set, and flux does not tell the hosts",
            where=asked,
            hint="name the hosts: --hosts n[0-3]; or, outside of Flux: unset FLUX_URI",
        )
    # Brokers may share a host in tests of Flux.
    names = tuple(dict.fromkeys(expand(listed, where=asked)))
    job_id = inside or seen.said("flux-jobid") or None
    return Allocation(
        kind="flux",
        hosts=tuple(HostSlots(name=name) for name in names),
        job_id=job_id,
        ends_unix_s=_ends(seen),
        how=f"`{asked}`{f' of job {job_id}' if job_id else ''}",
    )


def _ends(seen: Seen) -> float | None:
    try:
        left_s = float(seen.said("flux-timeleft") or "nan")
    except ValueError:
        return None
    return seen.now_unix_s + left_s if math.isfinite(left_s) else None
