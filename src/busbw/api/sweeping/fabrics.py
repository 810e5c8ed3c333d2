"""A fabric judged: a simulated one, a stored run over pairs, or a table of pairs."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from busbw.api.loading import read
from busbw.api.stored import find, is_import, kind_of
from busbw.api.sweeping.evidence import changed_counters, topology_text
from busbw.api.sweeping.swept import expected_of, metrics_measured, report_of, swept
from busbw.base.errors import InputError
from busbw.base.value import Integer, Value
from busbw.fabric.counters.evidence import counter_notes, set_beside, weighed
from busbw.fabric.ib_links import KnownTopology, placed_by_text
from busbw.fabric.places import Endpoint, Metric, PairTest, Places, flat
from busbw.fabric.procedure import Swept, analysed, sweep
from busbw.fabric.report import ExpectedPair, FabricReport, expectations, report
from busbw.fabric.schedule import check_rounds
from busbw.fabric.simulation import Fault, FaultKind, Noise, Simulated, Topology, drawn_faults, made_places, noise_of
from busbw.fabric.slurm_topology import tree_text
from busbw.fabric.table import pairs_text, read_pairs
from busbw.facts.pair_noise import stored_noise
from busbw.facts.platforms import find_platform
from busbw.machine.capture.sites import site_files
from busbw.model.finding import Finding
from busbw.model.plan import Plan
from busbw.model.run import Measurement, Run
from busbw.store import sources
from busbw.store.directory import read_plan
from busbw.store.files import is_file
from busbw.store.raw import read_records

_COLLECTIVES: dict[str, Metric] = {
    "latency": "latency",
    "bandwidth": "bandwidth",
    "sendrecv": "bibandwidth",
    "bibw": "bibandwidth",
    "message_rate": "message-rate",
}


# A GPU that works for others is slow without being bad.
_OTHER_WORK = "RUN027"


class FabricRequest(Value, kw_only=True, frozen=True):
    """What to judge: either `source` or `topology`."""

    # A run, or a table of pairs.
    source: str | None = None
    metric: Metric | None = None
    # Of a run with several sizes; None: the largest, of latencies and message rates the smallest.
    size_bytes: Integer | None = None
    # Slurm's topology.conf, or the output of ibnetdiscover, iblinkinfo or opensm.
    tree: str | None = None
    # Files with counters of ports, read before the tests and after them.
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    platform: str | None = None
    # What a sound pair reaches, as `380Gb/s`; of several metrics one each.
    expect: tuple[str, ...] = ()
    # Of a simulation.
    topology: Topology | None = None
    nodes: Integer = 64
    fault: FaultKind = "none"
    effect: float | None = None
    # A stored sweep, or a table of pairs, whose repeated tests say how values scatter.
    noise_from: str | None = None
    # The same by the name of what busbw stores of measured sweeps. None, and no `noise_from`: as is assumed.
    noise: str | None = None
    seed: Integer = 1
    # Rounds in all, at most; None: what is usual of so many nodes.
    rounds: Integer | None = None
    # Every pair once instead of sparse rounds; and whether the procedure is not told the leaves.
    full: bool = False
    blind: bool = False


class JudgedFabric(Value, kw_only=True, frozen=True):
    """A report, its leaves as Slurm reads them (None: they are not known), and the sweep itself."""

    report: FabricReport
    tree: str | None
    swept: Swept


def judge_fabrics(asked: FabricRequest) -> tuple[JudgedFabric, ...]:
    """Return which node, NIC, rail or link of a fabric is bad: of a stored sweep once for each metric it measured.

    Raises InputError for what cannot be read or made.
    """
    found = _sweep_of(asked)
    if found is None:
        return (judge_fabric(asked),)
    where, plan = found
    records, _unreadable = read_records(where)
    there = metrics_measured(plan, records)
    wanted = there if asked.metric is None else tuple(each for each in there if each == asked.metric)
    if not wanted:
        what = "no pair has answered in this run" if not there else f"this run has {', '.join(there)}"
        raise InputError(what, where=str(where), hint=f"see what became of it: busbw show {where.name}")
    if asked.size_bytes is not None or asked.tree is not None or asked.before:
        raise InputError(
            "a sweep has its sizes, topology and counters from when it was measured", where=str(where),
            hint="leave --size, --topology and --counters out",
        )  # fmt: skip
    judged = []
    for metric in wanted:
        expected: tuple[ExpectedPair, ...] | None = None
        if asked.expect:
            expected = expected_of(asked.expect, metric, wanted)
        elif asked.platform is not None:
            expected = expectations(find_platform(asked.platform, site_files()).platform, metric)
        outcome = swept(plan, records, metric)
        made = report_of(plan, records, metric, where, expected)
        judged.append(JudgedFabric(report=made, tree=_tree(outcome), swept=outcome))
    return tuple(judged)


def _sweep_of(asked: FabricRequest) -> tuple[Path, Plan] | None:
    """Return the run that is named, and its plan, where it is a sweep."""
    if asked.source is None or asked.source == "-" or is_table(asked.source):
        return None
    where = find(asked.source)
    if is_import(where):
        return None
    plan = read_plan(where)
    return (where, plan) if plan.fabric is not None else None


def is_table(source: str) -> bool:
    """Whether a word names a file of pairs, not a run."""
    path = Path(source)
    return is_file(path) and kind_of(path.parent) is None


def _tree(outcome: Swept) -> str | None:
    return tree_text(outcome.places) if None not in outcome.places.leaves else None


def judge_fabric(asked: FabricRequest) -> JudgedFabric:
    """Return which node, NIC, rail or link of a fabric is bad. Raises InputError for what cannot be read or made."""
    if (asked.source is None) == (asked.topology is None):
        given = (
            "no hosts, no results and no --simulate are given"
            if asked.source is None
            else "both results and --simulate"
        )
        raise InputError(
            given, hint="busbw fabric --hosts n[0-7], busbw fabric last, busbw fabric --simulate fat-tree-2"
        )
    if bool(asked.before) != bool(asked.after) or (asked.before and asked.source is None):
        raise InputError(
            "counters of ports are needed before and after the tests that were made",
            hint="busbw fabric pairs.csv --metric bandwidth --counters before.jsonl after.jsonl",
        )
    findings: tuple[Finding, ...] = ()
    if asked.source is not None:
        outcome, metric, title, known, disturbed = _stored(asked, asked.source)
        truth: tuple[str, ...] = ()
        outcome, findings = _with_evidence(asked, outcome, known)
        findings = (*disturbed, *findings)
    else:
        outcome, metric, title, truth = _simulated(asked)
    made = report(
        outcome, metric, title, expected=_expected(asked, metric), truth=truth, simulated=asked.topology is not None
    )
    return JudgedFabric(report=set_beside(made, findings), tree=_tree(outcome), swept=outcome)


def tests_table(judged: Sequence[JudgedFabric]) -> str:
    """Return the tests of a fabric as the table that `judge_fabric` reads. Raises InputError for several metrics."""
    if len(judged) > 1:
        names = ", ".join(each.report.metric for each in judged)
        raise InputError(f"a table holds one metric, and these are {names}", where="--write-table", hint="--metric")
    return pairs_text(judged[0].swept.places, judged[0].swept.tests, judged[0].report.metric)


def _with_evidence(
    asked: FabricRequest, outcome: Swept, known: KnownTopology | None
) -> tuple[Swept, tuple[Finding, ...]]:
    """Return a sweep whose answers have what counters of ports say of them, and what else links and counters show."""
    links = known.findings if known is not None else ()
    if not asked.before:
        return outcome, links
    fabric = known.fabric if known is not None else None
    found = changed_counters(asked.before, asked.after, fabric, outcome.places.nodes)
    outcome = replace(outcome, answers=weighed(outcome.answers, found))
    return outcome, (*links, *counter_notes(outcome.answers, found))


def _expected(asked: FabricRequest, metric: Metric) -> tuple[ExpectedPair, ...]:
    if asked.expect:
        return expected_of(asked.expect, metric, (metric,))
    if asked.platform is None:
        return ()
    return expectations(find_platform(asked.platform, site_files()).platform, metric)


def _simulated(asked: FabricRequest) -> tuple[Swept, Metric, str, tuple[str, ...]]:
    assert asked.topology is not None
    metric = asked.metric or "bandwidth"
    draws = random.Random(asked.seed)  # noqa: S311 - a simulation, not a secret
    places = made_places(asked.topology, asked.nodes)
    if asked.effect is not None and not 0 < asked.effect < 0.95:
        raise InputError("an effect lies above 0 and below 95 percent", where="--effect", hint="--effect 10")
    faults = drawn_faults(asked.fault, places, draws, asked.effect)
    noise, noise_words = _noise(asked, metric)
    fabric = Simulated(topology=asked.topology, places=places, faults=faults, noise=noise, metric=metric, draws=draws)
    told = flat(places.endpoints) if asked.blind else places
    check_rounds(asked.rounds)
    outcome = sweep(told, fabric.measure, metric, draws, full=asked.full, most=asked.rounds)
    title = f"simulated, nothing was measured: {asked.topology}, {metric}, seed {asked.seed}{noise_words}"
    return outcome, metric, title, tuple(_truth(each, places) for each in faults) or ("no fault",)


def _noise(asked: FabricRequest, metric: Metric) -> tuple[Noise, str]:
    """Return how values scatter, and what the title says of it. Raises InputError for what is not known."""
    if asked.noise is not None and asked.noise_from is not None:
        raise InputError("noise is stored or taken of results, not both", where="--noise", hint="leave one out")
    if asked.noise_from is not None:
        noise = real_noise(asked.noise_from, metric)
        return noise, f", noise of {len(noise.drawn)} repeated tests of {asked.noise_from}"
    if asked.noise is None:
        return Noise(), ""
    stored = stored_noise()
    if asked.noise not in stored:
        raise InputError(
            f"no noise {asked.noise} is stored: {', '.join(stored)}",
            where="--noise",
            hint=f"--noise {next(iter(stored))}",
        )
    if metric not in stored[asked.noise]:
        have = ", ".join(stored[asked.noise])
        raise InputError(
            f"of {asked.noise} noise of {have} is stored, not of {metric}", where="--noise", hint="--noise-from RESULTS"
        )
    found = stored[asked.noise][metric]
    words = f", noise of {len(found.residuals)} repeated tests ({asked.noise}: {found.words})"
    return Noise(drawn=found.drawn), words


def real_noise(source: str, metric: Metric) -> Noise:
    """Return the noise of a stored sweep or of a table of pairs. Raises InputError where it has too few repeats."""
    if source == "-":
        raise InputError(
            "noise is taken of a stored sweep or of a file", where="--noise-from", hint="--noise-from last"
        )
    (judged,) = judge_fabrics(FabricRequest(source=source, metric=metric))
    ends = {str(each): number for number, each in enumerate(judged.swept.places.endpoints)}
    bad = {ends[part] for answer in judged.report.answers for part in answer.parts if part in ends}
    return noise_of(judged.swept.tests, metric, bad, f"--noise-from {source}")


def _truth(fault: Fault, places: Places) -> str:
    if fault.kind in ("leaf-uplink", "cable-static", "cable-destination", "cable-adaptive", "congestion"):
        where = f" at {places.leaf_names[fault.element]}"
    elif fault.kind == "local-link":
        where = f" between {places.leaf_names[fault.element]} and {places.leaf_names[fault.other]}"
    elif fault.kind == "spine-link":
        names = (
            places.leaf_names
            if len(set(places.groups)) < 2
            else [f"group {each}" for each in range(len(places.leaf_names))]
        )
        where = f" between {names[fault.element]} and {names[fault.other]}"
    elif fault.kind == "rail":
        where = f" of {places.endpoints[fault.element].rail}"
    elif fault.kind == "slow":
        where = ""
    else:
        where = (
            f" at {places.endpoints[fault.element] if fault.kind != 'node' else places.endpoints[fault.element].node}"
        )
    effect = "" if fault.kind == "flapping" else f", {100 * fault.effect:.0f} %"
    return f"{fault.kind}{where}{effect}"


def _stored(asked: FabricRequest, source: str) -> tuple[Swept, Metric, str, KnownTopology | None, tuple[Finding, ...]]:
    """Return a table or a run analysed, its metric, title and topology, and what the run says of work beside it."""
    disturbed: tuple[Finding, ...] = ()
    if source == "-" or is_table(source):
        if asked.metric is None:
            raise InputError(
                "a table does not say what its values are",
                where=source,
                hint="--metric latency, bandwidth, bibandwidth or message-rate",
            )
        name = "standard input" if source == "-" else source
        metric = asked.metric
        with sources.opened(source) as file:
            try:
                places, found = read_pairs(file.blocks(), metric, name)
            finally:
                if file.problem is not None:
                    raise InputError(file.problem, where=name)
        tests: Sequence[PairTest] = found
        title = f"{metric} of pairs in {name}"
    else:
        where = find(source)
        if is_import(where):
            raise InputError(
                "this is an import; give the table itself", where=str(where), hint="sender,receiver,value,unit"
            )
        run = read(where)
        places, tests, metric = pairs_of(run, asked)
        disturbed = tuple(each for each in run.findings if each.code == _OTHER_WORK)
        title = f"{metric} of pairs in run {where.name}"
    known = placed_by_text(places, topology_text(asked.tree), asked.tree) if asked.tree is not None else None
    outcome = analysed(known.places if known is not None else places, tests, metric)
    return outcome, metric, title, known, disturbed


def pairs_of(run: Run, asked: FabricRequest) -> tuple[Places, tuple[PairTest, ...], Metric]:
    """Return the pairs of ranks on two hosts that a run measured, of one size and collective.

    An endpoint is a host, or a GPU of it where several ranks are on each; of a run on one host each GPU is one, as
    `host:gpu0`. Raises InputError for a run without pairs.
    """
    one_host = len({each.host for each in run.ranks}) == 1 and all(each.gpu is not None for each in run.ranks)
    hosts = {
        # By its rank: a process may see its own GPU alone, as number 0.
        each.rank: f"{each.host}:gpu{each.rank}" if one_host else each.host
        for each in run.ranks
    }
    measured = [
        each for each in run.measurements if each.pair is not None and each.samples and each.collective in _COLLECTIVES
    ]
    if asked.metric is not None:
        measured = [each for each in measured if _COLLECTIVES[each.collective] == asked.metric]
    if not measured:
        raise InputError(
            "no pairs were measured in this run", hint="busbw run sendrecv --backend native-nccl --pairs all"
        )
    metric = _COLLECTIVES[measured[0].collective]
    sizes = {each.size_bytes for each in measured if _COLLECTIVES[each.collective] == metric}
    usual = min(sizes) if metric in ("latency", "message-rate") else max(sizes)
    size_bytes = asked.size_bytes if asked.size_bytes is not None else usual
    several = len(set(hosts.values())) < len(hosts)
    local: dict[str, int] = {}
    ends: dict[int, Endpoint] = {}
    for rank in sorted(hosts):
        place = local[hosts[rank]] = local.get(hosts[rank], -1) + 1
        ends[rank] = Endpoint(node=hosts[rank], rail=str(place) if several else None)
    numbers: dict[Endpoint, int] = {}
    tests = []
    for each in measured:
        if each.size_bytes != size_bytes or _COLLECTIVES[each.collective] != metric or each.pair is None:
            continue
        if each.pair[0] not in ends or each.pair[1] not in ends or hosts[each.pair[0]] == hosts[each.pair[1]]:
            continue
        one, other = (numbers.setdefault(ends[rank], len(numbers)) for rank in each.pair)
        value = _value(each, metric)
        tests.append(PairTest(sender=one, receiver=other, round=0, value=value if value > 0 else None))
    if not tests:
        raise InputError(
            f"no pair of this run lies on two hosts at {size_bytes} bytes",
            hint="busbw run sendrecv --hosts n[0-3] --pairs all",
        )
    return flat(numbers), tuple(tests), metric


def _value(measured: Measurement, metric: Metric) -> float:
    """Return what a pair reached, in the unit of the metric."""
    if metric == "latency":
        return measured.median_s
    return measured.busbw_Bps / (measured.size_bytes if metric == "message-rate" else 1)
