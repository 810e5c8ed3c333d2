"""The words that NCCL takes: path types, log levels, policies. Some by exact spelling, some whatever their case."""

import re
from collections.abc import Callable, Sequence

from busbw.env.values_c import Given
from busbw.env.versions import parse_version, reaches
from busbw.facts.envvars import meant_words, word_list
from busbw.model.envvar import ValueReading

_Reader = Callable[[Given], ValueReading]


def known_words(name: str, version: tuple[int, ...] | None) -> list[str]:
    """Return the words that a version takes for a variable; None: the newest that is known."""
    return [
        word.name for word in word_list(name).words if word.since is None or reaches(version, parse_version(word.since))
    ]


def _path_type(given: Given) -> ValueReading:
    words, known = word_list(given.var.name), known_words(given.var.name, given.version)
    if given.text in known:
        return ValueReading(value=given.text)
    number = re.match(r"[0-9]+", given.text, re.ASCII)
    if number is not None:
        digits = number[0].lstrip("0") or "0"
        return ValueReading(value=words.numbers[min(int(digits[:2]), len(words.numbers) - 1)])
    meant = given.text.strip().upper()
    if not given.text:
        return ValueReading(value=given.default)
    if meant in known:
        problem = f"NCCL takes these names in capitals only: {given.shown} is ignored, without a word"
        return ValueReading(value=given.default, problem=problem, kind="ignored", instead=meant)
    since = next((word.since for word in words.words if word.name == given.text), None)
    why = f"it came with {since}" if since is not None else f"NCCL knows {', '.join(known)}"
    problem = f"{given.shown} is ignored, without a word: {why}"
    return ValueReading(value=given.default, problem=problem, kind="ignored")


def _merge_level(given: Given) -> ValueReading:
    for level in given.var.choices:
        if given.text.startswith(level):
            return ValueReading(value=level)
    instead = given.text.strip().upper()
    return ValueReading(
        value="LOC",
        problem=f"it takes {', '.join(given.var.choices)}, in capitals: {given.shown} is LOC, which fuses nothing",
        kind="other value",
        instead=instead if instead in given.var.choices else None,
    )


def _debug(given: Given) -> ValueReading:
    word = (given.text.strip() if given.from_version(2, 30) else given.text).upper()
    known = known_words(given.var.name, given.version)
    if word in known:
        return ValueReading(value=word)
    if not word:
        return ValueReading(value="none")
    meant = word.strip()
    if meant == "ATTN":
        problem = "ATTN came with 2.32: before, it turns all messages off"
        return ValueReading(value="none", problem=problem, kind="ignored", instead="WARN")
    instead = meant if meant in known else meant_words(given.var.name).get(meant)
    problem = f"NCCL knows {', '.join(known)}: {given.shown} turns all messages off, and nothing says so"
    return ValueReading(value="none", problem=problem, kind="ignored", instead=instead)


def _flags(given: Given) -> ValueReading:
    text = given.text
    known = known_words(given.var.name, given.version)
    listed = [item for item in text.removeprefix("^").split(",") if item.strip()]
    typed = given.from_version(2, 30)
    unknown = [item for item in listed if (item.strip() if typed else item).upper() not in known]
    if not unknown:
        return ValueReading(value=text)
    shown = ", ".join(repr(item[:40]) for item in unknown[:5])
    if typed and given.var.name != "NCCL_DEBUG_LEVELS":
        problem = f"since 2.30 one word that NCCL does not know spoils the list: {shown}; the default stays"
        return ValueReading(value=given.default, problem=problem, kind="ignored")
    kept = ",".join(item for item in listed if item not in unknown)
    mark = "^" if text.startswith("^") else ""
    return ValueReading(value=mark + kept, problem=f"NCCL does not know {shown}, and says nothing", kind="other value")


def _exact(given: Given) -> ValueReading:
    if given.text in given.var.choices or not given.text:
        return ValueReading(value=given.text or given.default)
    instead = given.text.strip().upper()
    return ValueReading(
        value=given.default,
        problem=f"it takes {' or '.join(given.var.choices)}, in capitals: {given.shown} is ignored",
        kind="ignored",
        instead=instead if instead in given.var.choices else None,
    )


def _one_of(given: Given, choices: Sequence[str], *, otherwise: str) -> ValueReading:
    word = given.text.upper()
    if word in choices:
        return ValueReading(value=word)
    if not word:
        return ValueReading(value=otherwise)
    problem = f"it takes {', '.join(choices)}: {given.shown} is taken for {otherwise}"
    meant = word.strip() if word.strip() in choices else None
    return ValueReading(value=otherwise, problem=problem, kind="ignored", instead=meant)


def _choice(given: Given) -> ValueReading:
    return _one_of(given, given.var.choices, otherwise=given.var.choices[0])


def _netdevs_policy(given: Given) -> ValueReading:
    if re.match(r"max:\s*[+]?0*[1-9]", given.text, re.ASCII | re.IGNORECASE):
        return ValueReading(value=given.text.upper())
    return _one_of(given, ("AUTO", "ALL", "MAX:N"), otherwise="AUTO")


def _cta_policy(given: Given) -> ValueReading:
    names = given.var.choices
    if given.text[:1] in ("0", "1", "2"):
        return ValueReading(value=names[int(given.text[0])])
    if not given.from_version(2, 29):
        number = str(names.index(given.text.upper())) if given.text.upper() in names else None
        problem = f"before 2.29 it takes the numbers 0, 1 and 2: {given.shown} is taken for DEFAULT"
        return ValueReading(value="DEFAULT", problem=problem, kind="other value", instead=number)
    words = [word.upper() for word in given.text.split("|") if word]
    unknown = [word for word in words if word not in names]
    if unknown or not words:
        kept = "|".join(word for word in words if word in names) or given.default
        problem = f"it takes {', '.join(names)}, joined by `|`, or 0, 1, 2: {given.shown} is taken for {kept}"
        return ValueReading(value=kept, problem=problem, kind="ignored")
    if "EFFICIENCY" in words and "ZERO" in words:
        return ValueReading(value="ZERO", problem="EFFICIENCY is dropped beside ZERO, with a warning", kind="ignored")
    return ValueReading(value="|".join(words))


def _network(given: Given) -> ValueReading:
    if not given.text:
        problem = "no network has an empty name: NCCL fails to start; unset it to let NCCL choose"
        return ValueReading(value="", problem=problem, kind="fails")
    meant = meant_words(given.var.name).get(given.text.strip().lower())
    if meant is None:
        return ValueReading(value=given.text)
    problem = f"no network reports the name {given.shown}: NCCL fails to start; {meant!r} is one"
    return ValueReading(value=given.text, problem=problem, kind="fails", instead=meant)


def _plugin(given: Given) -> ValueReading:
    if given.text.lower() == "none" or not given.text:
        return ValueReading(value="none")
    if any(item != item.strip() for item in given.text.split(",")):
        problem = "a space is part of the file's name: no such plug-in is found"
        return ValueReading(
            value=given.text, problem=problem, kind="ignored", instead=",".join(map(str.strip, given.text.split(",")))
        )
    return ValueReading(value=given.text)


def _address_range(given: Given) -> ValueReading:
    if given.text and "/" not in given.text:
        problem = "without a prefix length, such as /16, NCCL ignores it"
        return ValueReading(value="unset", problem=problem, kind="ignored")
    return ValueReading(value=given.text or "unset")


def _magic(given: Given) -> ValueReading:
    if not given.text or re.fullmatch(r"\s*[+-]?(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})", given.text, re.ASCII):
        return ValueReading(value=given.text or given.default)
    problem = f"{given.shown} is not a number: the built-in one stays"
    return ValueReading(value=given.default, problem=problem, kind="ignored")


def _symmetric_kernel(given: Given) -> ValueReading:
    if not given.from_version(2, 31) and ("," in given.text or (given.text.startswith("^") and given.text != "^")):
        problem = "before 2.31 it takes the name of one kernel, exactly: a list leaves none"
        return ValueReading(value="none", problem=problem, kind="other value")
    return ValueReading(value=given.text)


WORDS: dict[str, _Reader] = {
    "NCCL_P2P_LEVEL": _path_type,
    "NCCL_NET_GDR_LEVEL": _path_type,
    "NCCL_NET_MERGE_LEVEL": _merge_level,
    "NCCL_NET_MERGE_POLICY": _choice,
    "NCCL_DEBUG": _debug,
    "NCCL_DEBUG_SUBSYS": _flags,
    "NCCL_DEBUG_LEVELS": _flags,
    "NCCL_DEBUG_TIMESTAMP_LEVELS": _flags,
    "NCCL_SOCKET_FAMILY": _exact,
    "NCCL_IB_ADDR_FAMILY": _exact,
    "NCCL_IB_ADDR_RANGE": _address_range,
    "NCCL_CHECK_MODE": _choice,
    "NCCL_LAUNCH_MODE": _choice,
    "NCCL_NETDEVS_POLICY": _netdevs_policy,
    "NCCL_CTA_POLICY": _cta_policy,
    "NCCL_NET": _network,
    "NCCL_NET_PLUGIN": _plugin,
    "NCCL_TUNER_PLUGIN": _plugin,
    "NCCL_PROFILER_PLUGIN": _plugin,
    "NCCL_SOCKET_MAGIC": _magic,
    "NCCL_SYM_KERNEL": _symmetric_kernel,
}
