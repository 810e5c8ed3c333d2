"""What to do next about one size: the command that would tell more, or mend it.

Every rank of a collective waits for the slowest, so a slow collective accuses nobody: a GPU, NIC or rank is named only
where ranks, pairs or hosts were seen to differ (slow_ends, stragglers). Until then the advice is the test that tells.
"""

from busbw.judge.explaining.grounds import Grounds
from busbw.judge.explaining.outcome import Judged
from busbw.judge.explaining.resembling import Suspect
from busbw.judge.explaining.sources import SYMMETRIC
from busbw.limits.algorithms import COLLECTIVES
from busbw.model.finding import Verdict

# Sound rings over NVLink of Hopper use 16 to 24; four of them cannot fill its links.
_FEW_CHANNELS = 4
# Two H100 and two H200 gave 4 to 9 % more with 32 than with the 24 that NCCL takes there (docs/measurements).
_MORE_CHANNELS = 32
# Of two GPUs there is one pair, which nothing can be compared with.
_PAIR = 2
_PAIRS = "busbw run sendrecv --backend native-nccl -b 64M -e 64M --pairs"
_UNITS = ((2**30, "G"), (2**20, "M"), (2**10, "K"))


def next_step(judged: Judged, verdict: Verdict, grounds: Grounds, seems: Suspect | None) -> str | None:
    """Return one line to follow; None where nothing is to be done. `seems`: the network that it seems to have used."""
    if verdict.outcome == "wrong":
        return "measure nothing with this library and these settings before the cause is found"
    if verdict.outcome == "slow":
        return _of_network(grounds, seems) or _of_choice(judged) or _unexplained(judged)
    if verdict.outcome == "cannot_tell":
        return _cannot_tell(judged, grounds)
    return None


def _of_network(grounds: Grounds, seems: Suspect | None) -> str | None:
    if seems is None:
        return None
    if seems.way == "shm":
        return (
            "let NCCL use the links: unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; where they are not set, "
            "`busbw doctor LOG` and `busbw doctor --here` say why it does not"
        )
    if seems.way == "fallback":
        return (
            f"make NCCL find the fabric{_plugin(grounds)}; NCCL_DEBUG=INFO prints which NET it uses, and "
            "`busbw doctor LOG` reads what it prints"
        )
    return (
        "if P2P and shared memory were off on purpose, say so: --network loopback; else unset NCCL_P2P_DISABLE and "
        "NCCL_SHM_DISABLE"
    )


def _of_choice(judged: Judged) -> str | None:
    """Return what to change where NCCL's own choice explains a slow large message."""
    sample, likely = judged.sample, judged.likely
    if likely is None or likely.regime == "latency":
        return None
    if sample.algorithm == SYMMETRIC:
        return "measure with plain buffers (-R 0): without multicast a symmetric kernel may be slower than NCCL's ring"
    if (sample.protocol or "").upper() == "LL" and likely.regime == "bandwidth":
        return "leave the protocol to NCCL: half of what LL sends is flags (unset NCCL_PROTO)"
    if sample.channels is not None and sample.channels <= _FEW_CHANNELS:
        return (
            f"leave the channels to NCCL, or ask for more: it used {sample.channels} "
            "(unset NCCL_MAX_NCHANNELS, or NCCL_MIN_NCHANNELS=16)"
        )
    return None


def _unexplained(judged: Judged) -> str:
    """Return the two tests that tell most where nothing that was recorded explains a slow size."""
    series, likely = judged.series, judged.likely
    if series.library != "nccl":
        return "cannot tell why; look at each host: `busbw doctor --here`"
    if likely is None or likely.regime == "latency":
        return (
            "cannot tell why; take the launches on the host out of the time: "
            f"`{_run(judged)} --mode graph`; then look at cores and clocks: `busbw doctor --here`"
        )
    nodes = series.nodes or 1
    if nodes > 1:
        group = f" --group {series.gpus_per_node}" if series.gpus_per_node else ""
        return (
            f"cannot tell why from a collective alone; compare the NICs rail by rail: `{_PAIRS} rail{group}`; then "
            f"the settings: `{_compare(judged)}`"
        )
    pairs = f"; then compare the GPUs with each other: `{_PAIRS} all`" if series.ranks > _PAIR else ""
    return (
        f"cannot tell why from a collective alone; compare settings: `{_compare(judged)}`{pairs}; and the host: "
        "`busbw doctor --here`"
    )


def _compare(judged: Judged) -> str:
    return f"{_run(judged, 'compare')} --set default --set NCCL_MIN_NCHANNELS={_MORE_CHANNELS}"


def _run(judged: Judged, verb: str = "run") -> str:
    series, size = judged.series, _size(judged.sample.size_bytes)
    ranks = f" --ranks {series.ranks}" if series.nodes == 1 else ""
    return f"busbw {verb} {series.collective} --backend native-nccl{ranks} -b {size} -e {size}"


def _size(size_bytes: int) -> str:
    return next((f"{size_bytes // unit}{name}" for unit, name in _UNITS if size_bytes % unit == 0), str(size_bytes))


def _plugin(grounds: Grounds) -> str:
    platform = grounds.platform
    if platform is None or platform.fabric.plugin is None:
        return ""
    return f" ({platform.fabric.kind} through {platform.fabric.plugin}; `busbw env recommend --platform {platform.id}`)"


def _cannot_tell(judged: Judged, grounds: Grounds) -> str | None:
    series = judged.series
    if judged.sample.spoiled is not None:
        return None
    if not judged.scenarios and series.collective != "latency":
        return _say_more(judged, grounds)
    if judged.scenarios and not judged.possible:
        return "say on what it ran: --nodes, --gpus-per-node, --platform or --host"
    if len(judged.possible) > 1 and any(judged.expected):
        return (
            "say whether NVLink SHARP was on: --nvls on, or --nvls off, or the algorithm: --algorithm NAME; NCCL_DEBUG="
            "INFO with NCCL_DEBUG_SUBSYS=TUNING prints it, and `busbw run --backend native-nccl` records it"
        )
    if judged.likely is None or judged.likely.regime != "bandwidth":
        return "hold small messages against a run of the same machine when it was sound: `busbw compare SOUND THIS`"
    return None


def _say_more(judged: Judged, grounds: Grounds) -> str | None:
    series = judged.series
    if series.collective not in COLLECTIVES:
        # Nothing that could be said would give it a bound.
        return None
    is_known = grounds.platform is not None or grounds.hardware is not None or series.gpu_name is not None
    if series.nodes is None and is_known:
        return "say on how many nodes it ran: --nodes N"
    if series.nodes is None:
        return "say on what it ran, and on how many nodes: --platform ID (`busbw platform list`), --nodes N"
    return (
        "say on what it ran: --platform ID (`busbw platform list`), or --host SNAPSHOT of `busbw probe`; and how: "
        "--nodes, --gpus-per-node"
    )
