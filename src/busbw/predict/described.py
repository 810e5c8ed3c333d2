"""Machines that are no platform: in words, as `gpu=H200, gpus=8, nics=16x200G, fabric=RoCE`, or a captured host."""

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

_KEYS = ("gpu", "gpus", "nics", "fabric")
_HINT = "--machine 'gpu=H200, gpus=8, nics=16x200G, fabric=RoCE'"
_COUNT = re.compile(r"[1-9][0-9]?", re.ASCII)
_NICS = re.compile(r"([1-9][0-9]?)x([1-9][0-9]{0,3})G", re.ASCII)
_LONGEST = 200


def described_machine(text: str, platforms: Sequence[Platform]) -> tuple[Platform, MachineClass]:
    """Return nodes as they are described, and the platform whose GPUs and links between them they have.

    Raises InputError for words that are not known, and for what no platform's GPUs are.
    """
    words = _words(text)
    networks = sorted({each.fabric.kind for each in platforms if each.fabric.kind is not None})
    fabric = next((each for each in networks if each.lower() == words["fabric"].lower()), None)
    if fabric is None:
        raise InputError(f"{words['fabric'][:40]!r} is no network", where="--machine", hint=", ".join(networks))
    if _COUNT.fullmatch(words["gpus"]) is None:
        raise InputError(f"{words['gpus'][:20]!r} is no number of GPUs", where="--machine", hint=_HINT)
    match = _NICS.fullmatch(words["nics"])
    if match is None:
        raise InputError(f"{words['nics'][:20]!r} are no NICs", where="--machine", hint=_HINT)
    gpus, ports, rate = int(words["gpus"]), int(match[1]), int(match[2])
    like = like_platform(words["gpu"], gpus, platforms)
    found = machine_of(like, gpus=gpus)
    # Of whose map nothing is known: GPUs reach each other as those of the platform do, NICs are the machine's own.
    assumed = f"GPUs and the links between them as in {like.id}; slots of NICs not known"
    rates = structs.replace(
        found.rates,
        name=text,
        ports=ports,
        nic=Rate(rate_Bps=rate * 1e9 / 8, figures=f"{rate} Gb/s", source=("as described",)),
        nic_slot=None,
        attained=(),
        assumptions=(assumed,),
    )
    return like, replace(found, name=", ".join(f"{key}={words[key]}" for key in _KEYS), rates=rates, fabric=fabric)


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


def _words(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in text[:_LONGEST].split(","):
        key, given, value = (part.strip() for part in word.partition("="))
        if not given or not value or key not in _KEYS or key in found:
            what = "said twice" if key in found else "no word for a machine"
            raise InputError(f"{word.strip()[:40]!r} is {what}", where="--machine", hint=_HINT)
        found[key] = value
    missing = [key for key in _KEYS if key not in found]
    if missing or len(text) > _LONGEST:
        lacks = f"lacks {missing[0]}" if missing else f"is longer than {_LONGEST} characters"
        raise InputError(f"the machine {lacks}", where="--machine", hint=_HINT)
    return found


def like_platform(gpu: str, gpus: int, platforms: Sequence[Platform]) -> Platform:
    """Return a platform with such GPUs and enough of them, those behind switches first.

    Raises InputError where none has.
    """
    named = [each for each in platforms if _names(each, gpu)]
    if not named:
        known = sorted({(each.gpu.model or "").split(" ")[0] for each in platforms if each.gpu.model})
        raise InputError(f"{gpu[:40]!r} is no GPU of a platform", where="--machine", hint=", ".join(known))
    enough = [each for each in named if each.gpu.count >= gpus]
    if not enough:
        most = max(each.gpu.count for each in named)
        raise InputError(f"no node has {gpus} {gpu[:40]}", where="--machine", hint=f"at most {most} of them")
    return min(enough, key=lambda each: (each.nvlink.switched is not True, each.gpu.count, each.id))


def _names(platform: Platform, gpu: str) -> bool:
    model = (platform.gpu.model or "").lower()
    return model == gpu.lower() or gpu.lower() in model.split(" ")
