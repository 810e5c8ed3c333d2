"""Machines that are no platform: in words, or a captured host.

Words are `gpu=H200, gpus=8, nics=16x200G, fabric=RoCE`, or as people write: `8x H200, 16x200G RoCE`.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from msgspec import structs

from busbw.base.errors import InputError
from busbw.facts.platforms import spellings
from busbw.limits.rates import compute_ports
from busbw.model.host import Hardware
from busbw.model.limit import NodeRates, Rate
from busbw.model.platform import Platform
from busbw.predict.machines import MachineClass, machine_of
from busbw.predict.parts import are_cards, gpus_of, is_model, model_words, named_gpu, named_network, named_nics

_KEYS = ("gpu", "gpus", "nics", "fabric")
# What else people call them.
_OTHERS = {
    "model": "gpu", "gpu_model": "gpu", "gpu_count": "gpus", "gpus_per_node": "gpus", "nic": "nics", "hcas": "nics",
    "ports": "nics", "network": "fabric", "net": "fabric", "interconnect": "fabric",
}  # fmt: skip
_HINT = "--machine 'gpu=H200, gpus=8, nics=16x200G, fabric=RoCE'"
_COUNT = re.compile(r"[1-9][0-9]?", re.ASCII)
# Beside `8 x 400 Gb/s` and others that people write: a number of ports and of Gb/s.
_NICS = re.compile(r"([1-9][0-9]?)\s*[x\u00d7*]\s*([1-9][0-9]{0,4})\s*(?:G|Gb|Gbit)?", re.ASCII | re.IGNORECASE)
# Between one key and the next.
_BETWEEN = re.compile(r"[,;\s]+(?=[A-Za-z_]+\s*=)|[,;]")
_LONGEST = 200
# Gb/s; ports of twice that are announced, and no machine has them.
_FASTEST_PORT = 1600


def described_machine(
    text: str, platforms: Sequence[Platform], named: Sequence[str] = ()
) -> tuple[Platform, MachineClass]:
    """Return nodes as they are described, and the platform whose GPUs and links between them they have.

    `named`: platforms that the words name. Raises InputError for words that are not known or say too little, and for
    what no platform's GPUs are.
    """
    if len(text) > _LONGEST:
        raise InputError(f"the machine is longer than {_LONGEST} characters", where="--machine", hint=_HINT)
    words = _keyed(text) if "=" in text else _plain(text, platforms, named)
    networks = sorted({each.fabric.kind for each in platforms if each.fabric.kind is not None})
    asked = words["fabric"]
    fabric = next((each for each in networks if each.lower() == asked.lower()), None) or named_network(asked)
    if fabric is None:
        raise InputError(f"{asked[:40]!r} is no network", where="--machine", hint=", ".join(networks))
    if _COUNT.fullmatch(words["gpus"]) is None:
        raise InputError(f"{words['gpus'][:20]!r} is no number of GPUs", where="--machine", hint=_HINT)
    gpus = int(words["gpus"])
    ports, rate = _ports(words["nics"], gpus)
    like = like_platform(words["gpu"], gpus, platforms)
    found = machine_of(like, gpus=gpus)
    name = f"gpu={words['gpu']}, gpus={gpus}, nics={ports}x{rate}G, fabric={fabric}"
    # Of whose map nothing is known: GPUs reach each other as those of the platform do, NICs are the machine's own.
    assumed = f"GPUs and the links between them as in {like.id}; slots of NICs not known"
    rates = structs.replace(
        found.rates,
        name=name,
        ports=ports,
        nic=Rate(rate_Bps=rate * 1e9 / 8, figures=f"{rate} Gb/s", source=("as described",)),
        nic_slot=None,
        attained=(),
        assumptions=(assumed,),
    )
    return like, replace(found, name=name, rates=rates, fabric=fabric)


def _ports(text: str, gpus: int) -> tuple[int, int]:
    """Return how many ports a node has, and their Gb/s. Raises InputError for what says neither."""
    match = _NICS.fullmatch(text)
    found = (int(match[1]), int(match[2])) if match is not None else named_nics(text, gpus)
    if found is None:
        raise InputError(f"{text[:20]!r} are no NICs", where="--machine", hint=_HINT)
    if found[1] > _FASTEST_PORT:
        raise InputError(f"no port has {found[1]} Gb/s", where="--machine", hint=f"at most nics=8x{_FASTEST_PORT}G")
    return found


def captured_machine(
    hardware: Hardware, rates: NodeRates, platforms: Sequence[Platform], where: str
) -> tuple[Platform, MachineClass]:
    """Return nodes such as a captured host, of whose parts those that are up count, and a platform with such GPUs.

    `rates`: of the host. Raises InputError for a host without GPUs, and for GPUs that no platform has.
    """
    names = {name for gpu in hardware.gpus if gpu.name for name in spellings(gpu.name)}
    if not names:
        raise InputError(f"{where} shows no GPUs", where=where, hint="busbw probe -o HOST.tar, where the GPUs are")
    named = [each for each in platforms if _is_among(names, each)]
    if not named:
        raise InputError(f"no platform has {min(names)[:60]}", where=where, hint="busbw limit --host says the bound")
    kinds = {port.kind for port in compute_ports(hardware)}
    fabric = kinds.pop() if len(kinds) == 1 else None
    # Of its GPUs and CPUs all is its own; what is taken from the platform is the generation, and its CPU's maker.
    like = min(named, key=lambda each: (each.fabric.kind != fabric, -each.gpu.count, each.id))
    found = replace(machine_of(like), name=hardware.hostname or where, rates=rates, fabric=fabric)
    return like, replace(found, sm=hardware.gpus[0].sm or found.sm)


def _is_among(names: set[str], platform: Platform) -> bool:
    return any(fnmatchcase(name, glob) for name in names for glob in platform.match.gpu_names)


def _keyed(text: str) -> dict[str, str]:
    """Return what each key is given. Raises InputError for others, and where one is missing or said twice."""
    found: dict[str, str] = {}
    for word in _BETWEEN.split(text):
        key, given, value = (part.strip() for part in word.partition("="))
        key = key.lower().replace("-", "_")
        key = _OTHERS.get(key, key)
        if not given or not value or key not in _KEYS or key in found:
            what = "said twice" if key in found else "no word for a machine"
            raise InputError(f"{word.strip()[:40]!r} is {what}", where="--machine", hint=_HINT)
        found[key] = value
    missing = [key for key in _KEYS if key not in found]
    if missing:
        raise InputError(f"the machine lacks {missing[0]}", where="--machine", hint=_HINT)
    return found


def _plain(text: str, platforms: Sequence[Platform], named: Sequence[str]) -> dict[str, str]:
    """Return what words without keys say of each. Raises InputError for what they leave open."""
    model = named_gpu(text, platforms)
    gpus = gpus_of(text, model) if model is not None else None
    nics, fabric = named_nics(text, gpus or 1), named_network(text)
    if model is None or gpus is None or nics is None or fabric is None:
        lacks = ((model, "which GPUs"), (gpus, "how many GPUs a node has"), (nics, "the NICs of a node"))
        what = next((words for known, words in lacks if known is None), "the network between nodes")
        hint = f"--platform {named[0]}" if named else _HINT
        raise InputError(f"{text[:40]!r} does not say {what}", where="--machine", hint=hint)
    if are_cards(text):
        raise InputError(
            f"{text[:40]!r} has {model} as cards in slots, of which no measurement gives constants", where="--machine"
        )
    return {"gpu": model, "gpus": str(gpus), "nics": f"{nics[0]}x{nics[1]}", "fabric": fabric}


def like_platform(gpu: str, gpus: int, platforms: Sequence[Platform]) -> Platform:
    """Return a platform with such GPUs and enough of them, those behind switches first.

    Raises InputError where none has.
    """
    named = [each for each in platforms if _names(each, gpu)]
    if not named and are_cards(gpu):
        raise InputError(
            f"{gpu[:40]!r} is a card in a slot, of which no measurement gives constants", where="--machine"
        )
    if not named:
        model = named_gpu(gpu, platforms)
        named = [each for each in platforms if model is not None and _names(each, model)]
    if not named:
        known = sorted({word for each in platforms for word in model_words(each) if is_model(word)})
        raise InputError(f"{gpu[:40]!r} is no GPU of a platform", where="--machine", hint=", ".join(known))
    enough = [each for each in named if each.gpu.count >= gpus]
    if not enough:
        most = max(each.gpu.count for each in named)
        raise InputError(f"no node has {gpus} {gpu[:40]}", where="--machine", hint=f"at most {most} of them")
    return min(enough, key=lambda each: (each.nvlink.switched is not True, each.gpu.count, each.id))


def _names(platform: Platform, gpu: str) -> bool:
    model = (platform.gpu.model or "").lower()
    return gpu.lower() in (model, *(word.lower() for word in model_words(platform) if is_model(word)))
