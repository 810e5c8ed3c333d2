"""Reads bindings that name CPUs themselves: Slurm's masks and maps, kernel lists, rankfiles of Open MPI."""

import re
from dataclasses import dataclass

from busbw.base.cpus import MOST_CPUS, parse_cpu_list
from busbw.base.errors import InputError

_MOST_RANKS = 4096
_MASK = re.compile(r"(?:0x)?([0-9a-f]{1,16384})(?:\*(\d{1,4}))?", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"(0x[0-9a-f]{1,4}|\d{1,5})(?:\*(\d{1,4}))?", re.IGNORECASE | re.ASCII)
_LINE = re.compile(r"rank\s+(\d{1,6})\s*=\s*(\S+)\s+slots?\s*=\s*(\S+)", re.ASCII)
_SOCKET_CORES = re.compile(r"s?(\d{1,4}):([0-9,*-]+)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class CpuLists:
    """CPUs of one rank after the other; more ranks than lists begin again at the first."""

    lists: tuple[tuple[int, ...], ...]
    # "srun" or "taskset".
    launcher: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """One slot of a rankfile: logical cores, of a socket where one is named; empty cores: all of the socket."""

    socket: int | None
    cores: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankFile:
    """The slots of the ranks of the first host, by rank, ascending."""

    ranks: tuple[tuple[int, tuple[Slot, ...]], ...]
    hosts: int


def parse_masks(kind: str, text: str) -> CpuLists:
    """Return what `mask_cpu:` or `map_cpu:` lists: masks in hexadecimal, or one CPU each, `*N` for N ranks."""
    lists: list[tuple[int, ...]] = []
    for place, part in enumerate(text.split(",")):
        pattern = _MASK if kind == "mask_cpu" else _NUMBER
        match = pattern.fullmatch(part.strip())
        if match is None:
            raise _bad(f"{kind}: {part[:40]!r} is not a {'mask' if kind == 'mask_cpu' else 'CPU'}", place)
        bits = int(match[1], 16) if kind == "mask_cpu" else 1 << _cpu(match[1])
        cpus = tuple(cpu for cpu, digit in enumerate(reversed(f"{bits:b}")) if digit == "1")
        if not cpus or cpus[-1] >= MOST_CPUS:
            raise _bad(f"{kind}: {part[:40]!r} names {'no CPU' if not cpus else 'CPUs beyond any machine'}", place)
        lists += [cpus] * _times(match[2], len(lists), place)
    return CpuLists(lists=tuple(lists), launcher="srun")


def _cpu(text: str) -> int:
    return int(text, 16) if text.lower().startswith("0x") else int(text)


def _times(text: str | None, had: int, place: int) -> int:
    times = int(text) if text is not None else 1
    if not 1 <= times <= _MOST_RANKS - had:
        raise _bad(f"a list for {had + times} ranks", place)
    return times


def parse_lists(words: list[str]) -> CpuLists:
    """Return kernel lists such as `0-23 24-47`, one a rank; one alone is for all. `;` separates them too."""
    lists: list[tuple[int, ...]] = []
    for place, part in enumerate(part for word in words for part in word.split(";") if part):
        cpus = parse_cpu_list(part)
        if not cpus:
            raise _bad(f"{part[:40]!r} is not a list of CPUs", place)
        lists.append(cpus)
        if len(lists) > _MOST_RANKS:
            raise _bad(f"lists for more than {_MOST_RANKS} ranks", place)
    if not lists:
        raise InputError("taskset without a list of CPUs", hint="taskset -c 0-23 24-47")
    return CpuLists(lists=tuple(lists), launcher="taskset")


def _bad(cause: str, place: int) -> InputError:
    return InputError(cause, where=f"part {place + 1} of the binding", hint="as in mask_cpu:0xff,0xff00 or 0-7,16-23")


def parse_rankfile(text: str) -> RankFile:
    """Return the slots of a rankfile's first host: `rank 0=host slot=0-3`, `slot=1:0-3`, several joined by `;`.

    Lines that are empty or begin with `#` do not count. Raises InputError with the line that is wrong.
    """
    by_host: dict[str, dict[int, tuple[Slot, ...]]] = {}
    seen: set[int] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        match = _LINE.fullmatch(content)
        if match is None:
            raise InputError(
                f"{content[:80]!r} is no line of a rankfile", where=f"line {number}", hint="rank 0=+n0 slot=0-23"
            )
        rank = int(match[1])
        if rank in seen:
            raise InputError(f"rank {rank} stands twice", where=f"line {number}")
        seen.add(rank)
        by_host.setdefault(match[2], {})[rank] = _slots(match[3], number)
    if not by_host:
        raise InputError("the rankfile names no rank", hint="rank 0=+n0 slot=0-23")
    first = min(by_host.values(), key=min)
    return RankFile(ranks=tuple(sorted(first.items())), hosts=len(by_host))


def _slots(text: str, number: int) -> tuple[Slot, ...]:
    found = []
    for part in text.split(";"):
        match = _SOCKET_CORES.fullmatch(part)
        if match is not None:
            cores = () if match[2] == "*" else parse_cpu_list(match[2])
            slot = Slot(socket=int(match[1]), cores=cores) if cores is not None else None
        else:
            cores = parse_cpu_list(part)
            slot = Slot(socket=None, cores=cores) if cores else None
        if slot is None:
            raise InputError(f"{part[:40]!r} is no slot", where=f"line {number}", hint="slot=0-3 or slot=1:0-3")
        found.append(slot)
    return tuple(found)
