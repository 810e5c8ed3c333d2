"""One size explained: what is possible, what is expected and by whom, where the rest went, and the verdict."""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from busbw.base.text import counted
from busbw.judge.explaining.budgeting import budget, limiter
from busbw.judge.explaining.concluding import Applies, Suspect, applies, conditions, suspect
from busbw.judge.explaining.expecting import Expectation, Knowledge, expectation
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.outcome import OF_BAND, Judged, band_of, bands_of, is_below_model, verdict_of
from busbw.judge.explaining.predicting import predictions
from busbw.judge.explaining.references import Reference
from busbw.judge.explaining.scenarios import ABOVE, From, Scenario, scenarios
from busbw.judge.explaining.series import SizeSample
from busbw.judge.explaining.sources import SYMMETRIC
from busbw.limits.algorithms import COLLECTIVES
from busbw.limits.message_rate import NAME as MESSAGE_RATE
from busbw.limits.message_rate import messages_per_s, pairs_needed
from busbw.model.finding import Verdict
from busbw.model.limit import Bound
from busbw.model.platform import Published
from busbw.model.verdict import BudgetStep, Condition, Expected, SizeExplanation

# Sound rings over NVLink of Hopper use 16 to 24; four of them cannot fill its links.
_FEW_CHANNELS = 4
# Two H100 and two H200 gave 4 to 9 % more with 32 than with the 24 that NCCL takes there (docs/measurements).
_MORE_CHANNELS = 32
# Of two GPUs there is one pair, which nothing can be compared with.
_PAIR = 2
_PAIRS = "busbw run sendrecv --backend native-nccl -b 64M -e 64M --pairs"
_UNITS = ((2**30, "G"), (2**20, "M"), (2**10, "K"))


def next_step(judged: Judged, verdict: Verdict, known_machine: KnownMachine, seems: Suspect | None) -> str | None:
    """Return one line to follow; None where nothing is to be done. `seems`: the network that it seems to have used."""
    if verdict.outcome == "wrong":
        return "measure nothing with this library and these settings before the cause is found"
    if verdict.outcome == "slow":
        return _of_network(known_machine, seems) or _of_choice(judged) or _unexplained(judged)
    if verdict.outcome == "cannot_tell":
        return _cannot_tell(judged, known_machine)
    return None


def _of_network(known_machine: KnownMachine, seems: Suspect | None) -> str | None:
    if seems is None:
        return None
    if seems.way == "shm":
        return (
            "let NCCL use the links: unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; where they are not set, "
            "`busbw doctor LOG` and `busbw doctor --here` say why it does not"
        )
    if seems.way == "fallback":
        return (
            f"make NCCL find the fabric{_plugin(known_machine)}; NCCL_DEBUG=INFO prints which NET it uses, and "
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


def _plugin(known_machine: KnownMachine) -> str:
    platform = known_machine.platform
    if platform is None or platform.fabric.plugin is None:
        return ""
    return f" ({platform.fabric.kind} through {platform.fabric.plugin}; `busbw env recommend --platform {platform.id}`)"


def _cannot_tell(judged: Judged, known_machine: KnownMachine) -> str | None:
    series = judged.series
    if judged.sample.spoiled is not None:
        return None
    if not judged.scenarios and series.collective != "latency":
        return _say_more(judged, known_machine)
    if is_below_model(judged):
        sound = "hold it against a run of the same machine when it was sound: `busbw compare SOUND THIS`"
        return f"{_unexplained(judged)}; and {sound}"
    if judged.scenarios and not judged.possible:
        return "say on what it ran: --nodes, --gpus-per-node, --platform or --host"
    return _more_pairs(judged, known_machine) if series.collective == MESSAGE_RATE else _of_regime(judged)


def _of_regime(judged: Judged) -> str | None:
    if len(judged.possible) > 1 and any(judged.expected):
        return (
            "say whether NVLink SHARP was on: --nvls on, or --nvls off, or the algorithm: --algorithm NAME; NCCL_DEBUG="
            "INFO with NCCL_DEBUG_SUBSYS=TUNING prints it, and `busbw run --backend native-nccl` records it"
        )
    if judged.likely is None or judged.likely.regime != "bandwidth":
        return "hold small messages against a run of the same machine when it was sound: `busbw compare SOUND THIS`"
    return None


def _more_pairs(judged: Judged, known_machine: KnownMachine) -> str | None:
    """Return how many pairs of this rate the NICs could serve."""
    series, sample = judged.series, judged.sample
    rates, _ = known_machine.rates(series)
    most_per_s = messages_per_s(rates) if rates is not None else None
    if most_per_s is None or series.nodes is None or judged.highest is None:
        return None
    if judged.highest.limited_by != "messages":
        return None
    pairs = series.ranks // 2
    seen_per_s = pairs / sample.time_s
    needed = pairs_needed(series.nodes / 2 * most_per_s, pairs=pairs, seen_per_s=seen_per_s)
    return (
        f"{counted(pairs, 'pair')} sent {seen_per_s / pairs / 1e6:.3g} M messages/s each: {needed} such pairs would "
        f"reach what the NICs can send; measure with more ranks on each node until the rate no longer rises"
    )


def _say_more(judged: Judged, known_machine: KnownMachine) -> str | None:
    series = judged.series
    if series.collective not in COLLECTIVES:
        # Nothing that could be said would give it a bound.
        return None
    is_known = known_machine.platform is not None or known_machine.hardware is not None or series.gpu_name is not None
    if series.nodes is None and is_known:
        return "say on how many nodes it ran: --nodes N"
    if series.nodes is None:
        return "say on what it ran, and on how many nodes: --platform ID (`busbw platform list`), --nodes N"
    return (
        "say on what it ran: --platform ID (`busbw platform list`), or --host SNAPSHOT of `busbw probe`; and how: "
        "--nodes, --gpus-per-node"
    )


_ORDER: dict[Applies, int] = {"yes": 0, "if": 1, "no": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Against:
    """One series, and everything its sizes are held against."""

    known: Knowledge
    bounds: tuple[Bound, ...]
    # Why there is none.
    no_bound: str | None
    published: tuple[Published, ...]


def explain_size(against: Against, sample: SizeSample) -> tuple[SizeExplanation, Suspect | None]:
    """Return one size explained, and the way it seems to have taken if that is why it is slow."""
    known = against.known
    possible = scenarios(known.series, sample, known.rates, against.bounds)
    expected = [expectation(known, sample, scenario) for scenario in possible]
    judged = Judged(
        series=known.series,
        sample=sample,
        scenarios=possible,
        # A model speaks only where nothing that was measured does.
        expected=expected if any(expected) else predictions(known, sample, possible),
        published=against.published,
        no_bound=against.no_bound or f"no bound is known for {sample.algorithm or 'what was used'} on such nodes",
    )
    verdict = verdict_of(judged)
    seems = suspect(judged, known.references) if verdict.outcome == "slow" else None
    if verdict.outcome == "slow":
        likely = judged.likely
        is_large = likely is not None and likely.regime == "bandwidth"
        code = "PERF012" if seems is not None else "PERF011" if is_large else "PERF014"
        cause = f"; as fast as {seems.words}" if seems is not None else ""
        verdict = structs.replace(verdict, sentence=f"{verdict.sentence[:-1]}{cause}.", because=(code,))
    return _explanation(against, judged, verdict, next_step(judged, verdict, known.known_machine, seems)), seems


def _explanation(against: Against, judged: Judged, verdict: Verdict, step: str | None) -> SizeExplanation:
    sample, likely, highest = judged.sample, judged.likely, judged.highest
    bounds = _bounds(judged)
    taken = _budget(against, judged, bounds)
    by_time = likely is not None and likely.regime == "latency"
    band = band_of(judged)
    one = judged.possible[0] if len(judged.possible) == 1 else None
    algorithm = sample.algorithm or (bounds[0].algorithm if len(bounds) == 1 else None)
    return SizeExplanation(
        point=sample.point,
        line=sample.line,
        size_bytes=sample.size_bytes,
        time_s=sample.time_s,
        low_s=sample.low_s,
        high_s=sample.high_s,
        busbw_Bps=sample.busbw_Bps,
        algbw_Bps=sample.algbw_Bps,
        algorithm=algorithm,
        protocol=sample.protocol,
        algorithm_from=_known_from(judged, one),
        candidates=tuple(bound.algorithm for bound in bounds),
        regime=likely.regime if likely is not None else "latency" if band is not None else None,
        ceiling_Bps=highest.busbw_Bps if highest is not None else None,
        ceiling_words=_ceiling_words(highest),
        limited_by="latency" if by_time or band is not None else limiter(taken),
        band_low_Bps=likely.sound_Bps if likely is not None and not by_time else None,
        band_high_Bps=likely.busbw_Bps if likely is not None and not by_time else None,
        band_time_s=band[0] if band is not None else likely.time_s if likely is not None and by_time else None,
        expected=tuple(sorted(_expected(against, judged), key=lambda each: _ORDER[each.applies])),
        budget=taken,
        verdict=verdict,
        next_step=step,
    )


def _known_from(judged: Judged, one: Scenario | None) -> From | None:
    if judged.sample.algorithm is not None:
        return "nccl"
    if one is None:
        return None
    if len(judged.scenarios) > 1 and len(one.bounds) == 1:
        return "physics"
    return one.known_from or ("physics" if len(_carrying(judged, one)) == 1 < len(one.bounds) else None)


def _carrying(judged: Judged, scenario: Scenario) -> tuple[Bound, ...]:
    """Return the algorithms of a scenario that can carry what was measured."""
    least_Bps = judged.sample.busbw_Bps
    return tuple(bound for bound in scenario.bounds if (bound.busbw_Bps or 0.0) * ABOVE >= least_Bps)


def _bounds(judged: Judged) -> tuple[Bound, ...]:
    """Return the algorithms that it may have been, the one with the highest bound first."""
    found = {bound.algorithm: bound for each in judged.possible for bound in _carrying(judged, each)}
    return tuple(sorted(found.values(), key=lambda bound: -(bound.busbw_Bps or 0.0)))


def _ceiling_words(highest: Bound | None) -> str | None:
    if highest is None:
        return None
    line = next((line for line in highest.lines if line.limits), None)
    return f"{highest.algorithm}: {line.formula}" if line is not None else f"{highest.algorithm}: {highest.why}"


def _budget(against: Against, judged: Judged, bounds: tuple[Bound, ...]) -> tuple[BudgetStep, ...]:
    """Return the budget, if it was the algorithm that comes nearest to the result from above."""
    lowest = min(bounds, key=lambda bound: bound.busbw_Bps or 0.0, default=None)
    if lowest is None or against.known.rates is None:
        return ()
    curve = against.known.curve(lowest.algorithm)
    return budget(against.known.series, judged.sample, lowest, against.known.rates, curve)


def _expected(against: Against, judged: Judged) -> Iterator[Expected]:
    alone = len(judged.scenarios) == 1
    least_Bps: dict[Reference, float] = {}
    for scenario, expected in zip(judged.scenarios, judged.expected, strict=True):
        for bound in scenario.bounds:
            yield _of_bound(bound, alone=alone and len(scenario.bounds) == 1)
        if expected is not None and expected.is_exact:
            # The references say it themselves, each with its conditions.
            least_Bps.update(dict.fromkeys(expected.references, expected.sound_Bps))
        elif expected is not None:
            yield _of_expectation(expected, alone=alone)
    yield from _of_bands(judged)
    for reference in against.known.references:
        if reference.collective == judged.series.collective:
            yield _of_reference(reference, judged, least_Bps.get(reference))


def _of_bound(bound: Bound, *, alone: bool) -> Expected:
    line = next((line for line in bound.lines if line.limits), None)
    figures = f": {line.formula}, {line.figures}" if line is not None else ""
    return Expected(
        title=f"ceiling of {bound.algorithm}{figures}",
        basis="physical",
        busbw_Bps=bound.busbw_Bps,
        applies="yes" if alone else "if",
        conditions=() if alone else (_unknown("algorithm", bound.algorithm),),
        source=bound.source,
    )


def _of_expectation(expected: Expectation, *, alone: bool) -> Expected:
    by_time = expected.regime == "latency"
    return Expected(
        title=expected.words,
        basis=expected.basis,
        busbw_Bps=None if by_time else expected.busbw_Bps,
        time_s=expected.time_s if by_time else None,
        least_Bps=None if by_time else expected.sound_Bps,
        most_s=expected.time_s * expected.busbw_Bps / expected.sound_Bps if by_time else None,
        applies="yes" if alone else "if",
        conditions=() if alone else (_unknown("scenario", expected.scenario.title),),
        source=expected.source,
    )


def _of_bands(judged: Judged) -> Iterator[Expected]:
    own = band_of(judged)
    for band_s, figure in bands_of(judged):
        is_own = own is not None and figure == own[1]
        yield Expected(
            title=figure.conditions or "small messages",
            basis=figure.kind,
            time_s=band_s,
            most_s=OF_BAND * band_s,
            applies="yes" if is_own else "if",
            conditions=() if is_own else (_unknown("pairs", "as far apart"),),
            source=figure.source,
        )


def _unknown(name: str, asked: str) -> Condition:
    return Condition(name=name, asked=asked, here=None, outcome="unknown")


def _of_reference(reference: Reference, judged: Judged, least_Bps: float | None) -> Expected:
    series, sample = judged.series, judged.sample
    held = [conditions(reference, series, sample, scenario) for scenario in judged.possible or judged.scenarios]
    held = held or [conditions(reference, series, sample, None)]
    ways = [applies(each) for each in held]
    best = min(range(len(ways)), key=lambda place: (_ORDER[ways[place]], _differing(held[place])))
    way: Applies = "if" if ways[best] == "yes" and any(each != "yes" for each in ways) else ways[best]
    nearest = min(reference.points, key=lambda point: abs(point[0] - sample.size_bytes))
    return Expected(
        title=reference.words,
        basis=reference.kind,
        busbw_Bps=nearest[1],
        least_Bps=nearest[1] if reference.kind == "threshold" else least_Bps,
        applies=way,
        conditions=held[best],
        doubt=reference.doubt,
        source=reference.source,
    )


def _differing(held: tuple[Condition, ...]) -> int:
    return sum(condition.outcome == "differs" for condition in held)
