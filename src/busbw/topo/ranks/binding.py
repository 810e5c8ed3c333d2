"""Reads how a user would bind ranks: options of mpirun or srun, lists of CPUs, or a rankfile."""

import re
from dataclasses import dataclass
from difflib import get_close_matches

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
                f"{content[:80]!r} is not a line of a rankfile", where=f"line {number}", hint="rank 0=+n0 slot=0-23"
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
            raise InputError(f"{part[:40]!r} is not a slot", where=f"line {number}", hint="slot=0-3 or slot=1:0-3")
        found.append(slot)
    return tuple(found)


MOST_CHARACTERS = 200_000
MOST_RANKS = 4096
_HINT = (
    "for instance: default, --bind-to numa --map-by ppr:8:node, mask_cpu:0xff,0xff00, taskset -c 0-23 24-47, "
    "or the lines of a rankfile"
)
OBJECTS = {
    "hwthread": "hwthread",
    "core": "core",
    "l1cache": "cache",
    "l2cache": "cache",
    "l3cache": "cache",
    "numa": "numa",
    "socket": "socket",
    "package": "socket",
    "board": "board",
    "node": "node",
    "slot": "slot",
    "none": "none",
    "dist": "dist",
    "seq": "seq",
}
_MAP_ONLY = {"node", "slot", "dist", "seq"}
_PPR = re.compile(r"ppr:(\d{1,5}):([a-z0-9]+)((?::.*)?)", re.ASCII)
_PE = re.compile(r"pe=(\d{1,5})", re.ASCII)
# Modifiers of --map-by and --bind-to that change neither where a rank is mapped nor what it is bound to here.
_HARMLESS = {"nooversubscribe", "oversubscribe", "corecpus", "overload-allowed", "if-supported", "no-overload"}
_RANKFILE = re.compile(r"\s*rank\s+\d+\s*=", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class MpirunOptions:
    """What mpirun of Open MPI is told; None: not said. `ppr`: ranks of each object of `map_by`."""

    map_by: str | None = None
    ppr: int | None = None
    cores_per_rank: int | None = None
    bind_to: str | None = None
    # Words that this reader knows and cannot follow.
    unclear: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SrunOption:
    """A kind of srun's --cpu-bind that leaves the choice to Slurm, as it was written."""

    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unspecified:
    """Nothing is said to the launcher."""


Binding = MpirunOptions | SrunOption | CpuLists | RankFile | Unspecified


def parse_binding(text: str) -> Binding:
    """Return what `text` tells a launcher. Raises InputError, with the word that is wrong, for anything else."""
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"a binding of {len(text)} characters is over the limit of {MOST_CHARACTERS}")
    stripped = text.strip()
    if not stripped:
        raise InputError("the binding is empty", hint=_HINT)
    if _RANKFILE.match(stripped):
        return parse_rankfile(stripped)
    words = stripped.split()
    if words[0] in ("mpirun", "mpiexec", "srun"):
        words = words[1:]
    if words in ([], ["default"]):
        return Unspecified()
    if words[0] == "taskset":
        return parse_lists([word for word in words[1:] if word not in ("-c", "-ac", "--cpu-list")])
    if words[0][0].isdigit():
        return parse_lists(words)
    if not words[0].startswith("-"):
        return _cpu_bind(" ".join(words))
    return _options(words)


def _options(words: list[str]) -> Binding:
    found: dict[str, str] = {}
    place = 0
    while place < len(words):
        name, equals, value = words[place].lower().partition("=")
        name = "--" + name.lstrip("-").replace("_", "-")
        place += 1
        if name == "--report-bindings" and not equals:
            continue
        if name not in ("--bind-to", "--map-by", "--rank-by", "--cpu-bind"):
            raise InputError(f"{words[place - 1][:80]!r} is not an option that binds ranks", hint=_HINT)
        if not equals:
            if place == len(words):
                raise InputError(f"{name} lacks its value", hint=_HINT)
            value = words[place].lower()
            place += 1
        if name in found:
            raise InputError(f"{name} is given twice")
        found[name] = value
    if "--cpu-bind" in found:
        if len(found) > 1:
            raise InputError("options of srun and of mpirun together", hint="give those of one launcher")
        return _cpu_bind(found["--cpu-bind"])
    if not found:
        return Unspecified()
    return _mpirun(found)


def _mpirun(found: dict[str, str]) -> MpirunOptions:
    unclear: list[str] = []
    map_by, ppr, pe, bind_to = None, None, None, None
    if "--map-by" in found:
        map_by, ppr, pe = _mapping(found["--map-by"], unclear)
    if "--bind-to" in found:
        word, *modifiers = found["--bind-to"].split(":")
        bind_to = _object(word, "--bind-to") if word else None
        unclear += [modifier for modifier in modifiers if modifier not in _HARMLESS]
        if bind_to in _MAP_ONLY:
            raise InputError(f"--bind-to {word}: ranks are not bound to that", hint="core, numa, socket or none")
    if found.get("--rank-by", "slot") != "slot":
        unclear.append(f"--rank-by {found['--rank-by']}")
    unclear += [word for word in (map_by, bind_to) if word in ("cache", "board", "dist", "seq", "hwthread")]
    return MpirunOptions(map_by=map_by, ppr=ppr, cores_per_rank=pe, bind_to=bind_to, unclear=tuple(unclear))


def _mapping(text: str, unclear: list[str]) -> tuple[str | None, int | None, int | None]:
    ppr = None
    if (match := _PPR.fullmatch(text)) is not None:
        ppr, word, rest = int(match[1]), match[2], match[3]
        if not 1 <= ppr <= MOST_RANKS:
            raise InputError(f"--map-by {text[:80]}: {ppr} ranks", hint=f"from 1 to {MOST_RANKS}")
    else:
        word, _colon, rest = text.partition(":")
    map_by = _object(word, "--map-by") if word else None
    if map_by == "none":
        raise InputError("--map-by none: ranks are mapped to something", hint="--bind-to none binds none")
    pe = None
    for modifier in filter(None, rest.split(":")):
        if (match := _PE.fullmatch(modifier)) is not None and 1 <= int(match[1]) <= MOST_CPUS:
            pe = int(match[1])
        elif modifier not in _HARMLESS:
            unclear.append(modifier)
    return map_by, ppr, pe


def _object(word: str, option: str) -> str:
    if word not in OBJECTS:
        near = get_close_matches(word[:40], OBJECTS, n=1)
        raise InputError(
            f"{option} {word[:40]!r} is not known", hint=f"maybe: {near[0]}" if near else f"one of {', '.join(OBJECTS)}"
        )
    return OBJECTS[word]


_SRUN_KINDS = {
    "none", "no", "rank", "sockets", "socket", "cores", "core", "threads", "thread", "ldoms", "ldom", "rank_ldom",
    "boards",
}  # fmt: skip


def _cpu_bind(text: str) -> Binding:
    kind, _colon, rest = text.partition(":")
    # `verbose,` and `quiet,` go before the kind.
    kind = kind.removeprefix("verbose,").removeprefix("quiet,").removeprefix("v,").removeprefix("q,").strip().lower()
    rest = rest.strip().strip("\"'")
    if kind in ("mask_cpu", "map_cpu"):
        return parse_masks(kind, rest)
    if kind in ("map_ldom", "mask_ldom"):
        return SrunOption(kind=f"{kind}:{rest[:200]}")
    if kind in _SRUN_KINDS and not rest:
        return MpirunOptions(bind_to="none") if kind in ("none", "no") else SrunOption(kind=kind)
    near = get_close_matches(kind[:40], [*_SRUN_KINDS, "mask_cpu", "map_cpu", "default"], n=1)
    raise InputError(f"{text[:80]!r} is not a binding", hint=f"maybe: {near[0]}" if near else _HINT)
