"""What the processor time of ranks that wait in the same call tells: who sleeps alone, and who is busy alone."""

from collections.abc import Sequence

from busbw.model.visit import ProcessSeen

# A rank that waits in MPI keeps its processor busy; one that uses less than this share is asleep.
_ASLEEP_SHARE = 0.03
# Ranks that poll a network, or yield their core, spend this share of their time in the kernel, or more; one that spins
# in code of its own spends next to nothing there. The kernel counts by ticks: of less time they tell nothing.
_POLLING_SHARE = 0.25
_OWN_SHARE = 0.02
_LEAST_BUSY_S = 0.1


def busy_share(process: ProcessSeen | None) -> float | None:
    """Return the share of a processor that a process used while it was watched; None: not watched."""
    if process is None or process.busy_s is None or not process.watched_s:
        return None
    return process.busy_s / process.watched_s


def sleeper(processes: Sequence[ProcessSeen | None]) -> int | None:
    """Return the place of the only process that sleeps while all others are busy."""
    shares = [share for process in processes if (share := busy_share(process)) is not None]
    asleep = [place for place, share in enumerate(shares) if share <= _ASLEEP_SHARE]
    return asleep[0] if len(asleep) == 1 and 1 < len(shares) == len(processes) else None


def spinner(processes: Sequence[ProcessSeen | None]) -> int | None:
    """Return the place of the only process that is busy without the kernel, while every other one polls through it.

    Where MPI polls shared memory alone, all are alike, and there is None.
    """
    shares = [share for process in processes if (share := _kernel_share(process)) is not None]
    own = [place for place, share in enumerate(shares) if share <= _OWN_SHARE]
    polling = sum(share >= _POLLING_SHARE for share in shares)
    return own[0] if len(own) == 1 and 0 < polling == len(processes) - 1 else None


def _kernel_share(process: ProcessSeen | None) -> float | None:
    if process is None or process.busy_s is None or process.system_s is None or process.busy_s < _LEAST_BUSY_S:
        return None
    return process.system_s / process.busy_s
