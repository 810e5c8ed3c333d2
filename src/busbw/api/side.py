"""One of the settings of a measured comparison: what is asked for, and the environment it is planned and started in."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from busbw.base.errors import InputError
from busbw.measure.plan.request import Request
from busbw.model.comparison_plan import PlannedSide
from busbw.model.plan import Job, Plan
from busbw.model.variables import is_allowed, plain

DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# What finds programs and libraries, which ranks on other hosts get with their own environment.
_SEARCH = frozenset({"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A side as it was asked for: as env(1) has it, then options of `busbw run`, which are in the request already."""

    name: str
    environment: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    request: Request

    def planned(self, letter: str) -> PlannedSide:
        """Return the side as a plan has it."""
        return PlannedSide(
            letter=letter, name=self.name, environment=self.environment, unset=self.unset, options=self.options
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """The words of one side, taken apart."""

    environment: tuple[tuple[str, str], ...]
    unset: tuple[str, ...]
    options: tuple[str, ...]


def parse_words(words: list[str], where: str) -> Words:
    """Return what a side is made of: NAME=VALUE and -u NAME first, then options of `busbw run`.

    Raises InputError for a word that is neither.
    """
    environment: dict[str, str] = {}
    unset: list[str] = []
    rest = [] if words == [DEFAULT] else list(words)
    while rest:
        if rest[0] == "-u":
            if len(rest) < 2 or not _NAME.fullmatch(rest[1]):
                raise InputError("-u needs the name of a variable to leave out", where=where, hint="-u NCCL_PROTO")
            unset.append(rest[1])
            del rest[:2]
            continue
        name, equals, value = rest[0].partition("=")
        if rest[0].startswith("-"):
            break
        if not equals or not _NAME.fullmatch(name) or "\0" in value:
            raise InputError(
                f"{rest[0]!r} is neither NAME=VALUE, nor -u NAME, nor an option of `busbw run`",
                where=where,
                hint="--set 'NCCL_PROTO=LL NCCL_ALGO=Ring', --set '--register 2', or --set default",
            )
        if plain(rest[0]) != rest[0]:
            raise InputError(
                f"{name} looks like a secret, and settings are stored with the comparison",
                where=where.partition(" ")[0],
                hint="set it in the shell: every launch has it then, and it is not stored",
            )
        environment[name] = value
        del rest[0]
    return Words(environment=tuple(environment.items()), unset=tuple(dict.fromkeys(unset)), options=tuple(rest))


@contextmanager
def in_force(side: Asked) -> Iterator[None]:
    """Have a side's variables in this process while the block runs, so that everything is planned by them."""
    before = dict(os.environ)
    try:
        for name in side.unset:
            os.environ.pop(name, None)
        os.environ.update(side.environment)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def with_settings(plan: Plan, side: Asked) -> Plan:
    """Return a plan whose commands have the side's variables, whoever starts them.

    Raises InputError for a variable that would not reach other hosts.
    """
    if plan.placement.is_spread:
        lost = [name for name, _value in side.environment if not is_allowed(name) and name not in _SEARCH]
        if lost:
            raise InputError(
                f"{', '.join(lost)}: not among the variables that reach other hosts",
                where=f"--set '{side.name}'",
                hint="those of NCCL, UCX, libfabric and MPI do: see docs/hosts.md",
            )
    steps = tuple(msgspec.structs.replace(step, job=_with(step.job, side)) for step in plan.steps)
    return msgspec.structs.replace(plan, job=_with(plan.job, side), steps=steps)


def _with(job: Job, side: Asked) -> Job:
    names = {name for name, _value in side.environment} | set(side.unset)
    kept = tuple((name, value) for name, value in job.env if name not in names)
    return msgspec.structs.replace(job, env=(*kept, *side.environment), unset=(*job.unset, *side.unset))
