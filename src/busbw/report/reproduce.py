"""The command line that makes a plan again."""

import shlex
from itertools import pairwise

from busbw.collectives import COLLECTIVES, DTYPE_BYTES, SUITES, counted_size
from busbw.model.plan import Plan
from busbw.model.sweep import Sweep

# What asking for powers of two from 1 on can begin with, after rounding to whole elements and parts.
_FIRST_SIZES_BYTES = (8, *(2**exponent for exponent in range(41)))


def command_of(plan: Plan) -> str | None:
    """Return one `busbw run` command that asks for the same measurements; None when no command does."""
    sizes = _sizes(plan)
    placement = _placement(plan.sweeps)
    if sizes is None or placement is None:
        return None
    first = plan.sweeps[0]
    argv = ["busbw", "run", *_names(plan.sweeps), "-n", str(plan.placement.ranks), *sizes, *placement]
    argv += [] if first.dtype == "float32" else ["-d", first.dtype]
    argv += [] if first.op == "sum" else ["--op", first.op]
    argv += [] if first.root == 0 else ["-r", str(first.root)]
    argv += [] if plan.sampling.mode == "isolated" else ["--mode", plan.sampling.mode]
    argv += ["--time-limit", f"{plan.sampling.time_limit_s:g}"]
    argv += [] if plan.job.stall_s == 60 else ["--stall-timeout", f"{plan.job.stall_s:g}"]
    argv += [] if plan.sampling.min_samples == 30 else ["--min-samples", str(plan.sampling.min_samples)]
    argv += ["--mpirun", plan.mpi.mpirun] if plan.mpi.origin == "chosen" else []
    argv += ["--tag", plan.tag] if plan.tag else []
    return shlex.join(argv)


def _names(sweeps: tuple[Sweep, ...]) -> list[str]:
    names = tuple(dict.fromkeys(sweep.collective for sweep in sweeps))
    suites = [suite for suite, members in SUITES.items() if members == names]
    return ["--suite", suites[0]] if suites else list(names)


def _placement(sweeps: tuple[Sweep, ...]) -> list[str] | None:
    known = [sweep for sweep in sweeps if sweep.collective in COLLECTIVES]
    forms = {sweep.in_place for sweep in known if COLLECTIVES[sweep.collective].in_place}
    # Between out of place and the default there is no difference, so a plan without a choice needs no argument.
    wanted = {False: "out", True: "in"}[next(iter(forms))] if len(forms) == 1 else "both" if forms else "out"
    return [] if wanted == "out" else ["--in-place", wanted]


def _sizes(plan: Plan) -> list[str] | None:
    """Return -b, -e and -f or -i such that counting gives exactly the plan's sizes."""
    sweeps = plan.sweeps
    if not sweeps or any(sweep.collective not in COLLECTIVES or sweep.dtype not in DTYPE_BYTES for sweep in sweeps):
        return None
    every = sorted({size_bytes for sweep in sweeps for size_bytes in sweep.sizes_bytes})
    if not every:
        return None
    firsts = dict.fromkeys((every[0], *(size for size in _FIRST_SIZES_BYTES if size <= every[-1])))
    for first_bytes in firsts:
        for factor in _factors(every, first_bytes):
            asked = _grown(first_bytes, every[-1], factor)
            if _gives(asked, plan):
                return ["-b", str(first_bytes), "-e", str(asked[-1]), *(["-f", str(factor)] if len(asked) > 1 else [])]
    for step_bytes in sorted({right - left for left, right in pairwise(every)}):
        asked = list(range(every[0], every[-1] + 1, step_bytes))
        if len(asked) <= 10_000 and _gives(asked, plan):
            return ["-b", str(asked[0]), "-e", str(asked[-1]), "-i", str(step_bytes)]
    return None


def _factors(every: list[int], first_bytes: int) -> list[int]:
    """Return the factors that sizes may have grown by: rounding moves a ratio, least between the largest sizes."""
    if len(every) == 1 and every[0] == first_bytes:
        return [2]
    ratios = {round(right / left) for left, right in pairwise(every)} | {2}
    return sorted(ratio for ratio in ratios if ratio >= 2)


def _grown(first_bytes: int, largest_bytes: int, factor: int) -> list[int]:
    """Return the sizes asked for; the last may be rounded down to `largest_bytes`, so one more is tried."""
    asked = [first_bytes]
    while asked[-1] < largest_bytes:
        asked.append(asked[-1] * factor)
    return asked


def _gives(asked: list[int], plan: Plan) -> bool:
    for sweep in plan.sweeps:
        collective = COLLECTIVES[sweep.collective]
        counted = (counted_size(collective, size_bytes, plan.placement.ranks, sweep.dtype) for size_bytes in asked)
        if tuple(dict.fromkeys(size_bytes for size_bytes in counted if size_bytes > 0)) != sweep.sizes_bytes:
            return False
    return True
