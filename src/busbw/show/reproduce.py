"""The command line that makes a plan again."""

import re
import shlex
from collections.abc import Mapping, Sequence

from busbw.model.plan import Plan
from busbw.model.request import Request, words_of
from busbw.model.request import command_of as words_of_command
from busbw.model.settings import WITHHELD, Settings


def command_of(plan: Plan) -> str | None:
    """Return the `busbw run` command that asks for this plan; None where the plan does not keep what was asked for."""
    return shlex.join(words_of_command(plan.request)) if plan.request is not None else None


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


# Fields of a request that are of all sides of a comparison, and that `busbw compare` decides itself.
_OF_ALL = frozenset(
    {"smallest_bytes", "largest_bytes", "factor", "step_bytes", "stall_s", "min_samples", "max_samples"}
)
_LEFT_OUT = frozenset({"tag", "time_limit_s"})


def command_in_turn(plans: Sequence[Plan]) -> str | None:
    """Return `busbw compare ... --set ... --set ...` for the settings in which runs differ.

    None where a plan does not keep what was asked for, where runs took place on different hosts, and where nothing
    that a setting could change is known to differ.
    """
    requests = [plan.request for plan in plans if plan.request is not None]
    if len(requests) < len(plans) or len({plan.placement.hosts for plan in plans}) > 1:
        return None
    # The collectives and sizes are those of the first run.
    shared = [words for words in words_of(requests[0], _LEFT_OUT) if _is_shared(words, requests)]
    sides = [
        [*settings, *(word for words in _own(request) if words not in shared for word in words), *library]
        for settings, request, library in zip(_settings(plans), requests, _libraries(plans), strict=True)
    ]
    if len(set(map(tuple, sides))) < len(sides):
        return None
    sets = [word for side in sides for word in ("--set", shlex.join(side) or "default")]
    return shlex.join(
        ["busbw", "compare", *requests[0].collectives, *(word for words in shared for word in words), *sets]
    )


def bisect_command(request: Request, good: str, settings: Mapping[str, str]) -> str:
    """Return `busbw bisect ... --good default --bad 'A=1 B=2'`: which of these settings makes the difference."""
    shared = words_of(request, {"goal", "launches", *_LEFT_OUT})
    bad = shlex.join([f"{name}={value}" for name, value in settings.items()])
    words = [*request.collectives, *(word for each in shared for word in each), "--good", good, "--bad", bad]
    return shlex.join(["busbw", "bisect", *words])


def _own(request: Request) -> tuple[tuple[str, ...], ...]:
    return words_of(request, _OF_ALL | _LEFT_OUT)


def _is_shared(words: tuple[str, ...], requests: Sequence[Request]) -> bool:
    return words not in _own(requests[0]) or all(words in _own(request) for request in requests)


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
