"""The plan of a sweep over a fabric: one start of one rank a host, or a NIC, and everything but the adaptive rounds."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from busbw.base.collectives import WINDOW_MESSAGES
from busbw.base.errors import InputError
from busbw.base.hostlist import is_host_name
from busbw.fabric.ib_links import KnownTopology, placed_by_text
from busbw.fabric.ib_topology import MOST_BYTES
from busbw.fabric.places import ONE_WAY, Endpoint, Places, flat
from busbw.fabric.recorded import Drawing, disjoint_rounds, drawn_rounds
from busbw.fabric.schedule import Pair, Round, check_rounds
from busbw.machine.capture import allocation as capture
from busbw.measure.plan.hosts import hosts_of
from busbw.measure.plan.planning import plan as make_plan
from busbw.model.fabric import PAIRS, Earlier, FabricAsked, FabricMetric, FabricPlan, PairProbe, PlannedEndpoint
from busbw.model.launch import HostSlots
from busbw.model.plan import Plan, Sweep
from busbw.model.request import Request
from busbw.store.files import read_bounded

# Messages of 8 bytes hold a number; what saturates 400 Gb/s with a window of messages. Rates count small messages,
# with the window of osu_mbw_mr under way.
_SMALL_BYTES = 8
_USUAL_BYTES = 2**20
_TRIPS = 50
_WINDOW = 16
# The largest of the example in nccl-tests' README.
_USUAL_GPU_BYTES = 2**27
# Fields that only pairs of GPUs have, and their options.
_OF_NCCL = {
    "ranks": "--ranks",
    "gpus_per_process": "--gpus",
    "nccl": "--nccl",
    "driver": "--driver",
    "nvrtc": "--nvrtc",
    "group": "--group",
    "time_limit_s": "--time-limit",
}
_RATE_WINDOW = WINDOW_MESSAGES
_COLLECTIVES: dict[FabricMetric, str] = {
    "latency": "latency",
    "bandwidth": "bandwidth",
    "bibandwidth": "bibw",
    "message-rate": "message_rate",
}
_MOST_PAIRS_BYTES = 2**26
# Of one pair in such a file.
_MOST_REPEATS = 100
# Rounds that may follow from what was measured, and what each may take beside its tests.
_FURTHER_ROUNDS = 8
_ROUND_S = 3.0
_LEAST_S, _MOST_S = 0.001, 600.0
_NIC = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def request_of(request: Request, asked: FabricAsked) -> Request:
    """Return the request that starts one rank for each endpoint of a sweep. Raises InputError."""
    check(asked)
    if only := [name for field, name in _OF_NCCL.items() if getattr(request, field) != getattr(Request(), field)]:
        raise InputError(f"{', '.join(only)}: of pairs of GPUs alone", hint="--over nccl")
    _check_launcher(request)
    if request.hosts is None and request.nodes is None:
        request = msgspec.structs.replace(request, nodes=len(_of_job()))
    _check_hosts(request)
    size_bytes = max(_probe(each, asked).size_bytes for each in asked.metrics)
    return msgspec.structs.replace(
        request,
        collectives=("sendrecv",),
        backend="native-mpi",
        smallest_bytes=size_bytes,
        largest_bytes=size_bytes,
        ranks_per_node=max(len(asked.nics), 1),
        fabric=asked,
    )


def gpu_request(request: Request, asked: FabricAsked) -> Request:
    """Return the request that measures pairs of GPUs over NCCL, both ways at once and one pair after the other.

    Raises InputError for what only a sweep over MPI has.
    """
    _check_launcher(request)
    usual = FabricAsked()
    if asked.metrics != ("bibandwidth",):
        raise InputError(
            f"over NCCL pairs are measured both ways at once, not {', '.join(asked.metrics)}",
            where="--metric",
            hint="--metric bibandwidth, or leave it out",
        )
    if asked.pairs == "sparse":
        raise InputError(
            "over NCCL a pair is measured after the other: there are no sparse rounds",
            where="--pairs sparse",
            hint="--pairs all, or pairs of ranks: --pairs 0-1,2-3",
        )
    if asked.nics:
        raise InputError("NICs are chosen for ranks over MPI", where="--nics", hint="NCCL_IB_HCA says which NCCL uses")
    for option, is_given in (
        ("--pair-time", asked.pair_s != usual.pair_s),
        ("--pair-limit", asked.limit_s != usual.limit_s),
        ("--seed", asked.seed != usual.seed),
        ("--rounds", asked.rounds is not None),
    ):
        if is_given:
            raise InputError("it belongs to the rounds of a sweep over MPI", where=option, hint="leave it out")
    size_bytes = asked.size_bytes or _USUAL_GPU_BYTES
    return msgspec.structs.replace(
        request,
        collectives=("sendrecv",),
        backend="native-nccl",
        pairs=asked.pairs,
        smallest_bytes=size_bytes,
        largest_bytes=size_bytes,
    )


def _check_launcher(request: Request) -> None:
    if request.launcher == "sbatch":
        raise InputError(
            "a sweep is not submitted as a job: it is started inside of one",
            where="--launcher sbatch",
            hint="sbatch --nodes 8 --wrap 'busbw fabric'",
        )


def _of_job() -> tuple[HostSlots, ...]:
    """Return all hosts of the job around. Raises InputError outside of one."""
    found = capture.allocation()
    if found is None:
        raise InputError(
            "no hosts are named, and this is no job: a fabric is measured between hosts",
            hint="busbw fabric --hosts n[0-7], busbw fabric in a job, or busbw fabric RESULTS",
        )
    return found.hosts


def _check_hosts(request: Request) -> None:
    """Raise InputError for one host, and for one that a list names twice."""
    found = hosts_of(request, "")
    if found is None:
        return
    twice = [each.name for each in found.hosts if found.kind == "host list" and (each.slots or 1) > 1]
    if twice:
        raise InputError(f"{twice[0]} is named twice", where="--hosts", hint="name each host once")
    if len(found.hosts) < 2:
        name = found.hosts[0].name
        raise InputError(
            f"a fabric needs two hosts or more: only {name} is named",
            where=found.how,
            hint="the pairs of the GPUs of one host: busbw fabric --over nccl",
        )


def check(asked: FabricAsked) -> None:
    """Raise InputError for what cannot be measured."""
    for option, value in (("--pair-time", asked.pair_s), ("--pair-limit", asked.limit_s)):
        if not _LEAST_S <= value <= _MOST_S:
            raise InputError(f"seconds from {_LEAST_S:g} to {_MOST_S:g}", where=f"{option} {value:g}")
    check_rounds(asked.rounds)
    if asked.limit_s < 2 * asked.pair_s:
        raise InputError(
            f"a pair is given up after {asked.limit_s:g} s, and its test takes {asked.pair_s:g} s",
            hint=f"--pair-limit {10 * asked.pair_s:g}",
        )
    if asked.size_bytes is not None and not 1 <= asked.size_bytes <= 2**30:
        raise InputError("a message has 1 byte to 1 GiB", where=f"-b {asked.size_bytes}", hint="-b 1M")
    if twice := [each for each in asked.nics if asked.nics.count(each) > 1]:
        raise InputError(f"the NIC {twice[0]} is named twice", where="--nics")
    if wrong := [each for each in asked.nics if not _NIC.fullmatch(each)]:
        raise InputError(f"{wrong[0][:60]!r} is no NIC", where="--nics", hint="--nics mlx5_0,mlx5_1")
    if asked.pairs == "rail" and not asked.nics:
        raise InputError("which NICs are the rails?", where="--pairs rail", hint="--nics mlx5_0,mlx5_1")


def plan_sweep(
    request: Request,
    asked: FabricAsked,
    directory: Path | None,
    base: Path,
    drawing: Drawing,
    *,
    continues: str | None = None,
    earlier: Sequence[Earlier] = (),
    seats: Sequence[PlannedEndpoint] = (),
) -> tuple[Plan, Path]:
    """Return the plan of a sweep, and its run directory. `seats`: of the run that is gone on with, its lost ones too.

    Raises InputError for what cannot be measured on these hosts.
    """
    made, where = make_plan(request_of(request, asked), directory, base)
    names: tuple[str | None, ...] = asked.nics or (None,)
    here = [PlannedEndpoint(node=host, nic=nic) for host in made.placement.hosts for nic in names]
    every = list(seats) or here
    known = _known(flat(Endpoint(node=each.node, rail=each.nic) for each in every), asked)
    places = known.places
    probes = tuple(_probe(each, asked) for each in asked.metrics)
    first = _first(places, asked, probes, drawing)
    fabric = FabricPlan(
        asked=asked,
        seats=tuple(every),
        leaves=places.leaves,
        leaf_names=places.leaf_names,
        groups=places.groups,
        links=known.findings,
        probes=probes,
        first=first,
        of_rank=tuple(every.index(each) for each in here),
        nic_settings=tuple(_nic_settings(nic) for nic in asked.nics),
        continues=continues,
        earlier=tuple(earlier),
    )
    sweeps = tuple(_sweep(made.sweeps[0], each) for each in probes)
    job = msgspec.structs.replace(made.job, timeout_s=made.job.timeout_s + longest_s(fabric))
    return msgspec.structs.replace(made, sweeps=sweeps, job=job, fabric=fabric), where


def longest_s(plan: FabricPlan) -> float:
    """Return how long a sweep takes if every pair of every round takes all of its time."""
    rounds = len(plan.seats) if not plan.first else max(map(len, plan.first))
    each = sum((2 if probe.metric in ONE_WAY else 1) * (probe.limit_s + _ROUND_S) for probe in plan.probes)
    further = max(_FURTHER_ROUNDS, (plan.asked.rounds or 0) - rounds)
    return (rounds + further) * each


def _probe(metric: FabricMetric, asked: FabricAsked) -> PairProbe:
    size_bytes = _SMALL_BYTES if metric in ("latency", "message-rate") else asked.size_bytes or _USUAL_BYTES
    calls = {"latency": _TRIPS, "message-rate": _RATE_WINDOW}.get(metric, _WINDOW)
    return PairProbe(metric=metric, size_bytes=size_bytes, calls=calls, budget_s=asked.pair_s, limit_s=asked.limit_s)


def _sweep(like: Sweep, probe: PairProbe) -> Sweep:
    return msgspec.structs.replace(
        like, collective=_COLLECTIVES[probe.metric], sizes_bytes=(probe.size_bytes,), dtype="uint8", scales_bytes=()
    )


def _known(places: Places, asked: FabricAsked) -> KnownTopology:
    if asked.tree is None:
        return KnownTopology(places=places)
    raw = read_bounded(Path(asked.tree), most_bytes=MOST_BYTES, kind="topology")
    return placed_by_text(places, raw.decode("utf-8", "replace"), asked.tree)


def _first(
    places: Places, asked: FabricAsked, probes: Sequence[PairProbe], drawing: Drawing
) -> tuple[tuple[Round, ...], ...]:
    if asked.pairs in ("all", "rail"):
        return ()
    if asked.pairs == "sparse":
        return tuple(drawn_rounds(places, drawing(f"{asked.seed} {each.metric}")) for each in probes)
    raw = read_bounded(Path(asked.pairs), most_bytes=_MOST_PAIRS_BYTES, kind="file of pairs")
    rounds = disjoint_rounds(read_chosen(raw.decode("utf-8", "replace"), places, asked.pairs))
    return (rounds,) * len(probes)


def read_chosen(text: str, places: Places, where: str) -> tuple[Pair, ...]:
    """Return the pairs that a file names, one a line: `n0,n1`, `n0 n1` or `n0:mlx5_0 n1:mlx5_0`; twice is two tests.

    Raises InputError for a line that is none, a host that is not measured, a host paired with itself, and a pair that
    is there too often.
    """
    numbers = {str(each): number for number, each in enumerate(places.endpoints)}
    found: list[Pair] = []
    times: Counter[Pair] = Counter()
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        at = f"{where}:{number}"
        if len(words) != 2:
            raise InputError(f"{len(words)} words instead of two hosts", where=at, hint="n0,n1")
        for word in words:
            if word not in numbers:
                raise InputError(_unknown(word, places), where=at)
        one, other = sorted(numbers[word] for word in words)
        if places.endpoints[one].node == places.endpoints[other].node:
            raise InputError(f"{words[0][:60]} is paired with itself", where=at)
        times[one, other] += 1
        if times[one, other] > _MOST_REPEATS:
            raise InputError(
                f"{words[0][:60]} and {words[1][:60]} are paired more than {_MOST_REPEATS} times", where=at
            )
        found.append((one, other))
    if not found:
        raise InputError("no pairs in this file", where=where, hint="one pair a line: n0,n1")
    return tuple(found)


def _unknown(word: str, places: Places) -> str:
    node = word.partition(":")[0]
    if not is_host_name(node):
        return f"{word[:60]!r} is no host; --pairs takes {', '.join(PAIRS)}, or a file of pairs"
    return f"{word[:60]} is not among the {len(places.nodes)} hosts to be measured"


def _nic_settings(nic: str) -> tuple[tuple[str, str], ...]:
    """Return the variables that make a rank use this NIC alone: UCX's and NCCL's of devices, Open MPI's of interfaces.

    A device of RDMA is `mlx5_0` to NCCL and `mlx5_0:1` to UCX, which adds the port; a network interface is one to both.
    """
    is_rdma = re.fullmatch(r"(mlx\d|bnxt_re|irdma|efa|rdmap|hfi\d|hns_|qib)\w*", nic) is not None
    if is_rdma:
        return (("UCX_NET_DEVICES", f"{nic}:1"), ("NCCL_IB_HCA", f"={nic}"))
    return (
        ("UCX_NET_DEVICES", nic),
        ("NCCL_SOCKET_IFNAME", f"={nic}"),
        ("OMPI_MCA_btl_tcp_if_include", nic),
    )
