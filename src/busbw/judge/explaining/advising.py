"""What to do next about one size: the command that would tell more, or mend it."""

from busbw.judge.explaining.grounds import Grounds
from busbw.judge.explaining.outcome import Held
from busbw.judge.explaining.resembling import Suspect
from busbw.model.finding import Verdict

_PAIRS = "busbw run sendrecv --backend native-nccl -b 64M -e 64M --pairs"


def next_step(held: Held, verdict: Verdict, grounds: Grounds, seems: Suspect | None) -> str | None:
    """Return one line to follow; None where nothing is to be done. `seems`: the network that it seems to have used."""
    if verdict.outcome == "wrong":
        return "measure nothing with this library and these settings before the cause is found"
    if verdict.outcome == "slow":
        return _slow(held, grounds, seems)
    if verdict.outcome == "cannot_tell":
        return _cannot_tell(held)
    return None


def _slow(held: Held, grounds: Grounds, seems: Suspect | None) -> str:
    series = held.series
    if seems is not None and seems.network == "fallback":
        return (
            f"make NCCL find the fabric{_plugin(grounds)}; NCCL_DEBUG=INFO prints which NET it uses, and busbw doctor "
            "LOG reads what it prints"
        )
    if seems is not None and seems.network == "loopback":
        return (
            "if P2P and shared memory were off on purpose, say so: --network loopback; else unset NCCL_P2P_DISABLE and "
            "NCCL_SHM_DISABLE"
        )
    if held.regime == "latency":
        return "look for what takes the cores or slows the clocks: busbw doctor --here on each host"
    if series.library == "nccl" and (series.nodes or 1) > 1:
        group = f" --group {series.gpus_per_node}" if series.gpus_per_node else ""
        return f"find the slow rail: {_PAIRS} rail{group}, on the same nodes"
    if series.library == "nccl":
        return f"find the slow GPU: {_PAIRS} all; and busbw doctor --here"
    return "look at the hosts: busbw doctor --here on each"


def _plugin(grounds: Grounds) -> str:
    platform = grounds.platform
    if platform is None or platform.fabric.plugin is None:
        return ""
    return f" ({platform.fabric.kind} through {platform.fabric.plugin}; busbw env recommend --platform {platform.id})"


def _cannot_tell(held: Held) -> str | None:
    series = held.series
    if held.sample.spoiled is not None:
        return None
    if held.no_bound is not None:
        return _say_more(held)
    if not held.possible.bounds:
        return "say on what it ran: --nodes, --gpus-per-node, --platform or --host"
    if len(held.possible.bounds) > 1 and any(aim is not None for aim in held.targets):
        names = ", ".join(bound.algorithm for bound in held.possible.bounds)
        return (
            f"say which algorithm it was ({names}): --algorithm NAME, or --nvls off; NCCL_DEBUG=INFO with "
            "NCCL_DEBUG_SUBSYS=TUNING prints it, and busbw run --backend native-nccl records it"
        )
    return "measure larger messages: -e 8G" if series.library == "nccl" and held.regime != "bandwidth" else None


def _say_more(held: Held) -> str:
    if held.series.nodes is None:
        return "say on how many nodes it ran: --nodes N"
    return "say on what it ran: --platform ID (busbw platform list), or --host SNAPSHOT of busbw probe"
