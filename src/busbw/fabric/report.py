"""What a sweep came to, as a value: verdict, findings, answers, bands, and the figures that views are drawn of."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from busbw.base.text import counted
from busbw.base.units import format_in
from busbw.base.value import Integer, Value
from busbw.fabric.answers import FAR_SLOWER, LEAST_UNASKED, FabricAnswer, Kind
from busbw.fabric.bands import LatencyBand, band_of, typical
from busbw.fabric.inference import LEAST_EFFECT
from busbw.fabric.named_parts import parts_of
from busbw.fabric.pair_table import PairTable, table_of
from busbw.fabric.places import ONE_WAY, UNITS, Metric, members_text, slowness
from busbw.fabric.procedure import Swept
from busbw.fabric.slurm_topology import contradictions
from busbw.fabric.views import FabricViews, views
from busbw.facts.rules import finding
from busbw.judge.explaining.references import latencies
from busbw.model.finding import Finding, Verdict
from busbw.model.platform import Platform, Published

_CODES: dict[Kind, str] = {
    "node": "FAB001", "leaf": "FAB001", "nic": "FAB002", "nic_send": "FAB002", "nic_receive": "FAB002",
    "rail": "FAB003", "leaf_uplink": "FAB004", "spine_link": "FAB004", "crossing": "FAB014", "cable": "FAB005",
    "congestion": "FAB006", "unsteady": "FAB007", "unanswered": "FAB008", "slow": "FAB009",
}  # fmt: skip
# What a whole fabric may lose against a figure that was measured on its kind, and against one that is only stated.
_MEASURED_LOSS = 0.10
_STATED_LOSS = 0.20
_TESTS = {"bandwidth": "MPI bandwidth", "bibandwidth": "MPI bi-directional bandwidth"}
_RATES = {"Gb/s": 1.25e8, "GB/s": 1e9, "MB/s": 1e6}
# Tests that an endpoint needs before it can be called sound.
_LEAST_TESTS = 3
# Of more tests about so many tell the level.
_MOST_READ = 1_000_000


class ExpectedPair(Value, kw_only=True, frozen=True):
    """What a sound pair of this kind reaches, and who says so. Seconds or bytes per second."""

    value: float
    kind: Literal["measured", "stated", "given"]
    source: str


class FabricReport(Value, kw_only=True, frozen=True):
    """A sweep over a fabric, judged. Values in `unit`."""

    title: str
    # Nothing of it was measured.
    simulated: bool
    # What was put into a simulation, in words.
    truth: tuple[str, ...] = ()
    metric: Metric
    unit: str
    nodes: Integer
    endpoints: Integer
    # Whether these are the GPUs of one host.
    are_gpus: bool = False
    leaves: tuple[tuple[str, Integer], ...] = ()
    # Agreement of all pairs with leaves that were inferred from latencies (0 to 1); None: known, or not inferred.
    leaf_agreement: float | None = None
    # Why none were inferred, in words; "": they were, or nothing was there to infer them from.
    leaves_untold: str = ""
    rounds: Integer
    tests: Integer
    unanswered: Integer
    median: float
    # Scatter of one test, and the effect of one endpoint from which this sweep sees it, as shares.
    noise: float
    least_seen: float
    expected: ExpectedPair | None = None
    answers: tuple[FabricAnswer, ...]
    cleared: Integer
    bands: tuple[LatencyBand, ...] = ()
    findings: tuple[Finding, ...]
    verdict: Verdict
    views: FabricViews

    @property
    def ends(self) -> str:
        """What the endpoints are, as a sentence has many of them."""
        return "GPUs" if self.are_gpus else "NICs" if self.endpoints != self.nodes else "nodes"


def expectations(platform: Platform, metric: Metric) -> tuple[ExpectedPair, ...]:
    """Return what is published of a pair of nodes of a platform, best first: of latencies one for each hop count."""
    if metric == "latency":
        return tuple(_expected(value_s, figure) for value_s, figure in latencies(platform.published, 2))
    # What is published of message rates counts many pairs of ranks at once.
    found = [
        _expected(figure.value * _RATES[figure.unit], figure)
        for figure in platform.published
        if figure.test == _TESTS.get(metric) and figure.unit in _RATES and figure.nodes == 2
    ]
    measured = [each for each in found if each.kind == "measured"] or found
    return tuple(sorted(measured, key=lambda each: -each.value))


def _expected(value: float, figure: Published) -> ExpectedPair:
    source = ", ".join(figure.source)
    return ExpectedPair(value=value, kind="measured" if figure.kind == "measured" else "stated", source=source)


def report(
    outcome: Swept, metric: Metric, title: str, *, expected: Sequence[ExpectedPair] = (), truth: tuple[str, ...] = (),
    simulated: bool = False,
) -> FabricReport:  # fmt: skip
    """Return a sweep judged. `expected`: what a sound pair reaches, of latencies one for each band; (): not known."""
    fit, places, unit = outcome.fit, outcome.places, UNITS[metric]
    table = table_of(outcome.tests)
    middle = typical([table.values[at] for at in _answered(table)])
    bands = _with_published(outcome.bands, expected) if metric == "latency" else ()
    level = bands[0].centre_s if bands else middle
    sound = level if not outcome.answers else _level_beside(outcome, bands)
    slow = None
    if sound is not None and expected and not outcome.withheld:
        slow = _slow_everywhere(sound, metric, expected[0], gpus=places.are_gpus)
    answers = (*outcome.answers, *((slow,) if slow is not None else ()))
    counts = sorted(min(one, other) for one, other in zip(fit.sent, fit.received, strict=True))
    enough = counts[len(counts) // 10]
    ways = len(counts) * (2 if metric in ONE_WAY else 1)
    few = not outcome.live and enough < LEAST_UNASKED
    least_seen = 1 - math.exp(-max(fit.bound(enough, ways), FAR_SLOWER if few else 0.0)) if enough else 1.0
    findings = (*(_finding(each) for each in answers), *_contradicting(outcome, metric))
    return FabricReport(
        title=title,
        simulated=simulated,
        truth=truth,
        metric=metric,
        unit=unit,
        nodes=len(places.nodes),
        endpoints=len(places.endpoints),
        are_gpus=places.are_gpus,
        leaves=tuple((name, len(places.members.get(at, ()))) for at, name in enumerate(places.leaf_names)),
        leaf_agreement=outcome.leaf_agreement,
        leaves_untold=outcome.leaves_untold,
        rounds=outcome.rounds,
        tests=len(table),
        unanswered=sum(map(math.isnan, table.values)),
        median=middle,
        noise=fit.noise,
        least_seen=least_seen,
        expected=expected[0] if expected else None,
        answers=answers,
        cleared=len(outcome.cleared),
        bands=bands,
        findings=findings,
        verdict=_verdict(answers, findings, expected, outcome, enough, least_seen, unit, level),
        views=views(outcome),
    )


def _answered(table: PairTable) -> Iterator[int]:
    """Yield the numbers of the tests that have an answer: of all, or of very many one of some."""
    every = max(1, len(table) // _MOST_READ)
    found = [at for at in table.spread(every) if not math.isnan(table.values[at])]
    yield from found or (at for at, value in enumerate(table.values) if not math.isnan(value))


def _level_beside(outcome: Swept, bands: Sequence[LatencyBand]) -> float | None:
    """Return the level of the tests that no answer is about; None where they are too few to have one."""
    named, table = parts_of(outcome.answers, outcome.places), table_of(outcome.tests)
    values = [table.values[at] for at in _answered(table) if named.of(table[at]) is None]
    if bands:
        values = [each for each in values if band_of(each, bands) == 0]
    return typical(values) if len(values) >= _LEAST_TESTS else None


def _slow_everywhere(level: float, metric: Metric, expected: ExpectedPair, *, gpus: bool) -> FabricAnswer | None:
    lost = 1 - slowness(expected.value, metric) / slowness(level, metric)
    if lost <= (_STATED_LOSS if expected.kind == "stated" else _MEASURED_LOSS):
        return None
    unit = UNITS[metric]
    return FabricAnswer(
        kind="slow",
        place="the whole fabric",
        loss=lost,
        confidence="likely",
        evidence=(f"median {format_in(level, unit)}, expected {format_in(expected.value, unit)} ({expected.source})",),
        slow_tests=1,
        of_tests=1,
        otherwise=f"another size of message, a setting of all {'GPUs' if gpus else 'nodes'}, or another machine than "
        "the platform named",
        clears=f"busbw run on two {'GPUs' if gpus else 'nodes'} with the settings of `busbw env recommend`",
    )


def _with_published(bands: Sequence[LatencyBand], expected: Sequence[ExpectedPair]) -> tuple[LatencyBand, ...]:
    """Return the bands with what is published of each, in their order."""
    return tuple(
        LatencyBand(centre_s=each.centre_s, low_s=each.low_s, high_s=each.high_s, tests=each.tests,
                    published_s=expected[at].value if at < len(expected) else None)
        for at, each in enumerate(bands)
    )  # fmt: skip


def _finding(answer: FabricAnswer) -> Finding:
    seen = f"{answer.slow_tests} of {counted(answer.of_tests, 'test')}: " if answer.kind != "slow" else ""
    slower = f"{said.removeprefix(', ')}; " if (said := answer.slower(1)) else ""
    return finding(
        _CODES[answer.kind],
        evidence=f"{slower}{seen}{'; '.join(answer.evidence[:3])}",
        fix=answer.clears,
        confidence=answer.confidence,
        effect=f"what else would explain it: {answer.otherwise}",
        what=answer.place,
    )


def _contradicting(outcome: Swept, metric: Metric) -> tuple[Finding, ...]:
    if metric != "latency" or outcome.leaf_agreement is not None or None in outcome.places.leaves or not outcome.bands:
        return ()
    own = outcome.fit.senders
    numbers = [
        band_of(each.value * math.exp(-own[each.sender] - own[each.receiver]), outcome.bands) if each.value else -1
        for each in outcome.tests
    ]
    hosts = contradictions(outcome.places, outcome.tests, numbers)
    if not hosts:
        return ()
    return (finding("FAB010", evidence=f"latencies of {members_text(hosts)} fall into the bands of another leaf",
                    hosts=counted(len(hosts), "host"), confidence="likely"),)  # fmt: skip


def _verdict(
    answers: Sequence[FabricAnswer], findings: Sequence[Finding], expected: Sequence[ExpectedPair], outcome: Swept,
    enough: int, least_seen: float, unit: str, level: float,
) -> Verdict:  # fmt: skip
    codes = tuple(dict.fromkeys(each.code for each in findings))
    if answers:
        first = answers[0]
        more = f", and {counted(len(answers) - 1, 'other place')}" if len(answers) > 1 else ""
        words = f"consistent with: {first.place}{first.slower(0)} ({first.confidence}){more}"
        return Verdict(outcome="slow", sentence=f"slow: {words}", because=codes)
    if outcome.withheld:
        return Verdict(outcome="cannot_tell", sentence=f"cannot tell: {outcome.withheld}", because=codes)
    rounds = counted(outcome.rounds, "round")
    if enough < _LEAST_TESTS:
        few = f"a tenth of the endpoints have fewer than {_LEAST_TESTS} tests each way in {rounds}"
        sentence = f"cannot tell: {few}; five rounds of disjoint pairs are enough"
        return Verdict(outcome="cannot_tell", sentence=sentence, because=codes)
    if outcome.cleared and not outcome.live and enough < LEAST_UNASKED:
        open_ = counted(len(outcome.cleared), "place")
        few = f"{open_} may be slow, of fewer than {LEAST_UNASKED} tests each way in {rounds}, and was not tested again"
        return Verdict(outcome="cannot_tell", sentence=f"cannot tell: {few}", because=codes)
    parts = "GPU or link between GPUs" if outcome.places.are_gpus else "node, NIC, rail or link"
    same = f"no {parts} differs by {100 * max(least_seen, LEAST_EFFECT):.0f} % or more in {rounds}"
    if not expected:
        return Verdict(
            outcome="cannot_tell",
            sentence=f"cannot tell whether all of it is slow: {same}; --platform or --expect says what to expect",
            because=codes,
        )
    against = f"{format_in(level, unit)} against {format_in(expected[0].value, unit)} expected"
    return Verdict(outcome="ok", sentence=f"ok: {same}; {against}", because=codes)
