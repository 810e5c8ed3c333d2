"""NCCL_ALGO and NCCL_PROTO: which algorithms and protocols they leave to each function, by version.

src/graph/tuning.cc: one list for all functions and words it does not know passed over, until 2.24; since then
`list;function:list`, and a word it does not know ends the start. Which function has which algorithm: the same file.
"""

from collections.abc import Mapping

from busbw.env.values_c import Given
from busbw.env.versions import reaches
from busbw.model.envvar import ListRead, Understood

_FUNCTIONS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce")
_PROTOCOLS = ("LL", "LL128", "Simple")
# In NCCL's spelling, with the version each came with.
_ALGORITHMS = {
    "Tree": (2, 5),
    "Ring": (2, 5),
    "CollNetDirect": (2, 14),
    "CollNetChain": (2, 14),
    "NVLS": (2, 17),
    "NVLSTree": (2, 18),
    "PAT": (2, 23),
}
_FOR = {
    "AllReduce": ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree"),
    "AllGather": ("Ring", "CollNetDirect", "NVLS", "PAT"),
    "ReduceScatter": ("Ring", "CollNetDirect", "NVLS", "PAT"),
    "Broadcast": ("Ring",),
    "Reduce": ("Ring",),
}
_STRICT = (2, 24)


def read_algorithms(text: str, version: tuple[int, ...] | None = None) -> ListRead:
    """Return which algorithms NCCL_ALGO leaves to each function; one that the function does not have is left out."""
    known = tuple(name for name, since in _ALGORITHMS.items() if reaches(version, since))
    return _read(text, known, _FOR, version)


def read_protocols(text: str, version: tuple[int, ...] | None = None) -> ListRead:
    """Return which protocols NCCL_PROTO leaves to each function."""
    return _read(text, _PROTOCOLS, dict.fromkeys(_FUNCTIONS, _PROTOCOLS), version)


def without_choice(read: ListRead) -> tuple[str, ...]:
    """Return the functions that a list leaves nothing to."""
    return tuple(function for function, left in read.enabled.items() if not left)


def understood_list(given: Given) -> Understood:
    """Return what NCCL makes of NCCL_ALGO or NCCL_PROTO, in words."""
    reader = read_algorithms if given.var.name == "NCCL_ALGO" else read_protocols
    read = reader(given.text, given.version)
    if read.kind == "fails":
        return Understood(value=None, problem=read.problem, kind="fails", instead=_spaceless(given.text, read))
    return Understood(value=_in_words(read.enabled), problem=read.problem, kind=read.kind)


def _spaceless(text: str, read: ListRead) -> str | None:
    """Return the list without its spaces, where only they are wrong."""
    bare = "".join(text.split())
    return bare if bare != text and all(word.strip() in text.split() for word in read.unknown) else None


def _in_words(enabled: Mapping[str, tuple[str, ...]]) -> str:
    same = set(enabled.values())
    if len(same) == 1:
        return ",".join(same.pop()) or "nothing"
    return "; ".join(f"{function}: {','.join(left) or 'nothing'}" for function, left in enabled.items())


def _read(
    text: str, known: tuple[str, ...], has: Mapping[str, tuple[str, ...]], version: tuple[int, ...] | None
) -> ListRead:
    if reaches(version, _STRICT):
        return _read_strictly(text, known, has)
    return _read_loosely(text, known, has)


def _selected(items: list[str], known: tuple[str, ...], *, inverted: bool) -> tuple[str, ...]:
    named = {item.lower() for item in items}
    return tuple(name for name in known if (name.lower() in named) is not inverted)


def _left(selected: tuple[str, ...], has: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in selected if name in has)


def _read_loosely(text: str, known: tuple[str, ...], has: Mapping[str, tuple[str, ...]]) -> ListRead:
    items = [item for item in text.removeprefix("^").split(",") if item]
    unknown = tuple(item for item in items if item.lower() not in {name.lower() for name in known})
    selected = _selected(items, known, inverted=text.startswith("^"))
    enabled = {function: _left(selected, all_of_it) for function, all_of_it in has.items()}
    if not unknown:
        return ListRead(enabled=enabled)
    shown = ", ".join(repr(item[:40]) for item in unknown[:5])
    lists = "; lists for single functions came with 2.24" if ";" in text or ":" in text else ""
    nothing = ", and as nothing else is named NCCL chooses as if it were unset" if not any(enabled.values()) else ""
    problem = f"NCCL before 2.24 passes over {shown}{lists}{nothing}"
    return ListRead(enabled=enabled, unknown=unknown, problem=problem, kind="ignored")


def _read_strictly(text: str, known: tuple[str, ...], has: Mapping[str, tuple[str, ...]]) -> ListRead:
    enabled = {function: _left(known, all_of_it) for function, all_of_it in has.items()}
    functions = {function.lower(): function for function in _FUNCTIONS}
    names = {name.lower() for name in known}
    parts = [part for part in text.split(";") if part]
    for number, part in enumerate(parts):
        fields = [field for field in part.split(":") if field]
        if len(fields) < 2 and (number > 0 or text.startswith(";")):
            return _failed(
                enabled, part, f"every list but the first needs a function before it: {part[:40]!r} has none"
            )
        if not fields:
            return _failed(enabled, part, "it names nothing at all")
        function, listed = (fields[0], fields[1]) if len(fields) > 1 else (None, fields[0])
        if function is not None and function.lower() not in functions:
            known_functions = ", ".join(_FUNCTIONS)
            return _failed(enabled, function, f"NCCL knows no function {function[:40]!r}; it knows {known_functions}")
        items = [item for item in listed.removeprefix("^").split(",") if item]
        for item in items:
            if item.lower() not in names:
                return _failed(enabled, item, f"NCCL does not know {item[:40]!r}; it knows {', '.join(known)}")
        selected = _selected(items, known, inverted=listed.startswith("^"))
        for each in _FUNCTIONS if function is None else (functions[function.lower()],):
            enabled[each] = _left(selected, has[each])
    return ListRead(enabled=enabled)


def _failed(enabled: dict[str, tuple[str, ...]], word: str, why: str) -> ListRead:
    problem = f"{why}: since 2.24 communicators cannot be made"
    return ListRead(enabled=enabled, unknown=(word,), problem=problem, kind="fails")
