"""The command line that measures again, in turn, what several runs measured one after the other."""

import shlex
from collections.abc import Sequence

from busbw.model.plan import Plan
from busbw.model.variables import WITHHELD
from busbw.show.reproduce import command_of
from busbw.show.reproduce_settings import OF_ONE_JOB

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
