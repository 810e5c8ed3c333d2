"""Changes to a job or its machine: `nic=800G`, `nvlink=2x`, `tp=8,pp=4`, read strictly and applied."""

import re
from dataclasses import dataclass, replace

from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.model.platform import Platform
from busbw.model.train.plan import CollectiveTime
from busbw.model.train.workload import Configuration
from busbw.train.predicting import Asked, least_time_s
from busbw.train.timing import Answer

_OF_PARALLELISM = ("tp", "pp", "cp", "ep", "vp", "zero")
_OF_BATCH = {"micro_batch": "micro_batch", "global_batch": "global_batch"}
_OF_MACHINE = ("nic", "nvlink")
_KEYS = (*_OF_MACHINE, *_OF_PARALLELISM, *_OF_BATCH)
_WHOLE = re.compile(r"[0-9]{1,7}", re.ASCII)
_RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(x|G|Gb/s|GB/s|T|Tb/s|TB/s)", re.ASCII)
# In bytes per second; what is in bits, as NICs are sold, is an eighth.
_UNITS = {"G": 1e9 / 8, "Gb/s": 1e9 / 8, "GB/s": 1e9, "T": 1e12 / 8, "Tb/s": 1e12 / 8, "TB/s": 1e12}
_HINT = "--what-if nic=800G, --what-if nvlink=2x, --what-if tp=8,pp=4"
_MOST_ZERO = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class JobChange:
    """What is otherwise; rates in bytes per second of one NIC port, and of one GPU's links."""

    text: str
    configuration: Configuration
    platform: Platform


def read_change(text: str, configuration: Configuration, platform: Platform) -> JobChange:
    """Return a change as `tp=8,pp=4` spells it. Raises InputError for what it may not say."""
    found = JobChange(text=text, configuration=configuration, platform=platform)
    seen: set[str] = set()
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or key not in _KEYS:
            raise InputError(f"{part.strip()[:60]!r} is no change{maybe(key, _KEYS)}", where="--what-if", hint=_HINT)
        if key in seen:
            raise InputError(f"{key} is changed twice", where=f"--what-if {text[:80]}", hint=_HINT)
        seen.add(key)
        if key in _OF_MACHINE:
            found = _machine(found, key, value)
        else:
            found = replace(found, configuration=_job(found.configuration, key, value, "--what-if"))
    return found


def changed_layout(text: str, configuration: Configuration) -> Configuration:
    """Return a configuration with a layout as `tp=2,ep=1` spells it. Raises InputError for what it may not say."""
    known, seen = (*_OF_PARALLELISM, *_OF_BATCH), set[str]()
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or key not in known or key in seen:
            words = (
                f"{key} is changed twice" if key in seen else f"{part.strip()[:60]!r} is no layout{maybe(key, known)}"
            )
            raise InputError(words, where="--layout", hint="--layout tp=2,ep=1")
        seen.add(key)
        configuration = _job(configuration, key, value, "--layout")
    return configuration


def _job(configuration: Configuration, key: str, value: str, where: str) -> Configuration:
    limit = _MOST_ZERO if key == "zero" else 2**20
    if _WHOLE.fullmatch(value) is None or int(value) > limit or (int(value) < 1 and key != "zero"):
        raise InputError(f"{value[:40]!r} is no value of {key}", where=where, hint=f"a whole number to {limit}")
    if key in _OF_BATCH:
        return structs.replace(configuration, **{_OF_BATCH[key]: int(value)})
    parallelism = structs.replace(configuration.parallelism, **{key: int(value)})
    return structs.replace(configuration, parallelism=parallelism)


def _machine(change: JobChange, key: str, value: str) -> JobChange:
    match = _RATE.fullmatch(value)
    if match is None or float(match[1]) == 0:
        raise InputError(f"{value[:40]!r} is no rate", where=f"--what-if {key}=", hint="800G (Gb/s), 100GB/s, or 2x")
    platform = change.platform
    number, unit = float(match[1]), match[2]
    if key == "nvlink":
        now_Bps = platform.nvlink.gpu_Bps
        if now_Bps is None:
            raise InputError(f"NVLink of {platform.id} is not known", where="--what-if nvlink=")
        times = number if unit == "x" else number * _UNITS[unit] / now_Bps
        pair_Bps = platform.nvlink.pair_Bps
        link = structs.replace(
            platform.nvlink, gpu_Bps=now_Bps * times, pair_Bps=pair_Bps * times if pair_Bps is not None else None
        )
        return replace(change, platform=structs.replace(platform, nvlink=link))
    port_bps = platform.nic.port_bps
    if port_bps is None:
        raise InputError(f"the rate of a NIC of {platform.id} is not known", where="--what-if nic=")
    times = number if unit == "x" else number * _UNITS[unit] * 8 / port_bps
    nics = tuple(
        structs.replace(each, rate_bps=each.rate_bps * times) if each.rate_bps is not None else each
        for each in platform.nics
    )
    # A faster port needs a slot that carries it.
    pcie = structs.replace(platform.pcie, generation=None)
    return replace(
        change,
        platform=structs.replace(
            platform, nic=structs.replace(platform.nic, port_bps=port_bps * times), nics=nics, pcie=pcie
        ),
    )


SCALED = "times grow and shrink with what line rates allow: latency stays, so it is at best so much faster"


def scaled_answer(answer: Answer, before: Platform, after: Platform) -> Answer:
    """Return times on a machine whose links are otherwise: as much faster as the bound by line rates is."""

    def scaled(asked: Asked) -> CollectiveTime:
        known = answer(asked)
        old_s, new_s = (least_time_s(each, asked) for each in (before, after))
        if not old_s or not new_s:
            return known
        times = new_s / old_s
        return CollectiveTime(
            time_s=known.time_s * times if known.time_s is not None else None,
            basis=known.basis,
            least_s=known.least_s * times if known.least_s is not None else None,
            words=known.words,
        )

    return scaled
