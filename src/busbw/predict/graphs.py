"""The graphs that NCCL's cost model starts from: of a graph file, of a log, of a search over a topology, or as stated.

A graph file is what NCCL_GRAPH_DUMP_FILE has NCCL write, and a log one with NCCL_DEBUG=INFO and
NCCL_DEBUG_SUBSYS=INIT,GRAPH. Both are read strictly and in bounded time and memory; nothing in them is followed.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec import structs

from busbw.base.errors import InputError
from busbw.model.predict.nccl_choice import NO_GRAPH, NcclGraphs, SearchedGraph
from busbw.topo.search.channels import FoundChannels, Searched

MOST_BYTES = 8 * 2**20
_MOST_TAGS = 100_000
_MOST_CHANNELS = 64
_MOST_GBps = 10_000.0
# The best first.
_TYPE_ORDER = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
# The ids that NCCL gives its graphs.
_RING, _TREE, _CHAIN, _NVLS, _DIRECT = range(5)
_PLAIN_TREE = 3
_PATTERNS = {_RING: (4,), _TREE: (1, 2, 3), _CHAIN: (1, 2, 3), _NVLS: (5,), _DIRECT: (6,)}
_FILE_HINT = "have NCCL write one: NCCL_GRAPH_DUMP_FILE=graph.xml"
_TAG = re.compile(r"<(/?)([A-Za-z]{1,40})((?:\s[^<>]{0,2000}?)?)(/?)>", re.ASCII)
_ATTRIBUTE = re.compile(r'\s*([a-z0-9_]{1,40})="([^"<>&]{0,200})"', re.ASCII)
_CHILDREN = {"": ("graphs",), "graphs": ("graph",), "graph": ("channel",), "channel": ("gpu", "net")}
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,6}", re.ASCII)
_PRINTED = re.compile(
    r"NCCL INFO Pattern (\d{1,2}), crossNic \d{1,2}, nChannels (\d{1,3}), bw (\d{1,6}\.\d{1,8})/(\d{1,6}\.\d{1,8}), "
    r"type ([A-Z0-9]{3})/([A-Z0-9]{3}), sameChannels ([01])",
    re.ASCII,
)
_CHANNELS = re.compile(
    # 2.18 and 2.19 do not print those of CollNet.
    r"NCCL INFO (\d{1,3}) coll channels, (?:\d{1,3} collnet channels, )?(\d{1,3}) nvls channels",
    re.ASCII,
)
# NCCL prints a ring, a tree, CollNet's chain and direct form and NVLS, where there are such.
_PRINTED_AS = {4: "ring", 1: "tree", 2: "tree", 3: "chain", 5: "nvls", 6: "direct"}
_LOG_HINT = "log with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH"
_STATED_HINT = "as ring=12x60/48, or ring=12x60/48:NVL/PIX: channels x GB/s within / between nodes, and the worst paths"
_STATED = re.compile(
    r"(ring|tree|nvls|chain|direct)=([0-9]{1,2})x([0-9]{1,4}(?:\.[0-9]{1,3})?)/([0-9]{1,4}(?:\.[0-9]{1,3})?)"
    r"(?::([A-Z0-9]{3})/([A-Z0-9]{3}))?",
    re.ASCII,
)


# What a communicator is of, as NCCL prints it since 2.19.
_COMMUNICATOR = re.compile(
    r"NCCL INFO comm \S{1,40} rank \d{1,7} nRanks \d{1,7} nNodes (\d{1,7}) localRanks (\d{1,5})\b", re.ASCII
)


@dataclass(frozen=True, kw_only=True)
class GraphedNodes:
    """Of what nodes a graph is. None: it is not said."""

    gpus: int | None = None
    # Whether it is of one node, whose channels end in it.
    is_alone: bool | None = None


@dataclass(frozen=True, kw_only=True)
class LoggedGraphs:
    """What a log says: the graphs, the channels that became of them, and of which nodes. None: it does not say."""

    graphs: NcclGraphs
    channels: int | None
    nvls_channels: int | None
    nodes: GraphedNodes


def nodes_of_file(raw: bytes) -> GraphedNodes:
    """Return of what nodes the graphs of a file are: a channel lists the GPUs of a node, between ports where it leaves.

    For a file that `graphs_of_file` reads.
    """
    start = raw.find(b"<channel>")
    end = raw.find(b"</channel>", start)
    if start < 0 or end < 0:
        return GraphedNodes()
    return GraphedNodes(gpus=raw.count(b"<gpu ", start, end) or None, is_alone=b"<net " not in raw[start:end])


def graphs_of_file(raw: bytes, where: str) -> NcclGraphs:
    """Return the graphs of a file that NCCL_GRAPH_DUMP_FILE made; `where` names it. Raises InputError for all else."""
    found: dict[int, SearchedGraph] = {}
    plain = False
    for attributes, line in _graph_elements(_text_of(raw, where), where):
        place = f"{where}:{line}"
        number = _integer(attributes, "id", place)
        pattern = _integer(attributes, "pattern", place)
        if number not in _PATTERNS or pattern not in _PATTERNS[number]:
            raise InputError(f"graph {number} has pattern {pattern}, which NCCL does not write", where=place)
        if number in found:
            raise InputError(f"a second graph {number}", where=place, hint="NCCL writes each once")
        found[number] = _graph_of(attributes, place)
        plain |= number == _TREE and pattern == _PLAIN_TREE
    missing = [name for number, name in ((_RING, "ring (0)"), (_TREE, "tree (1)")) if number not in found]
    if missing:
        raise InputError(f"{where} lacks the graph of the {' and the '.join(missing)}", where=where, hint=_FILE_HINT)
    return NcclGraphs(
        ring=found[_RING],
        tree=found[_TREE],
        collnet_chain=found.get(_CHAIN, NO_GRAPH),
        collnet_direct=found.get(_DIRECT, NO_GRAPH),
        nvls=found.get(_NVLS, NO_GRAPH),
        plain_tree=plain,
        origin=f"the graph file {where}",
    )


def _text_of(raw: bytes, where: str) -> str:
    if len(raw) > MOST_BYTES:
        raise InputError(f"{where} is over {MOST_BYTES >> 20} MiB: no graph file is", where=where)
    if b"\0" in raw or b"<!" in raw:
        raise InputError(f"{where} is not a graph file of NCCL", where=where, hint=_FILE_HINT)
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{where} is not plain ASCII", where=f"{where}:{line}", hint=_FILE_HINT) from error


def _graph_elements(text: str, where: str) -> Iterable[tuple[Mapping[str, str], int]]:
    """Return the attributes of each <graph> and its line. Raises InputError for what is no tree of NCCL's elements."""
    found: list[tuple[Mapping[str, str], int]] = []
    opened, position, tags = [""], 0, 0
    line = 1
    while (start := text.find("<", position)) >= 0:
        line += text.count("\n", position, start)
        tag = _TAG.match(text, start)
        place = f"{where}:{line}"
        if tag is None or text[position:start].strip():
            raise InputError(f"{where} is not a graph file of NCCL from here on", where=place, hint=_FILE_HINT)
        tags += 1
        if tags > _MOST_TAGS:
            raise InputError(f"{where} has more than {_MOST_TAGS} elements: no graph file has", where=place)
        closes, name, inner, single = tag.groups()
        if closes:
            if inner.strip() or single or len(opened) < 2 or opened.pop() != name:
                raise InputError(f"</{name}> closes nothing that is open", where=place, hint=_FILE_HINT)
        else:
            if name not in _CHILDREN.get(opened[-1], ()) or (name == "graphs" and tags > 1):
                raise InputError(f"<{name}> is not what NCCL writes there", where=place, hint=_FILE_HINT)
            if name == "graph":
                found.append((_attributes(inner, place), line))
            if not single:
                opened.append(name)
        line += text.count("\n", start, tag.end())
        position = tag.end()
    if len(opened) > 1 or not tags or text[position:].strip():
        raise InputError(f"{where} is not a whole graph file of NCCL", where=where, hint=_FILE_HINT)
    return found


def _attributes(text: str, place: str) -> dict[str, str]:
    found: dict[str, str] = {}
    position = 0
    while text[position:].strip():
        match = _ATTRIBUTE.match(text, position)
        if match is None or match[1] in found:
            raise InputError("attributes of <graph> that NCCL does not write", where=place, hint=_FILE_HINT)
        found[match[1]] = match[2]
        position = match.end()
    return found


def _integer(attributes: Mapping[str, str], name: str, place: str) -> int:
    text = attributes.get(name, "")
    if _INTEGER.fullmatch(text) is None:
        raise InputError(f"{name}={text[:20]!r} of <graph> is no number", where=place, hint=_FILE_HINT)
    return int(text)


def _rate(text: str, name: str, place: str) -> float:
    if _NUMBER.fullmatch(text) is None or not math.isfinite(float(text)) or float(text) > _MOST_GBps:
        raise InputError(f"{name}={text[:20]!r} is no rate of a channel in GB/s", where=place)
    return float(text)


def _graph_of(attributes: Mapping[str, str], place: str) -> SearchedGraph:
    channels = _integer(attributes, "nchannels", place)
    if not 0 <= channels <= _MOST_CHANNELS:
        raise InputError(f"{channels} channels: NCCL has at most {_MOST_CHANNELS}", where=place)
    return SearchedGraph(
        channels=channels,
        intra_GBps=_rate(attributes.get("speedintra", ""), "speedintra", place),
        inter_GBps=_rate(attributes.get("speedinter", ""), "speedinter", place),
        intra_type=_path_type(attributes.get("typeintra", ""), place),
        inter_type=_path_type(attributes.get("typeinter", ""), place),
        same_channels=_integer(attributes, "samechannels", place) != 0,
        # Files of older releases lack it.
        latency_us=_rate(attributes.get("latencyinter", "0"), "latencyinter", place),
    )


def _path_type(text: str, place: str) -> str:
    if text not in _TYPE_ORDER:
        known = ", ".join(_TYPE_ORDER)
        raise InputError(f"{text[:20]!r} is not a type of path", where=place, hint=f"one of {known}")
    return text


def graphs_of_log(text: str, where: str) -> LoggedGraphs:
    """Return the graphs that a log prints, the worst of all ranks, as NCCL takes them.

    Raises InputError for a log without them.
    """
    found: dict[str, SearchedGraph] = {}
    plain = False
    channels = nvls_channels = None
    nodes = GraphedNodes()
    # Patterns 1 to 3 may be the tree's and CollNet's chain's: of one rank the first is the tree.
    seen_of: dict[str, int] = {}
    for line in text.splitlines():
        if (match := _PRINTED.search(line)) is not None:
            rank = line[: match.start()]
            pattern = int(match[1])
            if pattern == 4:
                seen_of[rank] = 0
            name = _PRINTED_AS.get(pattern)
            if name in ("tree", "chain"):
                seen_of[rank] = seen_of.get(rank, 0) + 1
                name = "tree" if seen_of[rank] == 1 else "chain"
                plain |= name == "tree" and pattern == _PLAIN_TREE
            if name is not None:
                found[name] = _worst(found.get(name), _printed(match, where))
        elif (match := _CHANNELS.search(line)) is not None:
            channels, nvls_channels = int(match[1]), int(match[2])
        elif (match := _COMMUNICATOR.search(line)) is not None:
            nodes = GraphedNodes(gpus=int(match[2]), is_alone=int(match[1]) == 1)
    if "ring" not in found or "tree" not in found:
        raise InputError(f"{where} prints no graph of rings and trees", where=where, hint=_LOG_HINT)
    graphs = NcclGraphs(
        ring=found["ring"],
        tree=found["tree"],
        collnet_chain=found.get("chain", NO_GRAPH),
        collnet_direct=found.get("direct", NO_GRAPH),
        nvls=found.get("nvls", NO_GRAPH),
        plain_tree=plain,
        origin=f"the log {where}",
    )
    return LoggedGraphs(graphs=graphs, channels=channels, nvls_channels=nvls_channels or None, nodes=nodes)


def _printed(match: re.Match[str], where: str) -> SearchedGraph:
    channels = int(match[2])
    if channels > _MOST_CHANNELS:
        raise InputError(f"{channels} channels: NCCL has at most {_MOST_CHANNELS}", where=where)
    return SearchedGraph(
        channels=channels,
        intra_GBps=_rate(match[3], "bw", where),
        inter_GBps=_rate(match[4], "bw", where),
        intra_type=_path_type(match[5], where),
        inter_type=_path_type(match[6], where),
        same_channels=match[7] == "1",
    )


def _worst(one: SearchedGraph | None, other: SearchedGraph) -> SearchedGraph:
    if one is None:
        return other
    return SearchedGraph(
        channels=min(one.channels, other.channels),
        intra_GBps=min(one.intra_GBps, other.intra_GBps),
        inter_GBps=min(one.inter_GBps, other.inter_GBps),
        intra_type=max(one.intra_type, other.intra_type, key=_TYPE_ORDER.index),
        inter_type=max(one.inter_type, other.inter_type, key=_TYPE_ORDER.index),
        same_channels=one.same_channels and other.same_channels,
        latency_us=max(one.latency_us, other.latency_us),
    )


def graphs_as_stated(texts: tuple[str, ...]) -> NcclGraphs:
    """Return graphs that somebody states, as `ring=12x60/48`; a tree is as the ring unless it is stated.

    Raises InputError for other texts, for one stated twice, and without a ring.
    """
    found: dict[str, SearchedGraph] = {}
    for text in texts:
        match = _STATED.fullmatch(text)
        if match is None or match[1] in found:
            raise InputError(f"{text[:60]!r} is no graph, or a second one of its kind", hint=_STATED_HINT)
        channels = int(match[2])
        if not 1 <= channels <= _MOST_CHANNELS:
            raise InputError(f"{channels} channels in {text!r}", hint=f"from 1 to {_MOST_CHANNELS}")
        if float(match[3]) == 0:
            raise InputError(f"channels of 0 GB/s in {text!r}", hint=_STATED_HINT)
        found[match[1]] = SearchedGraph(
            channels=channels,
            intra_GBps=_rate(match[3], "rate", text),
            inter_GBps=_rate(match[4], "rate", text),
            intra_type=_path_type(match[5] or "NVL", text),
            inter_type=_path_type(match[6] or "PIX", text),
            same_channels=True,
        )
    if "ring" not in found:
        raise InputError("no graph of a ring is stated", hint=_STATED_HINT)
    return NcclGraphs(
        ring=found["ring"],
        tree=found.get("tree", found["ring"]),
        collnet_chain=found.get("chain", NO_GRAPH),
        collnet_direct=found.get("direct", NO_GRAPH),
        nvls=found.get("nvls", NO_GRAPH),
        origin="the graph that was stated",
    )


def graphs_of_search(searched: Searched, name: str) -> NcclGraphs | None:
    """Return the graphs that NCCL's search finds for a known topology, as all nodes of a job take them; None: nothing.

    Of rings and trees all have as many channels as the one that has fewer.
    """
    if searched.ring is None or searched.tree is None:
        return None
    channels = min(searched.ring.channels, searched.tree.channels)
    return NcclGraphs(
        ring=structs.replace(_found(searched.ring), channels=channels),
        tree=structs.replace(_found(searched.tree), channels=channels),
        nvls=_found(searched.nvls) if searched.nvls is not None else NO_GRAPH,
        plain_tree=searched.tree.chain,
        origin=f"NCCL's search over the topology of {name}",
    )


def _found(found: FoundChannels) -> SearchedGraph:
    return SearchedGraph(
        channels=found.channels,
        intra_GBps=found.within_GBps,
        inter_GBps=found.between_GBps,
        intra_type=found.within_type,
        inter_type=found.between_type,
        same_channels=found.alike,
        latency_us=found.latency_us,
    )
