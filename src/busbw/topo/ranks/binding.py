"""Reads how a user would bind ranks: options of mpirun or srun, lists of CPUs, or a rankfile."""

import re
from dataclasses import dataclass
from difflib import get_close_matches

from busbw.base.cpus import MOST_CPUS
from busbw.base.errors import InputError
from busbw.topo.ranks.binding_lists import CpuLists, RankFile, parse_lists, parse_masks, parse_rankfile

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
            raise InputError(f"{words[place - 1][:80]!r} is no option that binds ranks", hint=_HINT)
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
    raise InputError(f"{text[:80]!r} is no binding", hint=f"maybe: {near[0]}" if near else _HINT)
