"""What to do next about one size: the command that would tell more, or mend it."""

from busbw.judge.explaining.from_run import SYMMETRIC
from busbw.judge.explaining.grounds import Grounds
from busbw.judge.explaining.outcome import Held
from busbw.judge.explaining.resembling import Suspect
from busbw.limits.algorithms import COLLECTIVES
from busbw.model.finding import Verdict

# Sound rings over NVLink of Hopper use 16 to 24; four of them cannot fill its links.
_FEW_CHANNELS = 4
_PAIRS = "busbw run sendrecv --backend native-nccl -b 64M -e 64M --pairs"


def next_step(held: Held, verdict: Verdict, grounds: Grounds, seems: Suspect | None) -> str | None:
    """Return one line to follow; None where nothing is to be done. `seems`: the network that it seems to have used."""
    if verdict.outcome == "wrong":
        return "measure nothing with this library and these settings before the cause is found"
    if verdict.outcome == "slow":
        return _slow(held, grounds, seems)
    if verdict.outcome == "cannot_tell":
        return _cannot_tell(held, grounds)
    return None


def _slow(held: Held, grounds: Grounds, seems: Suspect | None) -> str:
    return _of_network(grounds, seems) or _of_choice(held) or _of_part(held)


def _of_network(grounds: Grounds, seems: Suspect | None) -> str | None:
    if seems is None:
        return None
    if seems.way == "shm":
        return (
            "let NCCL use the links: unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; where they are not set, busbw doctor "
            "LOG and busbw doctor --here say why it does not"
        )
    if seems.way == "fallback":
        return (
            f"make NCCL find the fabric{_plugin(grounds)}; NCCL_DEBUG=INFO prints which NET it uses, and busbw doctor "
            "LOG reads what it prints"
        )
    return (
        "if P2P and shared memory were off on purpose, say so: --network loopback; else unset NCCL_P2P_DISABLE and "
        "NCCL_SHM_DISABLE"
    )


def _of_part(held: Held) -> str:
    series = held.series
    if held.regime == "latency":
        return "look for what takes the cores or slows the clocks: busbw doctor --here on each host"
    if series.library == "nccl" and (series.nodes or 1) > 1:
        group = f" --group {series.gpus_per_node}" if series.gpus_per_node else ""
        return f"find the slow rail: {_PAIRS} rail{group}, on the same nodes"
    if series.library == "nccl":
        return f"find the slow GPU: {_PAIRS} all; and busbw doctor --here"
    return "look at the hosts: busbw doctor --here on each"


def _of_choice(held: Held) -> str | None:
    """Return what to change where NCCL's own choice explains a slow large message."""
    sample = held.sample
    if held.regime != "bandwidth":
        return None
    if sample.algorithm == SYMMETRIC:
        return "measure with plain buffers (-R 0): without multicast a symmetric kernel may be slower than NCCL's ring"
    if (sample.protocol or "").upper() == "LL":
        return "leave the protocol to NCCL: half of what LL sends is flags (unset NCCL_PROTO)"
    if sample.channels is not None and sample.channels <= _FEW_CHANNELS:
        return (
            f"leave the channels to NCCL, or ask for more: it used {sample.channels} "
            "(unset NCCL_MAX_NCHANNELS, or NCCL_MIN_NCHANNELS=16)"
        )
    return None


def _plugin(grounds: Grounds) -> str:
    platform = grounds.platform
    if platform is None or platform.fabric.plugin is None:
        return ""
    return f" ({platform.fabric.kind} through {platform.fabric.plugin}; busbw env recommend --platform {platform.id})"


def _cannot_tell(held: Held, grounds: Grounds) -> str | None:
    series = held.series
    if held.sample.spoiled is not None:
        return None
    if held.no_bound is not None:
        return _say_more(held, grounds)
    if not held.possible.bounds:
        return "say on what it ran: --nodes, --gpus-per-node, --platform or --host"
    if len(held.possible.bounds) > 1 and any(aim is not None for aim in held.targets):
        names = ", ".join(bound.algorithm for bound in held.possible.bounds)
        return (
            f"say which algorithm it was ({names}): --algorithm NAME, or --nvls off; NCCL_DEBUG=INFO with "
            "NCCL_DEBUG_SUBSYS=TUNING prints it, and busbw run --backend native-nccl records it"
        )
    if held.empty is None and held.regime == "latency":
        return "hold small messages against a run of the same machine when it was sound: busbw compare SOUND THIS"
    return "measure larger messages: -e 8G" if series.library == "nccl" and held.regime != "bandwidth" else None


def _say_more(held: Held, grounds: Grounds) -> str | None:
    series = held.series
    if series.collective not in COLLECTIVES:
        # Nothing that could be said would give it a bound.
        return None
    is_known = grounds.platform is not None or grounds.hardware is not None or series.gpu_name is not None
    if series.nodes is None and is_known:
        return "say on how many nodes it ran: --nodes N"
    if series.nodes is None:
        return "say on what it ran, and on how many nodes: --platform ID (busbw platform list), --nodes N"
    return (
        "say on what it ran: --platform ID (busbw platform list), or --host SNAPSHOT of busbw probe; and how: --nodes, "
        "--gpus-per-node"
    )
