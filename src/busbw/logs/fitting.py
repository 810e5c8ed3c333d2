"""Which platforms a log looks like. What fits is not claimed: other machines may look the same."""

import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from busbw.facts.platforms import all_platforms
from busbw.model.platform import Platform

_NIC = re.compile(r"\[\d+\]([^:\s]{1,80}):\d+/(\w+)", re.ASCII)
_LINKS = {"InfiniBand": "IB", "RoCE": "RoCE"}
_MOST = 6


class Look(NamedTuple):
    """What a log shows of the machine."""

    gpus: frozenset[str]
    # Names of the RDMA devices, and their kinds of link: IB, RoCE.
    nics: frozenset[str]
    links: frozenset[str]
    hosts: frozenset[str]
    ranks_per_node: int


class Fitting(NamedTuple):
    """The platforms that a log fits, and by what."""

    platforms: tuple[Platform, ...] = ()
    because: str = ""


def look_of(facts: Mapping[str, Iterable[str]], hosts: frozenset[str], ranks_per_node: int) -> Look:
    """Return what the facts of a job show."""
    devices = [match for value in facts.get("NICs", ()) for match in _NIC.finditer(value)]
    return Look(
        gpus=frozenset(facts.get("GPU", ())),
        nics=frozenset(part for match in devices for part in match[1].split("+")),
        links=frozenset(match[2] for match in devices),
        hosts=hosts,
        ranks_per_node=ranks_per_node,
    )


def fitting(look: Look) -> Fitting:
    """Return the platforms that nothing in the log speaks against and its NICs, or its GPUs and hosts, speak for."""
    if not look.nics and not look.gpus:
        return Fitting()
    found = [(platform, signs) for platform in all_platforms() if (signs := _signs(platform, look))]
    best = max((len(signs) for _platform, signs in found), default=0)
    chosen = [(platform, signs) for platform, signs in found if len(signs) == best]
    if not chosen or len(chosen) > _MOST:
        return Fitting()
    return Fitting(tuple(platform for platform, _signs in chosen), " and ".join(chosen[0][1]))


def _signs(platform: Platform, look: Look) -> tuple[str, ...]:
    """Return what speaks for a platform; empty where something speaks against it, or too little for it."""
    match = platform.match
    if platform.kind != "gpu" or platform.gpu.count < max(look.ranks_per_node, 1) or _is_other(platform, look):
        return ()
    signs = []
    if match.rdma_names and look.nics and len(look.nics) == platform.nic.ports:
        signs.append(f"{len(look.nics)} NICs with the names of that machine ({', '.join(sorted(look.nics)[:3])}...)")
    if match.hostnames and look.hosts and _all_match(look.hosts, match.hostnames):
        signs.append(f"hosts with names as {min(look.hosts)}")
    if match.gpu_names and look.gpus:
        if not signs:
            return ()
        signs.append(f"the GPU {min(look.gpus)}")
    return tuple(signs)


def _is_other(platform: Platform, look: Look) -> bool:
    match = platform.match
    link = _LINKS.get(platform.fabric.kind or "")
    return (
        bool(look.gpus and match.gpu_names and not _all_match(look.gpus, match.gpu_names))
        or bool(look.nics and match.rdma_names and not _all_match(look.nics, match.rdma_names))
        or bool(look.nics and len(look.nics) > (platform.nic.ports or len(look.nics)))
        or bool(look.links and link is not None and look.links != {link})
        or bool(look.links and platform.fabric.kind not in {None, *_LINKS})
    )


def _all_match(texts: Iterable[str], globs: tuple[str, ...]) -> bool:
    return all(any(fnmatch.fnmatchcase(text.lower(), glob.lower()) for glob in globs) for text in texts)
