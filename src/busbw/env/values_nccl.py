"""What NCCL makes of a text: numbers through strtoll, a few typed parameters since 2.30, words and lists of their own.

Read in src/misc/param.cc, src/include/param and where each variable is used, tags 2.11 to 2.30.7.
"""

from collections.abc import Callable, Mapping

from busbw.env.hca import read_devices
from busbw.env.values_c import OFF_WORDS, ON_WORDS, Given, judged_number, leading_integer, without_number
from busbw.env.versions import reaches
from busbw.env.words_nccl import WORDS, known_words
from busbw.facts.envvars import word_list
from busbw.model.envvar import ListRead, ValueReading

_FUNCTIONS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce")
_PROTOCOLS = ("LL", "LL128", "Simple")
_STRICT = (2, 24)


def read_algorithms(text: str, version: tuple[int, ...] | None = None) -> ListRead:
    """Return which algorithms NCCL_ALGO leaves to each function; one that the function does not have is left out."""
    words = word_list("NCCL_ALGO").words
    functions = {name: tuple(word.name for word in words if name in word.functions) for name in _FUNCTIONS}
    known = tuple(known_words("NCCL_ALGO", version))
    return _read(text, known, functions, version)


def read_protocols(text: str, version: tuple[int, ...] | None = None) -> ListRead:
    """Return which protocols NCCL_PROTO leaves to each function."""
    return _read(text, _PROTOCOLS, dict.fromkeys(_FUNCTIONS, _PROTOCOLS), version)


def read_list(given: Given) -> ValueReading:
    """Return what NCCL makes of NCCL_ALGO or NCCL_PROTO, in words."""
    reader = read_algorithms if given.var.name == "NCCL_ALGO" else read_protocols
    read = reader(given.text, given.version)
    if read.kind == "fails":
        return ValueReading(value=None, problem=read.problem, kind="fails", instead=_spaceless(given.text, read))
    return ValueReading(value=_in_words(read.enabled), problem=read.problem, kind=read.kind)


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


_Reader = Callable[[Given], ValueReading]
# Typed parameters that are switches: param.h of 2.30.
_TYPED_SWITCHES = {"NCCL_SET_THREAD_NAME", "NCCL_PARAM_DUMP_ALL", "NCCL_WARN_ENABLE_DEBUG_INFO"}
_CHANNELS = {
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NRINGS",
    "NCCL_MAX_NRINGS",
    "NCCL_MIN_CTAS",
    "NCCL_MAX_CTAS",
    "NCCL_MIN_P2P_NCHANNELS",
    "NCCL_MAX_P2P_NCHANNELS",
}
_WARP = 32
_THREADS = {"NCCL_NTHREADS": (64, 512), "NCCL_LL128_NTHREADS": (160, 640)}
_POWERS_OF_TWO = {"NCCL_WORK_FIFO_BYTES", "NCCL_WORK_FIFO_DEPTH"}
_MOST_SOCKET_THREADS = 16
_ENDLESS_TIMEOUT = 32


def read_nccl(given: Given) -> ValueReading:
    """Return what NCCL makes of a text."""
    if given.var.name in _TYPED_SWITCHES and given.from_version(2, 30):
        return _switch(given)
    reader = _READERS.get(given.var.name) or WORDS.get(given.var.name) or _BY_KIND.get(given.var.kind)
    return reader(given) if reader is not None else ValueReading(value=given.text)


def _number(given: Given) -> ValueReading:
    number = leading_integer(given.text)
    if number is None and not given.text:
        return ValueReading(value=given.default)
    if number is None:
        if given.from_version(2, 32):
            return without_number(given.var, given.text, taken=given.default, kind="ignored")
        return without_number(given.var, given.text, taken="0")
    value_read = judged_number(given.var, given.text, number)
    if number.value is None or value_read.kind == "other value":
        return value_read
    return _used(given, number.value) or value_read


def _switch(given: Given) -> ValueReading:
    word = given.text.upper()
    if word in ("1", "T", "TRUE"):
        return ValueReading(value="1")
    if word in ("0", "F", "FALSE"):
        return ValueReading(value="0")
    meant = {**dict.fromkeys(ON_WORDS, "1"), **dict.fromkeys(OFF_WORDS, "0")}.get(given.text.strip().lower())
    problem = f"since 2.30 it takes 1, T, TRUE, 0, F and FALSE only: {given.shown} is ignored"
    return ValueReading(value=given.default, problem=problem, kind="ignored", instead=meant)


def _used(given: Given, value: int) -> ValueReading | None:
    """Return what NCCL takes instead of a number that it read right; None: that number."""
    name = given.var.name
    if name in _CHANNELS:
        most = 64 if given.from_version(2, 25) else 32
        return _clipped(value, most, f"NCCL has {most} channels at most") if value > most else None
    if name in _THREADS and value > 0:
        return _threads(value, *_THREADS[name])
    if name == "NCCL_SOCKET_NTHREADS" and value > _MOST_SOCKET_THREADS:
        return _clipped(value, _MOST_SOCKET_THREADS, "a connection has 16 threads at most")
    if name in _POWERS_OF_TWO and (value < 1 or value & (value - 1)):
        return ValueReading(
            value=given.default, problem=f"{value} is not a power of two: it is ignored", kind="ignored"
        )
    return _meaning(name, value)


def _meaning(name: str, value: int) -> ValueReading | None:
    """Return what NCCL takes a number for that it takes as it is; None: for that number."""
    if name == "NCCL_IB_TIMEOUT" and (value == 0 or value >= _ENDLESS_TIMEOUT):
        problem = f"{value} is not a limit at all: a lost packet is waited for without end"
        return ValueReading(value="no limit", problem=problem, kind="out of range")
    if name == "NCCL_COLLNET_ENABLE" and value not in (0, 1):
        return ValueReading(value="0", problem=f"{value} is neither 0 nor 1: it is taken for 0", kind="other value")
    return None


def _clipped(value: int, limit: int, why: str) -> ValueReading:
    return ValueReading(value=str(limit), problem=f"{why}: {value} becomes {limit}", kind="clipped", instead=str(limit))


def _threads(value: int, least: int, most: int) -> ValueReading | None:
    if value % _WARP:
        problem = f"{value} is not a multiple of 32: NCCL takes the maximum, {most}"
        return ValueReading(value=str(most), problem=problem, kind="other value")
    if value > most:
        return _clipped(value, most, f"it is {most} at most")
    return _clipped(value, least, f"it is {least} at least") if value < least else None


def _p2p_disable(given: Given) -> ValueReading:
    number = leading_integer(given.text)
    if number is not None and number.value == 1:
        return ValueReading(value="1")
    if not given.text or (number is not None and number.value == 0 and not number.rest.strip()):
        return ValueReading(value="0")
    instead = "1" if given.text.strip().lower() in ON_WORDS else None
    if given.text.strip().lower() in OFF_WORDS:
        return ValueReading(value="0", problem=f"only 1 counts: {given.shown} is as if unset", kind="odd", instead="0")
    problem = f"only 1 turns peer-to-peer off: {given.shown} has no effect"
    return ValueReading(value="0", problem=problem, kind="ignored", instead=instead)


def _float(given: Given) -> ValueReading:
    if not given.from_version(2, 31):
        return _number(given)
    try:
        float(given.text)
    except ValueError:
        problem = f"{given.shown} is not a number: the default stays"
        return ValueReading(value=given.default, problem=problem, kind="ignored")
    return ValueReading(value=given.text)


def _path(given: Given) -> ValueReading:
    if given.text.startswith("~"):
        problem = "NCCL does not expand ~: it looks for a folder of that name"
        return ValueReading(value=given.text, problem=problem, kind="other value")
    return ValueReading(value=given.text)


def _thresholds(given: Given) -> ValueReading:
    if "," in given.text:
        problem = "the six numbers are separated by spaces: at a comma NCCL stops reading"
        return ValueReading(value=given.text.split(",", 1)[0], problem=problem, kind="other value")
    return ValueReading(value=given.text)


_BY_KIND: dict[str, _Reader] = {
    "int": _number,
    "bool": _number,
    "size": _number,
    "float": _float,
    "path": _path,
}
_READERS: dict[str, _Reader] = {
    "NCCL_P2P_DISABLE": _p2p_disable,
    "NCCL_THREAD_THRESHOLDS": _thresholds,
    "NCCL_ALGO": read_list,
    "NCCL_PROTO": read_list,
    "NCCL_IB_HCA": read_devices,
    "NCCL_SOCKET_IFNAME": read_devices,
    "NCCL_OOB_NET_IFNAME": read_devices,
}
