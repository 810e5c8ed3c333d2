"""The command line that makes a plan again."""

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise, product

from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, SUITES, counted_size
from busbw.base.hostlist import compressed
from busbw.model.plan import Plan, Sweep
from busbw.model.settings import WITHHELD, Settings

# What asking for powers of two from 1 on can begin with, after rounding to whole elements and parts.
_FIRST_SIZES_BYTES = (8, *(2**exponent for exponent in range(41)))
# First sizes and steps that are tried in vain, each, before giving up.
_MOST_TRIED = 64
_MOST_SIZES = 10_000


def command_of(plan: Plan) -> str | None:
    """Return one `busbw run` command that asks for the same measurements; None when no command does."""
    sizes = _sizes(plan)
    placement = _placement(plan.sweeps)
    if sizes is None or placement is None:
        return None
    first = plan.sweeps[0]
    argv = ["busbw", "run", *_names(plan.sweeps), *_ranks(plan), *sizes, *placement]
    argv += _foreign_options(plan) if plan.steps else _gpu_options(plan)
    groups = {sweep.group for sweep in plan.sweeps if sweep.group is not None}
    argv += ["--group", str(min(groups))] if groups else []
    argv += ["--unaligned"] if first.part_alignment_bytes == 1 else []
    argv += [] if first.dtype == "float32" else ["-d", first.dtype]
    argv += [] if first.op == "sum" else ["--op", first.op]
    argv += [] if first.root == 0 else ["-r", str(first.root)]
    usual = "isolated" if plan.gpu_setup is None and not plan.steps else "stream"
    argv += [] if plan.sampling.mode == usual else ["--mode", plan.sampling.mode]
    argv += ["--calls", str(plan.sampling.calls)] if plan.sampling.calls is not None else []
    argv += ["--warmup", str(plan.sampling.warmup_calls)] if plan.sampling.warmup_calls is not None else []
    argv += [] if plan.sampling.verify else ["--check", "0"]
    argv += ["--launches", str(plan.sampling.launches)] if plan.sampling.launches > 1 else []
    argv += ["--time-limit", f"{plan.sampling.time_limit_s:g}"]
    argv += [] if plan.job.stall_s == 60 else ["--stall-timeout", f"{plan.job.stall_s:g}"]
    argv += [] if plan.sampling.min_samples == 30 else ["--min-samples", str(plan.sampling.min_samples)]
    argv += ["--mpirun", plan.mpi.mpirun] if plan.mpi is not None and plan.mpi.origin == "chosen" else []
    argv += ["--tag", plan.tag] if plan.tag else []
    return shlex.join(argv)


def _ranks(plan: Plan) -> list[str]:
    """Return what says how many ranks run where. Hosts with ranks of their own number come with it, as `n0:2`."""
    placement, reach = plan.placement, plan.reach
    usual = "none" if plan.gpu_setup is not None or plan.steps or placement.oversubscribed else "core"
    bound = [] if placement.binding == usual else ["--bind-to", placement.binding]
    if reach is None:
        return ["--ranks", str(placement.ranks), *bound]
    if len(set(placement.ranks_of_hosts)) == 1:
        argv = ["--hosts", compressed(placement.hosts), "--ranks-per-node", str(placement.ranks_of_hosts[0])]
    else:
        counted = zip(placement.hosts, placement.ranks_of_hosts, strict=True)
        argv = ["--hosts", ",".join(f"{host}:{ranks}" for host, ranks in counted)]
    argv += [*bound, "--launcher", plan.launcher]
    argv += ["--interface", reach.interface] if reach.interface is not None else []
    argv += ["--remote-shell", shlex.join(reach.remote_shell)] if reach.remote_shell else []
    return [*argv, *(part for word in reach.options for part in ("--launcher-option", word))]


def _foreign_options(plan: Plan) -> list[str]:
    """Return what names the programs: the one, or the folder that all of them are in."""
    folders = {program.path.rpartition("/")[0] for program in plan.programs}
    where = plan.programs[0].path if len(plan.programs) == 1 else folders.pop() if len(folders) == 1 else None
    argv = ["--backend", plan.backend, *(["--bin", where] if where is not None else [])]
    return [*argv, "--launcher", "direct"] if plan.mpi is None else argv


def _gpu_options(plan: Plan) -> list[str]:
    setup, host = plan.gpu_setup, plan.gpus
    if setup is None or host is None:
        return []
    argv = ["--backend", plan.backend, *([] if setup.per_process == 1 else ["-g", str(setup.per_process)])]
    argv += [] if setup.buffers == "plain" else ["-R", {"registered": "1", "symmetric": "2"}[setup.buffers]]
    # NCCL has had memory of its own since 2.19; before, there is no choice.
    old = host.nccl.version.startswith("2.18.")
    argv += [] if setup.nccl_memory or old else ["--memory", "cuda"]
    argv += [] if setup.cache == "cold" else ["--cache", setup.cache]
    argv += [part for name, value in setup.config for part in ("--config", f"{name}={value}")]
    argv += ["--no-multicast"] if setup.multicast_off else []
    argv += ["--load-side", str(setup.load_side)] if plan.sampling.mode == "loaded" else []
    argv += ["--nccl", host.nccl.path] if host.nccl.origin == "named" else []
    argv += ["--driver", host.driver.path] if host.driver.origin == "named" else []
    argv += ["--nvrtc", host.nvrtc.path] if host.nvrtc is not None and host.nvrtc.origin == "named" else []
    pairs = [f"{sweep.pair[0]}-{sweep.pair[1]}" for sweep in plan.sweeps if sweep.pair is not None]
    argv += ["--pairs", ",".join(dict.fromkeys(pairs))] if pairs else []
    return argv + ([] if plan.mpi is not None else ["--launcher", plan.launcher])


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
    grain_bytes = _grain_bytes(plan)
    unrounded = range(every[0], every[0] + min(grain_bytes, _MOST_TRIED))
    usual = (size for size in _FIRST_SIZES_BYTES if size <= every[-1])
    for first_bytes in dict.fromkeys((every[0], *usual, *unrounded)):
        for factor in _factors(every, first_bytes):
            asked = _grown(first_bytes, every[-1], factor)
            if _gives(asked, plan):
                return ["-b", str(first_bytes), "-e", str(asked[-1]), *(["-f", str(factor)] if len(asked) > 1 else [])]
    for first_bytes, step_bytes in product(unrounded, _steps(every)):
        asked = range(first_bytes, every[-1] + grain_bytes, step_bytes)
        if len(asked) <= _MOST_SIZES and _gives(asked, plan):
            return ["-b", str(asked[0]), "-e", str(asked[-1]), "-i", str(step_bytes)]
    return None


def _grain_bytes(plan: Plan) -> int:
    """Return what counting rounds sizes down to multiples of; the finest, where sweeps differ."""
    return min(
        max(sweep.part_alignment_bytes, DTYPE_BYTES[sweep.dtype]) * plan.placement.ranks
        if COLLECTIVES[sweep.collective].splits
        else DTYPE_BYTES[sweep.dtype]
        for sweep in plan.sweeps
    )


def _steps(every: list[int]) -> list[int]:
    """Return the steps that sizes may have grown by: rounding makes one of them look like several."""
    seen = sorted({right - left for left, right in pairwise(every)})
    between = range(seen[0], seen[-1] + 1) if seen and seen[-1] - seen[0] < _MOST_TRIED else ()
    return list(dict.fromkeys((*seen, *between)))


def _factors(every: list[int], first_bytes: int) -> list[int]:
    """Return the factors that sizes may have grown by: rounding moves a ratio, least between the largest sizes."""
    if len(every) == 1 and every[0] == first_bytes:
        return [2]
    down = {right // left for left, right in pairwise(every)}
    up = {-(-right // left) for left, right in pairwise(every)}
    return sorted(ratio for ratio in down | up | {2} if ratio >= 2)


def _grown(first_bytes: int, largest_bytes: int, factor: int) -> Sequence[int]:
    """Return the sizes asked for; the last may be rounded down to `largest_bytes`, so one more is tried."""
    asked = [first_bytes]
    while asked[-1] < largest_bytes:
        asked.append(asked[-1] * factor)
    return asked


def _gives(asked: Sequence[int], plan: Plan) -> bool:
    return all(_gives_sweep(asked, sweep, plan.placement.ranks) for sweep in plan.sweeps)


def _gives_sweep(asked: Sequence[int], sweep: Sweep, ranks: int) -> bool:
    def counted(size_bytes: int) -> int:
        collective = COLLECTIVES[sweep.collective]
        return counted_size(collective, size_bytes, ranks, sweep.dtype, sweep.part_alignment_bytes)

    # Most guesses miss the end: nearly all of them need no more than this.
    if counted(asked[-1]) != sweep.sizes_bytes[-1]:
        return False
    return tuple(dict.fromkeys(size for size in map(counted, asked) if size > 0)) == sweep.sizes_bytes


# What a launcher or a queue sets for one job alone.
OF_ONE_JOB = ("SLURM_", "WORLD_SIZE", "RANK", "LOCAL_RANK")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def with_settings(command: str, settings: Settings | None) -> str:
    """Return `NCCL_PROTO=Simple busbw run ...`: what the environment set and the run did not set itself.

    Values that were withheld, and what belongs to one job, are left out.
    """
    if settings is None:
        return command
    words = [
        f"{choice.name}={shlex.quote(choice.value)}"
        for choice in settings.in_force()
        if choice.layer == "shell"
        and choice.value is not None
        and WITHHELD not in choice.value
        and _NAME.fullmatch(choice.name)
        and not choice.name.startswith(OF_ONE_JOB)
    ]
    return " ".join([*words, command])


# Options of `busbw run` that are of all sides, and that `busbw compare` decides itself.
_OF_ALL = frozenset({"-b", "-e", "-f", "-i", "--stall-timeout", "--min-samples"})
_LEFT_OUT = frozenset({"--tag", "--time-limit"})
_FLAGS = frozenset({"--unaligned", "--no-multicast"})


def command_in_turn(plans: Sequence[Plan]) -> str | None:
    """Return `busbw compare ... --set ... --set ...` for the settings in which runs differ.

    None where no command asks for one of them, where they ran on different hosts, and where nothing that a setting
    could change is known to differ.
    """
    commands = [command_of(plan) for plan in plans]
    known = [_options(command) for command in commands if command is not None]
    if len(known) < len(plans) or len({plan.placement.hosts for plan in plans}) > 1:
        return None
    shared = [option for option in known[0] if option[0] in _OF_ALL or all(option in other for other in known)]
    own = [[option for option in each if option not in shared and option[0] not in _OF_ALL] for each in known]
    sides = [
        [*settings, *(word for option in options if option[0].startswith("-") for word in option), *library]
        for settings, options, library in zip(_settings(plans), own, _libraries(plans), strict=True)
    ]
    if len(set(map(tuple, sides))) < len(sides):
        return None
    # The names of collectives are those of the first run.
    first = [word for option in known[0] if option in shared or not option[0].startswith("-") for word in option]
    sets = [word for side in sides for word in ("--set", shlex.join(side) or "default")]
    return shlex.join(["busbw", "compare", *first, *sets])


def _options(command: str) -> list[tuple[str, ...]]:
    """Return each option of a `busbw run` command with its value, and each collective by itself."""
    words = iter(shlex.split(command)[2:])
    found = [(word, next(words)) if word.startswith("-") and word not in _FLAGS else (word,) for word in words]
    return [option for option in found if option[0] not in _LEFT_OUT]


def _settings(plans: Sequence[Plan]) -> list[list[str]]:
    """Return the variables of each run's environment that not all of them had alike."""
    environments = [dict(plan.surroundings.environment) if plan.surroundings is not None else {} for plan in plans]
    names = sorted(
        name
        for name in set().union(*environments)
        if not name.startswith(OF_ONE_JOB) and len({each.get(name) for each in environments}) > 1
    )
    return [
        [f"{name}={each[name]}" for name in names if name in each and WITHHELD not in each[name]]
        for each in environments
    ]


def _libraries(plans: Sequence[Plan]) -> list[list[str]]:
    """Return which NCCL each run loaded, where they differ and the command does not name it already."""
    hosts = [plan.gpus for plan in plans]
    found = [host.nccl for host in hosts if host is not None]
    if len(found) < len(plans) or len({each.path for each in found}) == 1:
        return [[] for _plan in plans]
    return [[] if each.origin == "named" else ["--nccl", each.path] for each in found]
