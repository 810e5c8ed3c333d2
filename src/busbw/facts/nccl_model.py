"""The constants by which NCCL chooses algorithms and protocols, release by release."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from busbw.base.errors import InputError
from busbw.base.value import Integer, Value

_RELEASE = re.compile(r"(?:NCCL )?(?:version )?v?([0-9]{1,3}(?:\.[0-9]{1,3}){1,2})(?:[-+].{0,40})?", re.ASCII)
# LL, LL128, Simple.
Latencies = tuple[float, float, float]
# One node, two, three and more.
Bandwidths = tuple[float, float, float]


class ByAlgorithm(Value, frozen=True, kw_only=True):
    """Microseconds for LL, LL128 and Simple, by algorithm."""

    tree: Latencies
    ring: Latencies
    collnetdirect: Latencies
    collnetchain: Latencies
    nvls: Latencies
    nvlstree: Latencies
    pat: Latencies


class ByGeneration(Value, frozen=True, kw_only=True):
    """GB/s for one node, two, and three and more, by the generation of the GPUs."""

    volta: Bandwidths
    ampere: Bandwidths
    hopper: Bandwidths
    blackwell: Bandwidths


class ShareByGeneration(Value, frozen=True, kw_only=True):
    """A share by the generation of the GPUs."""

    volta: float
    ampere: float
    hopper: float
    blackwell: float


class NvlsChannels(Value, frozen=True, kw_only=True):
    """Channels of NVLS before Blackwell, and on it: within one node and over several; 0: by what is not asked for."""

    before: Integer
    node: Integer
    nodes: Integer


class Correction(Value, frozen=True, kw_only=True):
    """What is left of a tree's bandwidth, by the whole part of log2(bytes / 64)."""

    LL: tuple[float, ...]
    LL128: tuple[float, ...]
    Simple: tuple[float, ...]


class NcclConstants(Value, frozen=True, kw_only=True):
    """What one release counts with. Latencies in microseconds, bandwidths in GB/s."""

    # Since this release.
    since: str
    base: ByAlgorithm
    nvlink: ByAlgorithm
    pci: ByAlgorithm
    net: ByAlgorithm
    # Of all channels together; of several nodes by the kind of their CPUs.
    ll_cap: ByGeneration
    # Of one channel.
    ring_ll128: ByGeneration
    tree_ll128: ByGeneration
    tree: ByGeneration
    nvlstree: ByGeneration
    nvls_efficiency: ShareByGeneration
    # plain: as any other algorithm; least: the slower of within and between nodes; pipelined: with the efficiency, and
    # both halves of all_reduce.
    nvls_form: Literal["plain", "least", "pipelined"]
    # network: the base, and the network alone; hops: one within the node, and those of the network.
    nvls_latency: Literal["network", "hops"]
    # Of all_gather and reduce_scatter in the form `least`: not at all, as all_reduce and within one node only, or
    # without a rank's own part.
    nvls_gather: Literal["none", "whole", "part"]
    # Whether the two are multiplied by nvls_ratio.
    nvls_gather_ratio: bool
    # From bus bandwidth to algorithm bandwidth; 0: as a ring.
    nvls_ratio: float
    # That of NVLSTree, times N / (2 (N - 1)); 0: as NVLS.
    nvlstree_ratio: float
    collnet_gather: Literal["none", "weighted", "least"]
    # What each further rank of a node adds to CollNet's direct form.
    collnet_rank_us: float
    # Most ranks of a node for CollNet's chain, and its direct form; 0: any number.
    collnet_chain_ranks: Integer
    collnet_direct_ranks: Integer
    # Most ranks of a node for NVLS where it is not all_reduce; 0: any number.
    nvls_gather_ranks: Integer
    # Whether NVLS over several nodes has at most the channels of a ring.
    nvls_within_channels: bool
    # 0: the release has no PAT.
    pat_factor: float
    # What LL leaves of a ring: where all reduce, or nodes are several; and else.
    ring_ll_share: tuple[float, float]
    # What LL128 leaves of a ring that has less than two ranks of each node.
    ring_ll128_lone: float
    # How often all_reduce's ring crosses the network: twice the nodes, or twice the gaps between them.
    ring_crossings: Literal["nodes", "edges"]
    # Whether the network takes as long as for a tree where nodes have one rank.
    lone_net_as_tree: bool
    # What a tree through one GPU of each node leaves.
    plain_tree: float
    correction: Correction
    # Whether calls of less than 64 bytes are corrected as those of 64.
    corrects_below_64: bool
    # Whether NVLSTree of Blackwell on x86 is corrected as a tree is.
    corrects_nvlstree: bool
    # Compute capabilities with LL128; empty: 7.0 and later.
    ll128_only_sm: tuple[Integer, ...]
    # The worst path within a node that LL128 takes; between nodes, before Hopper and from it on.
    ll128_intra: str
    ll128_inter: str
    ll128_inter_hopper: str
    # Whether GPUs of two kinds, Hopper and later, may use it.
    ll128_mixed: bool
    # Types of paths, the best first.
    path_order: tuple[str, ...]
    most_channels: Integer
    # Up to so many channels are doubled once more over several nodes of Hopper GPUs; whether also of later ones.
    doubled_most: Integer
    doubled_newer: bool
    # none: rings keep their channels; beside: NVLS may add some that rings do not use; all: rings get as many.
    nvls_raises: Literal["none", "beside", "all"]
    # The graph that tells whether SHARP takes half as many channels more.
    collnet_raises: Literal["direct", "chain"]
    nvls_channels: NvlsChannels
    # Whether a tree has all threads at every size; else Simple has four warps more.
    tree_threads_whole: bool
    # So many merged calls of anything but a ring are started together; 0: merging follows other rules.
    merged_calls: Integer
    # One of eight slots of a connection with Simple, on Arm; elsewhere 512 KiB.
    arm_slot_bytes: Integer
    # Whether chunks of a tree with Simple shrink with the size.
    tree_chunk_shrinks: bool
    # slot: chunks shrink as what a slot holds; data: without its flags.
    chunk_shrinks: Literal["slot", "data"]
    # Whether a chunk is a whole number of grains: 16 bytes of LL, 1,920 of LL128, 512 of Simple.
    chunk_grains: bool
    # NVLS over several nodes that all_reduce uses with less than this has chunks of at most 32 KiB.
    slow_nvls_GBps: float
    # The largest chunk of NVLSTree, and from four nodes on.
    nvlstree_chunk_bytes: Integer
    nvlstree_chunk_bytes_four_nodes: Integer
    # Whether Blackwell over several nodes takes it from the NIC, which is not asked for.
    nvlstree_chunk_by_nic: bool


class NcclModelFacts(Value, frozen=True, kw_only=True):
    """All that is known of the model: releases, states, and where calls took as long as it says."""

    source: str
    releases: tuple[str, ...]
    confirmed_sm: tuple[Integer, ...]
    confirmed: tuple[str, ...]
    state: tuple[dict[str, Any], ...]


@cache
def nccl_model_facts() -> NcclModelFacts:
    """Return the file as it stands."""
    raw = files("busbw").joinpath("data", "nccl_model.toml").read_bytes()
    return msgspec.convert(tomllib.loads(raw.decode()), NcclModelFacts)


def newest_release() -> str:
    """Return the newest release whose model is known."""
    return nccl_model_facts().releases[-1]


@cache
def release_of(text: str) -> str:
    """Return the release that a text is: `2.26.5`, `v2.26.5-1` or `2.26.5+cuda12.4`, as tags and logs have it.

    Raises InputError for what is none.
    """
    match = _RELEASE.fullmatch(text)
    if match is None:
        raise InputError(f"{text[:20]!r} is no release of NCCL", hint=f"--nccl {newest_release()}")
    return match[1]


def nccl_constants(release: str) -> NcclConstants:
    """Return what a release counts with. Raises InputError for one that was not read."""
    known = nccl_model_facts().releases
    if release not in known:
        raise InputError(
            f"the cost model of NCCL {release[:20]} is not known: it was read in {known[0]} to {known[-1]}",
            hint=f"the nearest that were read: --nccl {' or '.join(_nearest(release, known))}",
        )
    merged: dict[str, Any] = {}
    for state in nccl_model_facts().state:
        if numbers(state["since"]) <= numbers(release):
            merged = _laid_over(merged, state)
    return msgspec.convert(merged, NcclConstants)


def numbers(release: str) -> tuple[int, ...]:
    """Return a release as numbers that compare; a part that is none counts as 0."""
    parts = release[:40].split(".")[:3]
    return tuple(int(part) if part.isascii() and part.isdigit() and len(part) < 6 else 0 for part in parts)


def _nearest(release: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the last that is no newer than the one asked for, and the first that is newer; one, beyond the ends."""
    older = [each for each in known if numbers(each) <= numbers(release)]
    newer = [each for each in known if numbers(each) > numbers(release)]
    return *older[-1:], *newer[:1]


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    found = dict(below)
    for name, value in above.items():
        own = found.get(name)
        found[name] = _laid_over(own, value) if isinstance(own, dict) and isinstance(value, dict) else value
    return found
