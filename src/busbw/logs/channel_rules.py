"""Rules about the number of channels: whether it leaves links idle, and what limits it."""

import re
from collections.abc import Iterator

from busbw.facts.findings import finding
from busbw.logs.case import Case
from busbw.logs.ranks import words
from busbw.model.finding import Finding
from busbw.model.platform import Platform

# What one channel carries at most in NCCL's search for rings, in bytes per second, by compute capability times ten:
# the first of the speeds it tries within a node (src/graph/search.cc, v2.28.9-1).
_FASTEST = ((100, 90e9), (90, 60e9), (0, 40e9))
_LIMITS = ("NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS", "NCCL_MAX_CTAS")
# NVSwitches give many more; GPUs on PCIe mostly have this many.
_FEW = 4
_RAILED = frozenset({"InfiniBand", "RoCE"})
_COUNT = re.compile(r"(\d{1,6}) collective", re.ASCII)


def channel_findings(case: Case) -> Iterator[Finding]:
    """Yield that there are too few channels, or that nothing tells."""
    counts = {
        int(match[1]): who for value, who in case.has("channels").items() if (match := _COUNT.match(value)) is not None
    }
    if not counts or (case.people.ranks or 0) < 2:
        return
    channels = min(counts)
    cause = _cause(case, channels)
    said = f"{words(counts[channels])}: {channels} collective channels{f'; {cause}' if cause else ''}"
    needed = _needed(case, case.platform) if case.platform is not None else None
    if needed is not None:
        least, because = needed
        if channels < least:
            yield finding(
                "LOG017",
                evidence=f"{said}; {because}",
                fix=_fix(cause),
                confidence="certain" if cause else "likely",
                channels=channels,
            )
        return
    doubt = _doubt(case, channels, cause)
    if doubt is not None:
        yield finding(
            "LOG018",
            evidence=f"{said}; {doubt}",
            fix="busbw doctor --platform ID tells, where the machine is known",
            confidence="possible",
            channels=channels,
        )


def _cause(case: Case, channels: int) -> str | None:
    """Return the setting that allows no more channels."""
    for name in _LIMITS:
        value = (case.setting(name) or "").strip()
        if value.isascii() and value.isdecimal() and 0 < int(value[:9]) <= channels:
            return f'{name} = "{value}" allows no more'
    return None


def _needed(case: Case, platform: Platform) -> tuple[int, str] | None:
    """Return how many channels a platform's links need at the least, and why; None: nobody can tell."""
    ranks, nodes = case.people.ranks or 0, case.nodes
    if nodes is None:
        return None
    if nodes == 1:
        return _within(case, platform)
    ports = platform.nic.ports
    if platform.fabric.kind not in _RAILED or not ports or ranks < nodes * max(platform.gpu.count, ports):
        return None
    return ports, f"a node of {platform.id} has {ports} NICs, and one channel fills one NIC at most"


def _within(case: Case, platform: Platform) -> tuple[int, str] | None:
    rate, sm = platform.nvlink.gpu_Bps, platform.gpu.sm
    direct = [way for way in case.ways if way.place == "within nodes" and way.via.startswith("P2P")]
    if not platform.nvlink.switched or rate is None or sm is None or not direct:
        return None
    fastest = next(speed for capability, speed in _FASTEST if sm >= capability)
    least = int(rate // fastest)
    return least, (
        f"a GPU of {platform.id} has {rate / 1e9:g} GB/s of NVLink in each direction, and NCCL plans at most "
        f"{fastest / 1e9:g} GB/s for a channel"
    )


def _doubt(case: Case, channels: int, cause: str | None) -> str | None:
    """Return what in the log makes few channels worth a word."""
    for platform in case.fitting.platforms:
        needed = _needed(case, platform)
        if needed is not None and channels < needed[0]:
            return f"if this is {platform.id}, it needs {needed[0]}: {needed[1]}"
    if cause is not None:
        return "what NCCL would choose itself is not known"
    inside = [way for way in case.ways if way.place == "within nodes"]
    if inside and not any(way.via.startswith("P2P") for way in inside):
        return None  # few channels are what such a way needs, and the way has its own finding
    if case.nodes == 1 and channels <= _FEW and (case.has("NVLink") or "available" in case.has("NVLS")):
        return "GPUs behind NVSwitches mostly have 16 and more, two GPUs with a few links have 2 to 4"
    listed = max((len(re.findall(r"\[\d+\]", value)) for value in case.has("NICs")), default=0)
    full = case.nodes is not None and case.nodes > 1 and (case.people.ranks or 0) >= case.nodes * listed
    if full and channels < listed and "IB" in " ".join(case.has("network")):
        return f"NET/IB lists {listed} NICs, of which some may be for other uses, and one channel fills one NIC at most"
    return None


def _fix(cause: str | None) -> str:
    if cause is not None:
        return f"unset {cause.split(' ', 1)[0]}"
    return (
        "NCCL_DEBUG_SUBSYS=INIT,GRAPH shows what NCCL searched with; GPUs without peer access, a topology file of "
        "another machine and NCCL_CROSS_NIC take channels away"
    )
