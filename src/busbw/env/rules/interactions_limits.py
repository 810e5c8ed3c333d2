"""Limits on each other, and settings that do nothing without another."""

from collections.abc import Iterator

from busbw.env.together import Rule, Together
from busbw.model.understood import Interaction

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
    _sockets,
    _without_its_switch,
    _log_that_is_off,
    _log_without_start,
    _check_mode,
    _graphs,
)
