"""A sweep that was planned: its places, its first rounds, and the whole of it again from what its rounds measured.

The procedure is decided by the plan's seed and the values: given the rounds that are on disk it asks for the same ones
again, so that a sweep that was cut off goes on where it was, and a stored one is judged word for word.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from busbw.base.errors import InputError
from busbw.fabric.answers import ENDPOINT_KINDS, FabricAnswer
from busbw.fabric.places import Draws, Endpoint, Metric, Pairing, PairTest, Places
from busbw.fabric.procedure import Measure, Swept, analysed, sweep
from busbw.fabric.schedule import Pair, Round, count_full_rounds, sparse_rounds
from busbw.model.fabric import Earlier, FabricPlan, PairSeen
from busbw.model.record import RoundMeasured

# Called with what a sweep draws its rounds from: a text.
Drawing = Callable[[str], Draws]
Rounds = dict[tuple[Metric, int], tuple[PairSeen, ...]]


class NotMeasured(Exception):  # noqa: N818 - no error: the end of what is on disk
    """A round was asked for that nobody has measured."""


def places_of(plan: FabricPlan) -> Places:
    """Return the places of a planned sweep."""
    endpoints = tuple(Endpoint(node=each.node, rail=each.nic) for each in plan.seats)
    return Places(endpoints=endpoints, leaves=plan.leaves, leaf_names=plan.leaf_names, groups=plan.groups)


def rounds_of(records: Iterable[RoundMeasured | Earlier]) -> Rounds:
    """Return what each round measured, by metric and number; of a round that is there twice the first counts."""
    found: Rounds = {}
    for each in records:
        found.setdefault((each.metric, each.round), each.tests)
    return found


def first_of(plan: FabricPlan, metric: Metric) -> tuple[Round, ...] | None:
    """Return the rounds that a plan begins with; None: every pair once."""
    if not plan.first:
        return None
    return plan.first[[each.metric for each in plan.probes].index(metric)]


def rounds_before_retests(plan: FabricPlan, metric: Metric) -> int:
    """Return how many rounds a plan begins with: what follows are retests."""
    first = first_of(plan, metric)
    return len(first) if first is not None else count_full_rounds(places_of(plan))


# Other work has the core of a rank so often a second that a rate of small messages follows it; a core of one's own is
# left to the kernel a few times.
_BUSY_PER_S, _LEAST_BUSY = 50.0, 4
# From such a share of all tests on nothing is named, and of the tests of one endpoint not that one.
_BUSY_EVERYWHERE, _BUSY_HERE = 0.25, 0.5


def beside_other_work(outcome: Swept, tests: Iterable[PairSeen]) -> Swept:
    """Return a sweep of message rates without answers that other work on the cores explains.

    `tests`: all of the sweep. Where cores are shared, chance decides whose ranks had them less.
    """
    made: Counter[int] = Counter()
    busy: Counter[int] = Counter()
    for each in tests:
        if each.taken_off is not None and each.wall_s:
            for seat, times in zip((each.sender, each.receiver), each.taken_off, strict=True):
                made[seat] += 1
                busy[seat] += times >= max(_LEAST_BUSY, _BUSY_PER_S * each.wall_s)
    everywhere = busy.total() > _BUSY_EVERYWHERE * made.total()
    names = {str(each): at for at, each in enumerate(outcome.places.endpoints)}
    kept: list[FabricAnswer] = []
    held: list[FabricAnswer] = []
    for answer in outcome.answers:
        seats = [names[part] for part in answer.parts if part in names]
        own = sum(busy[seat] for seat in seats) >= _BUSY_HERE * max(sum(made[seat] for seat in seats), 1)
        explained = answer.kind != "unanswered" if everywhere else answer.kind in ENDPOINT_KINDS and own
        (held if explained else kept).append(answer)
    if not held and not everywhere:
        return outcome
    who = "the ranks" if everywhere else f"the rank of {held[0].place}"
    seats = list(made) if everywhere else [names[part] for part in held[0].parts if part in names]
    counts = f"{sum(busy[seat] for seat in seats)} of {sum(made[seat] for seat in seats)} tests"
    said = f"other work had the core of {who} in {counts}, which a message rate follows more than the network"
    return replace(outcome, answers=tuple(kept), withheld=f"{said}; a core for each rank tells")


def disjoint_rounds(pairs: Sequence[Pair]) -> tuple[Round, ...]:
    """Return pairs that somebody chose in as few rounds as come of taking each into the first that has room."""
    rounds: list[list[Pair]] = []
    # The rounds that each endpoint is in, a bit each: millions of pairs of thousands of hosts take seconds.
    busy: defaultdict[int, int] = defaultdict(int)
    for pair in pairs:
        one, other = pair
        taken = busy[one] | busy[other]
        first = ~taken & (taken + 1)
        at = first.bit_length() - 1
        if at == len(rounds):
            rounds.append([])
        rounds[at].append(pair)
        busy[one] |= first
        busy[other] |= first
    return tuple(tuple(each) for each in rounds)


def drawn_rounds(places: Places, draws: Draws) -> tuple[Round, ...]:
    """Return the sparse rounds that a sweep with such random numbers begins with."""
    return tuple(sparse_rounds(places, draws))


def replayed(known: Rounds, metric: Metric, measure: Measure) -> Measure:
    """Return a measurement that gives what is known of a round, and asks `measure` for what is not."""

    def measured(pairs: Sequence[Pairing], number: int) -> Sequence[float | None]:
        tests = known.get((metric, number), ())
        if [(each.sender, each.receiver) for each in tests] == [(each.sender, each.receiver) for each in pairs]:
            return tuple(each.value for each in tests)
        return measure(pairs, number)

    return measured


def carried_out(plan: FabricPlan, metric: Metric, drawing: Drawing, measure: Measure) -> Swept:
    """Carry out the sweep of one metric: measure the rounds that the plan and the values ask for."""
    first = first_of(plan, metric)
    draws, most = drawing(plan.seed_of(metric)), plan.asked.rounds
    return sweep(places_of(plan), measure, metric, draws, full=first is None, first=first, most=most)


def recorded(plan: FabricPlan, metric: Metric, drawing: Drawing, rounds: Rounds) -> Swept:
    """Return a sweep from its rounds, whole or as far as it came. Raises InputError where no pair has answered."""
    if not any(each.value is not None for _number, tests in _numbered(rounds, metric) for each in tests):
        raise InputError(f"no pair has answered: there is no {metric} to judge", hint="see the run: busbw show")
    try:
        return carried_out(plan, metric, drawing, replayed(rounds, metric, _nothing))
    except NotMeasured:
        tests = tuple(
            PairTest(sender=each.sender, receiver=each.receiver, round=number, value=each.value)
            for number, tests in _numbered(rounds, metric)
            for each in tests
        )
        return analysed(places_of(plan), tests, metric)


def _nothing(_pairs: Sequence[Pairing], number: int) -> Sequence[float | None]:
    raise NotMeasured(f"round {number}")


def _numbered(rounds: Rounds, metric: Metric) -> Iterator[tuple[int, tuple[PairSeen, ...]]]:
    return ((number, tests) for (of, number), tests in sorted(rounds.items()) if of == metric)
