"""Algorithms and protocols: choices that leave nothing, or something that NCCL would not have taken."""

from collections.abc import Iterator

from busbw.env.rules.interactions_network import Rule, Together
from busbw.env.values_nccl import read_algorithms, read_protocols
from busbw.model.envvar import Interaction

_TUNING = "NVIDIA/nccl, src/graph/tuning.cc"
_COLLNET = ("CollNetDirect", "CollNetChain")
_SIMPLE_ONLY = {*_COLLNET, "NVLS", "NVLSTree", "PAT"}
_LL128_SOURCE = "NVIDIA/nccl issue 786 and pull request 1081; src/graph/tuning.cc"


def _left_over(set_: Together, nodes: int | None) -> dict[str, tuple[str, ...]] | None:
    """Return what NCCL_ALGO and the switches leave to each function on so many nodes; None: NCCL_ALGO is not read."""
    text = set_.text("NCCL_ALGO")
    read = None if text is None else read_algorithms(text, set_.version)
    if read is None or read.kind == "fails":
        return None
    return {
        function: tuple(name for name in names if _can_run(set_, name, nodes))
        for function, names in read.enabled.items()
    }


def _can_run(set_: Together, algorithm: str, nodes: int | None) -> bool:
    collnet = set_.number("NCCL_COLLNET_ENABLE") == 1
    several = nodes is not None and nodes > 1
    if algorithm in _COLLNET:
        return collnet
    if algorithm == "NVLS":
        return not set_.is_off("NCCL_NVLS_ENABLE") and (collnet or not several)
    if algorithm == "NVLSTree":
        return not set_.is_off("NCCL_NVLS_ENABLE") and nodes != 1
    return algorithm != "PAT" or not set_.is_off("NCCL_PAT_ENABLE")


def _nothing_left(set_: Together) -> Iterator[Interaction]:
    left = _left_over(set_, set_.nodes)
    if left is None:
        return
    empty = [function for function, names in left.items() if not names]
    strict = set_.from_version(2, 24)
    if "AllReduce" in empty:
        yield Interaction(
            id="no algorithm",
            names=_involved(set_),
            condition=f"{_together(set_)} leave no algorithm to {_listed(empty)}",
            effect="the first call fails" if strict else "before 2.24 NCCL takes rings instead, whatever was asked for",
            kind="fails" if strict else "misleading",
            fix="name Ring too, or leave NCCL_ALGO out",
            source=_TUNING,
        )
    elif empty and strict:
        yield Interaction(
            id="some without algorithm",
            names=("NCCL_ALGO",),
            condition=f"{set_.written('NCCL_ALGO')} leaves no algorithm to {_listed(empty)}",
            effect="calls to them fail; all_reduce works",
            kind="misleading",
            fix=f'NCCL_ALGO="allreduce:{set_.values["NCCL_ALGO"][:200]}" holds for all_reduce alone'
            if ":" not in set_.values["NCCL_ALGO"]
            else None,
            source=_TUNING,
        )


def _involved(set_: Together) -> tuple[str, ...]:
    names = ("NCCL_ALGO", "NCCL_COLLNET_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_PAT_ENABLE")
    return tuple(name for name in names if set_.has(name))


def _together(set_: Together) -> str:
    names = _involved(set_)
    if len(names) > 1:
        return " and ".join(map(set_.written, names))
    where = "" if set_.nodes is None else " on one node" if set_.nodes == 1 else " on several nodes"
    return f"{set_.written('NCCL_ALGO')} and the defaults{where}"


def _listed(functions: list[str]) -> str:
    return ", ".join(functions)


def _nvls_alone(set_: Together) -> Iterator[Interaction]:
    """Yield NVLS as the only choice, where the number of nodes is not known."""
    if set_.nodes is not None or not set_.from_version(2, 24):
        return
    one, several = _left_over(set_, 1), _left_over(set_, 2)
    if one is None or several is None or not one["AllReduce"] or several["AllReduce"]:
        return
    yield Interaction(
        id="NVLS alone",
        names=("NCCL_ALGO",),
        condition=f"{set_.written('NCCL_ALGO')} is for one node",
        effect="on several nodes NVLS needs CollNet: without it the first all_reduce fails",
        kind="misleading",
        fix='add NVLSTree: NCCL_ALGO="NVLS,NVLSTree"',
        source=_TUNING,
    )


def _collnet_off(set_: Together) -> Iterator[Interaction]:
    text = set_.text("NCCL_ALGO")
    if text is None or not set_.is_off("NCCL_COLLNET_ENABLE"):
        return
    named = [name for name in _COLLNET if name.lower() in text.lower()]
    if named and not text.startswith("^") and ":^" not in text:
        yield Interaction(
            id="CollNet asked for and off",
            names=("NCCL_COLLNET_ENABLE", "NCCL_ALGO"),
            condition=f"{set_.written('NCCL_ALGO')} with {set_.written('NCCL_COLLNET_ENABLE')}",
            effect=f"{' and '.join(named)} cannot be used",
            kind="contradiction",
            fix='NCCL_COLLNET_ENABLE="1", or leave CollNet out of NCCL_ALGO',
            source=_TUNING,
        )


def _nvls_off(set_: Together) -> Iterator[Interaction]:
    text = set_.text("NCCL_ALGO")
    if text is None or not set_.is_off("NCCL_NVLS_ENABLE") or text.startswith("^") or ":^" in text:
        return
    if "nvls" in text.lower():
        yield Interaction(
            id="NVLS asked for and off",
            names=("NCCL_NVLS_ENABLE", "NCCL_ALGO"),
            condition=f"{set_.written('NCCL_ALGO')} with {set_.written('NCCL_NVLS_ENABLE')}",
            effect="NVLS and NVLSTree cannot be used",
            kind="contradiction",
            fix="leave NCCL_NVLS_ENABLE out, or NVLS out of NCCL_ALGO",
            source=_TUNING,
        )


def _without_simple(set_: Together) -> Iterator[Interaction]:
    """Yield protocols that the algorithms do not have: all but rings and trees send with Simple only."""
    text, left = set_.text("NCCL_PROTO"), _left_over(set_, set_.nodes)
    if text is None or left is None:
        return
    protocols = read_protocols(text, set_.version)
    names = set(left["AllReduce"])
    if protocols.kind == "fails" or not names or not names <= _SIMPLE_ONLY:
        return
    if "Simple" not in protocols.enabled["AllReduce"] and set_.from_version(2, 24):
        yield Interaction(
            id="no protocol",
            names=("NCCL_PROTO", "NCCL_ALGO"),
            condition=f"{set_.written('NCCL_PROTO')} with {set_.written('NCCL_ALGO')}",
            effect=f"{', '.join(sorted(names))} send with Simple only: nothing is left, and all_reduce fails",
            kind="fails",
            fix="leave NCCL_PROTO out",
            source=_TUNING,
        )


def _ll128_forced(set_: Together) -> Iterator[Interaction]:
    text = set_.text("NCCL_PROTO")
    if text is None or text == "":
        return
    read = read_protocols(text, set_.version)
    if read.kind is None and any("LL128" in protocols for protocols in _set_by(text, read.enabled).values()):
        yield Interaction(
            id="LL128 forced",
            names=("NCCL_PROTO",),
            condition=f"{set_.written('NCCL_PROTO')} turns LL128 on everywhere",
            effect="also on paths on which NCCL leaves it out because it can give wrong data there",
            kind="misleading",
            fix="leave NCCL_PROTO out, or exclude: ^LL128",
            source=_LL128_SOURCE,
        )


def _set_by(text: str, enabled: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the functions that a list says something about: all, unless each of its parts names one."""
    parts = [part for part in text.split(";") if part]
    named = {part.partition(":")[0].lower() for part in parts}
    if any(":" not in part for part in parts):
        return enabled
    return {function: protocols for function, protocols in enabled.items() if function.lower() in named}


def _symmetric(set_: Together) -> Iterator[Interaction]:
    if set_.has("NCCL_SYM_KERNEL") and not set_.has("NCCL_ALGO") and set_.from_version(2, 31):
        yield Interaction(
            id="symmetric kernels alone",
            names=("NCCL_SYM_KERNEL",),
            condition=f"{set_.written('NCCL_SYM_KERNEL')} without NCCL_ALGO",
            effect="since 2.31 this turns the other algorithms off: what symmetric kernels cannot do fails",
            kind="misleading",
            fix="set NCCL_ALGO beside it",
            source="NVIDIA/nccl, wheel 2.31.2",
        )


_MSCCL = "microsoft/msccl at b23e9cd5, src/graph/tuning.cc and src/collectives/all_to_all.cc"
_MSCCLPP = "microsoft/mscclpp at 1f5f065d, src/ext/nccl/nccl.cc and docs/quickstart.md"
_IN_NCCLS_PLACE = "libmscclpp_nccl"
_REPLACED = ("libnccl.so", "librccl.so")


def _msccl_without_algorithm(set_: Together) -> Iterator[Interaction]:
    name = next((each for each in ("MSCCL_XML_FILES", "MSCCL_CONFIG") if set_.text(each)), None)
    named = "msccl" in (set_.text("NCCL_ALGO") or "").lower()
    if name is not None and not named:
        yield Interaction(
            id="MSCCL without its algorithm",
            names=(name, *(("NCCL_ALGO",) if set_.has("NCCL_ALGO") else ())),
            condition=f"{name} without MSCCL in NCCL_ALGO",
            effect="the library reads the files, and only ncclAllToAll runs them",
            kind="misleading",
            fix="NCCL_ALGO=MSCCL,RING,TREE, unless the files are for alltoall",
            source=_MSCCL,
        )


def _msccl_of_two(set_: Together) -> Iterator[Interaction]:
    if set_.text("MSCCL_XML_FILES") and set_.text("MSCCL_ALGO_DIR"):
        yield Interaction(
            id="MSCCL in two ways",
            names=("MSCCL_XML_FILES", "MSCCL_ALGO_DIR"),
            condition=f"{set_.written('MSCCL_XML_FILES')} with {set_.written('MSCCL_ALGO_DIR')}",
            effect="no library reads both: the fork microsoft/msccl the first, msccl-executor-nccl and RCCL the second",
            kind="misleading",
            fix="leave out the one that the loaded library does not read",
            source=_MSCCL,
        )


def _loaded_first(set_: Together) -> tuple[str, ...]:
    """Return the files of LD_PRELOAD, in its order, without their folders."""
    found = (set_.text("LD_PRELOAD") or "").replace(":", " ").split()
    return tuple(path.rpartition("/")[2] for path in found)


def _mscclpp_behind(set_: Together) -> Iterator[Interaction]:
    files = _loaded_first(set_)
    places = {name: next((at for at, file in enumerate(files) if file.startswith(name)), None) for name in _REPLACED}
    own = next((at for at, file in enumerate(files) if file.startswith(_IN_NCCLS_PLACE)), None)
    before = [name for name, at in places.items() if at is not None and own is not None and at < own]
    if before:
        yield Interaction(
            id="MSCCL++ behind NCCL",
            names=("LD_PRELOAD",),
            condition=f"{before[0]} stands before {files[own or 0]} in LD_PRELOAD",
            effect="the loader takes the functions of the first: MSCCL++ is loaded and not called",
            kind="misleading",
            fix=f"put {files[own or 0]} first, and name the other with MSCCLPP_NCCL_LIB_PATH",
            source=_MSCCLPP,
        )


def _mscclpp_alone(set_: Together) -> Iterator[Interaction]:
    file = next((each for each in _loaded_first(set_) if each.startswith(_IN_NCCLS_PLACE)), None)
    fallback = set_.text("MSCCLPP_NCCL_LIB_PATH")
    if file is not None and not fallback:
        yield Interaction(
            id="MSCCL++ without NCCL",
            names=("LD_PRELOAD",),
            condition=f"{file} in LD_PRELOAD without MSCCLPP_NCCL_LIB_PATH",
            effect="sends, receives, reduce and what MSCCL++ has no kernel for fail",
            kind="misleading",
            fix="MSCCLPP_NCCL_LIB_PATH= the file libnccl.so.2 that takes them",
            source=_MSCCLPP,
        )
    switch = "MSCCLPP_ENABLE_NCCL_FALLBACK"
    if set_.text(switch) and not fallback:
        yield Interaction(
            id=f"{switch} alone",
            names=(switch,),
            condition=f"{set_.written(switch)}: MSCCLPP_NCCL_LIB_PATH is not set",
            effect="it does nothing; since MSCCL++ 0.8 nothing reads it at all",
            kind="no effect",
            source=_MSCCLPP,
        )


def _mscclpp_beside_msccl(set_: Together) -> Iterator[Interaction]:
    fallback = (set_.text("MSCCLPP_NCCL_LIB_PATH") or "").rpartition("/")[2]
    if fallback.startswith("librccl") and set_.text("RCCL_MSCCL_ENABLE") != "0":
        yield Interaction(
            id="MSCCL++ over RCCL with MSCCL",
            names=("MSCCLPP_NCCL_LIB_PATH",),
            condition=f"{set_.written('MSCCLPP_NCCL_LIB_PATH')} without RCCL_MSCCL_ENABLE=0",
            effect="RCCL's own MSCCL stays on below MSCCL++, and the two conflict by MSCCL++'s guide",
            kind="misleading",
            fix="RCCL_MSCCL_ENABLE=0",
            source=_MSCCLPP,
        )


ALGORITHMS: tuple[Rule, ...] = (
    _nothing_left,
    _nvls_alone,
    _collnet_off,
    _nvls_off,
    _without_simple,
    _ll128_forced,
    _symmetric,
    _msccl_without_algorithm,
    _msccl_of_two,
    _mscclpp_behind,
    _mscclpp_alone,
    _mscclpp_beside_msccl,
)


_MOST_SOCKETS = 64
_DEBUG = "NVIDIA/nccl, src/debug.cc"
# What does nothing unless another is on, and that one.
_NEEDS = (
    ("NCCL_GDRCOPY_FIFO_ENABLE", "NCCL_GDRCOPY_ENABLE"),
    ("NCCL_GDRCOPY_SYNC_ENABLE", "NCCL_GDRCOPY_ENABLE"),
    ("NCCL_GDRCOPY_FLUSH_ENABLE", "NCCL_GDRCOPY_ENABLE"),
    ("NCCL_COLLNET_NODE_THRESHOLD", "NCCL_COLLNET_ENABLE"),
)
_NEEDS_A_FILE = (
    ("NCCL_TOPO_DUMP_FILE_RANK", "NCCL_TOPO_DUMP_FILE"),
    ("NCCL_GRAPH_DUMP_FILE_RANK", "NCCL_GRAPH_DUMP_FILE"),
)
_PRINTS = {"INFO", "TRACE", "ABORT"}


def _channels(set_: Together) -> Iterator[Interaction]:
    """Yield a minimum above the maximum: of CTAs the maximum wins, of channels the minimum."""
    least = [name for name in ("NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS") if (set_.number(name) or 0) > 0]
    most = [name for name in ("NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS") if (set_.number(name) or 0) > 0]
    for low in least:
        for high in most:
            if (set_.number(low) or 0) <= (set_.number(high) or 0):
                continue
            winner = high if low == "NCCL_MIN_CTAS" and high == "NCCL_MAX_CTAS" else low
            yield Interaction(
                id="minimum above maximum",
                names=(low, high),
                condition=f"{set_.written(low)} with {set_.written(high)}",
                effect=f"the minimum is above the maximum: both become {set_.number(winner)}",
                kind="contradiction",
                fix="set both alike for a fixed number",
                source="NVIDIA/nccl, src/init.cc, envConfigOverride, and src/graph/connect.cc, ncclTopoPostset",
            )


def _sockets(set_: Together) -> Iterator[Interaction]:
    threads, each = set_.number("NCCL_SOCKET_NTHREADS"), set_.number("NCCL_NSOCKS_PERTHREAD")
    if threads is None or each is None or threads < 1 or threads * each <= _MOST_SOCKETS:
        return
    names = ("NCCL_NSOCKS_PERTHREAD", "NCCL_SOCKET_NTHREADS")
    yield Interaction(
        id="too many sockets",
        names=names,
        condition=f"{' with '.join(map(set_.written, names))} makes {threads * each} sockets a connection",
        effect=f"NCCL has {_MOST_SOCKETS} at most: {_MOST_SOCKETS // threads} a thread, with a warning",
        kind="clipped",
        fix=f"NCCL_NSOCKS_PERTHREAD={_MOST_SOCKETS // threads}",
        source="NVIDIA/nccl, src/transport/net_socket.cc",
    )


# NCCL cuts its buffers into so many steps, and no chunk of send and receive is larger than one.
STEPS = 8
BUFFER_BYTES = 4_194_304
CHUNKS = ("NCCL_P2P_NET_CHUNKSIZE", "NCCL_P2P_NVL_CHUNKSIZE", "NCCL_P2P_PCI_CHUNKSIZE")


def _chunks_of_buffer(set_: Together) -> Iterator[Interaction]:
    """Yield chunks of send and receive that are longer than a step of the buffer."""
    buffer = set_.number("NCCL_BUFFSIZE") if set_.has("NCCL_BUFFSIZE") else BUFFER_BYTES
    if buffer is None:
        return
    most = (buffer if buffer > 0 else BUFFER_BYTES) // STEPS
    said = set_.written("NCCL_BUFFSIZE") if set_.has("NCCL_BUFFSIZE") else f"a buffer of {BUFFER_BYTES} by default"
    for name in CHUNKS:
        asked = set_.number(name)
        if asked is not None and asked > most:
            yield Interaction(
                id=f"{name} above a step",
                names=(name, *(("NCCL_BUFFSIZE",) if set_.has("NCCL_BUFFSIZE") else ())),
                condition=f"{set_.written(name)} with {said}",
                effect=f"a chunk is an eighth of the buffer at most: it is {most}",
                kind="clipped",
                fix=f"{name}={most}, or NCCL_BUFFSIZE={asked * STEPS} beside it",
                source="NVIDIA/nccl, src/init.cc, computeBuffSizes: buffSizes[NCCL_PROTO_SIMPLE] / NCCL_STEPS",
            )


def _without_its_switch(set_: Together) -> Iterator[Interaction]:
    for name, switch in _NEEDS:
        if set_.is_on(name) and not set_.is_on(switch):
            yield _idle(set_, name, f"{switch} is not on")
    for name, file in _NEEDS_A_FILE:
        if set_.has(name) and not set_.has(file):
            yield _idle(set_, name, f"{file} is not set")
    if set_.has("NCCL_OOB_NET_IFNAME") and not set_.is_on("NCCL_OOB_NET_ENABLE"):
        yield _idle(set_, "NCCL_OOB_NET_IFNAME", "NCCL_OOB_NET_ENABLE is not on")


def _idle(set_: Together, name: str, why: str) -> Interaction:
    return Interaction(
        id=f"{name} alone",
        names=(name,),
        condition=f"{set_.written(name)}: {why}",
        effect="it does nothing",
        kind="no effect",
        source="NVIDIA/nccl, where each is read",
    )


def _log_that_is_off(set_: Together) -> Iterator[Interaction]:
    level = set_.taken("NCCL_DEBUG") or "none"
    if level not in _PRINTS and set_.has("NCCL_DEBUG_SUBSYS") and not set_.is_on("NCCL_WARN_ENABLE_DEBUG_INFO"):
        yield _idle(set_, "NCCL_DEBUG_SUBSYS", "it chooses among the messages of NCCL_DEBUG=INFO, which is not set")
    if level in ("none", "VERSION") and set_.has("NCCL_DEBUG_FILE"):
        yield _idle(set_, "NCCL_DEBUG_FILE", "nothing is printed that could go there without NCCL_DEBUG")


def _log_without_start(set_: Together) -> Iterator[Interaction]:
    text = set_.text("NCCL_DEBUG_SUBSYS")
    if set_.taken("NCCL_DEBUG") not in _PRINTS or not text:
        return
    listed = {item.strip().upper() for item in text.removeprefix("^").split(",")}
    excluded = text.startswith("^")
    shown = ("INIT" in listed or "ALL" in listed) is not excluded
    if not shown:
        yield Interaction(
            id="log without start",
            names=("NCCL_DEBUG_SUBSYS",),
            condition=f"{set_.written('NCCL_DEBUG_SUBSYS')} leaves INIT out",
            effect="the list replaces the default: versions, networks and channels are not printed",
            kind="misleading",
            fix=None if excluded else f"NCCL_DEBUG_SUBSYS=INIT,{text[:100]}",
            source=_DEBUG,
        )


def _check_mode(set_: Together) -> Iterator[Interaction]:
    if set_.is_on("NCCL_CHECK_POINTERS") and set_.taken("NCCL_CHECK_MODE") == "DEFAULT":
        yield Interaction(
            id="checks on and default",
            names=("NCCL_CHECK_POINTERS", "NCCL_CHECK_MODE"),
            condition=f"{set_.written('NCCL_CHECK_POINTERS')} with {set_.written('NCCL_CHECK_MODE')}",
            effect="pointers are checked all the same: DEFAULT does not take it back",
            kind="misleading",
            fix="leave NCCL_CHECK_POINTERS out",
            source="NVIDIA/nccl, src/init.cc, envConfigOverride",
        )


def _graphs(set_: Together) -> Iterator[Interaction]:
    if set_.is_on("NCCL_GRAPH_MIXING_SUPPORT") and set_.is_off("NCCL_GRAPH_STREAM_ORDERING"):
        yield Interaction(
            id="graphs mixed without order",
            names=("NCCL_GRAPH_STREAM_ORDERING", "NCCL_GRAPH_MIXING_SUPPORT"),
            condition=f"{set_.written('NCCL_GRAPH_STREAM_ORDERING')} with {set_.written('NCCL_GRAPH_MIXING_SUPPORT')}",
            effect="kernels of graphs and others may only run side by side in order",
            kind="contradiction",
            fix="leave NCCL_GRAPH_STREAM_ORDERING out",
            source="NVIDIA/nccl, manual of 2.30, NCCL_GRAPH_STREAM_ORDERING",
        )


LIMITS: tuple[Rule, ...] = (
    _channels,
    _chunks_of_buffer,
    _sockets,
    _without_its_switch,
    _log_that_is_off,
    _log_without_start,
    _check_mode,
    _graphs,
)
