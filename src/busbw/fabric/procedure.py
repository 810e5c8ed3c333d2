"""The procedure: sparse rounds, a fit, rounds about what is suspicious, and answers. It measures through a function.

The function gets the pairs of one round, each in both directions, and the number of the round; it returns one value a
pair, None where there was no answer. Real hosts and the simulation are the same to it.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from busbw.fabric.answers import TO_ASK, TO_NAME, FabricAnswer, Least, Suspicion, is_endpoint
from busbw.fabric.bands import LatencyBand, LeavesInferred, band_of, fabric_bands, inferred_leaves
from busbw.fabric.between import SHARED, leads_between
from busbw.fabric.inference import Fit, extended, fit
from busbw.fabric.naming import confirmed, is_slow_by_itself, suspicions, wanted_pairs
from busbw.fabric.pair_table import UNKNOWN_HOPS, PairTable, table_of
from busbw.fabric.places import ONE_WAY, UNITS, Draws, Metric, Pairing, PairTest, Places
from busbw.fabric.schedule import RETEST_ROUNDS, Pair, Round, full_rounds, most_rounds, retest_round, sparse_rounds

Measure = Callable[[Sequence[Pairing], int], Sequence[float | None]]
# Suspicions that one sweep looks at again, as a share of the endpoints: the others must be known-good partners.
_MOST_SUSPECTS = 0.25
_BETWEEN = ("cable", *SHARED, "unsteady")
_ALONE_PAIRS = 2
# Of three suspicions at most, so that the fabric is as good as idle.
_MOST_ALONE = 3


@dataclass(frozen=True, kw_only=True)
class Swept:
    """What a sweep came to."""

    places: Places
    tests: Sequence[PairTest]
    rounds: int
    fit: Fit
    answers: tuple[FabricAnswer, ...]
    # Suspicious at first, and not confirmed.
    cleared: tuple[Suspicion, ...]
    bands: tuple[LatencyBand, ...] = ()
    # How far all pairs agree with leaves that were inferred; None: they were not.
    leaf_agreement: float | None = None
    # Why what looked bad is not named, in words; "": nothing was held back.
    withheld: str = ""
    # Why no leaves were inferred, in words; "": they were, or nothing was there to infer them from.
    leaves_untold: str = ""
    # Whether suspicions could be asked again: not of what was measured before.
    live: bool = True


def sweep(
    places: Places,
    measure: Measure,
    metric: Metric,
    draws: Draws,
    *,
    full: bool = False,
    first: Iterable[Round] | None = None,
    most: int | None = None,
) -> Swept:
    """Measure a fabric in rounds and return what is bad about it.

    `full`: every pair once before the retests; `first`: these rounds before them. `most`: rounds in all, None: what is
    usual of so many nodes; three rounds of retests are made in any case where something is open.
    """
    rounds = first if first is not None else full_rounds(places) if full else sparse_rounds(places, draws)
    tests: list[PairTest] = []
    number = 0
    for each in rounds:
        tests += _measured(each, number, measure, metric)
        number += 1
    look = _looked(places, PairTable(tests), metric, TO_ASK)
    last = max(number + RETEST_ROUNDS, most_rounds(len(places.nodes)) if most is None else most)
    asked = _Asked()
    while number < last and (open_ones := _open(look, tests, metric, asked)):
        pairs, alone = asked.round_about(open_ones, look, draws, is_last=number + 1 == last)
        tests += _measured(pairs, number, measure, metric, retest=True, alone=alone)
        number += 1
        look = _looked_again(look, PairTable(tests), metric)
    return _concluded(look, tests, number, metric)


def analysed(places: Places, tests: Sequence[PairTest], metric: Metric) -> Swept:
    """Return what tests that were made before say; there is nothing to ask them again."""
    table = table_of(tests)
    return replace(
        _concluded(_looked(places, table, metric, TO_NAME), table, len(set(table.rounds)), metric), live=False
    )


def _measured(
    pairs: Round, number: int, measure: Measure, metric: Metric, *, retest: bool = False, alone: bool = False
) -> list[PairTest]:
    asked = [Pairing(sender=one, receiver=other) for one, other in pairs]
    if metric in ONE_WAY:
        asked += [Pairing(sender=other, receiver=one) for one, other in pairs]
    return [
        PairTest(sender=pair.sender, receiver=pair.receiver, round=number, value=value, retest=retest, alone=alone)
        for pair, value in zip(asked, measure(asked, number), strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class _Look:
    """The places with their leaves as far as known, the fit, and what is suspicious."""

    places: Places
    fit: Fit
    suspicions: tuple[Suspicion, ...]
    # What one pair says of two leaves: too little to suspect them.
    leads: tuple[Suspicion, ...] = ()
    # Of latencies; and whether they, not leaves, stand for the hops of a test.
    bands: tuple[LatencyBand, ...] = ()
    by_band: bool = False
    inferred: LeavesInferred = field(default_factory=LeavesInferred)

    def kinds(self, tests: Sequence[PairTest]) -> list[int]:
        """Return the hop class of each test."""
        if not self.by_band:
            return [UNKNOWN_HOPS if (hops := self.places.hops(each.sender, each.receiver)) is None else hops
                    for each in tests]  # fmt: skip
        own = [self.fit.senders[each.sender] + self.fit.senders[each.receiver] for each in tests]
        return [band_of(each.value * math.exp(-shift), self.bands) if each.value else -1
                for each, shift in zip(tests, own, strict=True)]  # fmt: skip


def _looked(places: Places, tests: PairTable, metric: Metric, least: Least) -> _Look:
    if metric != "latency":
        fitted = fit(places, tests, metric)
        found = suspicions(places, tests, fitted, least)
        return _Look(places=places, fit=fitted, suspicions=found, leads=tuple(leads_between(places, tests, fitted)))
    _, numbers = fabric_bands(tests)
    first = fit(places, tests, metric, numbers)
    own = [first.senders[each.sender] + first.senders[each.receiver] for each in tests]
    bands, numbers = fabric_bands(tests, own)
    inferred = inferred_leaves(places, tests, numbers) if None in places.leaves else LeavesInferred()
    known = inferred.places if inferred.places is not None else places
    by_band = None in known.leaves
    fitted = fit(known, tests, metric, numbers if by_band else None)
    found = suspicions(known, tests, fitted, least)
    return _Look(places=known, fit=fitted, suspicions=found, bands=bands, by_band=by_band, inferred=inferred)


def _looked_again(before: _Look, tests: PairTable, metric: Metric) -> _Look:
    """Return the same with what lies between endpoints and is suspicious by now: a fit of all tests so far tells.

    A cable is hidden as long as its leaf or its ends are taken for what is bad. The terms stay those of the first
    rounds: tests that are mostly about one link would move those of its ends.
    """
    again = _looked(before.places, tests, metric, TO_ASK)
    known = {each.subject for each in before.suspicions}
    suspects = {each.elements[0] for each in before.suspicions if is_endpoint(each)}
    new = [
        replace(each, since=len(tests)) for each in again.suspicions
        if each.kind in _BETWEEN and each.subject not in known
        # What a retest of another did to its partner is no sign of the partner.
        and (each.kind != "unsteady" or is_slow_by_itself(each, before.places, tests, again.fit, suspects))
    ]  # fmt: skip
    # What congests a leaf comes and goes at all of its hosts.
    shared = {each.subject for each in new if each.kind == "leaf_uplink"}
    told = {each.subject for each in again.suspicions}
    steady = [
        each for each in before.suspicions if not (shared and each.kind == "unsteady" and each.subject not in told)
    ]
    more = {each.subject: each.pairs for each in again.suspicions if each.kind == "cable"}
    kept = [replace(each, pairs=tuple(dict.fromkeys((*each.pairs, *more.get(each.subject, ())))))
            if each.kind == "cable" else each for each in steady]  # fmt: skip
    return replace(before, suspicions=(*kept, *new), leads=again.leads)


class _Asked:
    """What the retests so far were about."""

    def __init__(self) -> None:
        # Rounds among others, of each suspicion; and those that were tested alone.
        self.rounds: Counter[Hashable] = Counter()
        self.alone: set[Hashable] = set()
        self._met: set[Pair] = set()

    def enough(self, each: Suspicion) -> bool:
        """Whether there are as many retests of a suspicion as name or clear it."""
        if each.kind in SHARED:
            return self.rounds[each.subject] >= RETEST_ROUNDS - 1 and each.subject in self.alone
        return self.rounds[each.subject] >= RETEST_ROUNDS

    def round_about(
        self, open_ones: Sequence[Suspicion], look: _Look, draws: Draws, *, is_last: bool
    ) -> tuple[Round, bool]:
        """Return a round about what is open, and whether hardly anything else runs in it."""
        endpoints = len(look.places.endpoints)
        looked = sorted(open_ones, key=lambda each: (each.kind != "cable", -each.effect))[
            : max(1, int(_MOST_SUSPECTS * endpoints))
        ]
        suspects = {each.elements[0] for each in look.suspicions if is_endpoint(each)}
        good = [each for each in range(endpoints) if each not in suspects]
        shared = [
            each for each in looked if each.kind in SHARED and each.subject not in self.alone and each not in look.leads
        ]
        alone = [each for each in shared if is_last or self.rounds[each.subject] >= RETEST_ROUNDS - 1][:_MOST_ALONE]
        about = alone or [each for each in looked if each.kind not in SHARED or each.subject not in self.alone]
        wanted = [wanted_pairs(each, look.places, good, draws, self._met) for each in about]
        if alone:
            wanted = [pairs[-_ALONE_PAIRS:] for pairs in wanted]
            self.alone.update(each.subject for each in alone)
        else:
            self.rounds.update(each.subject for each in about)
        found = retest_round(wanted, look.places, () if alone else good, draws)
        self._met.update(found)
        return found, bool(alone)


def _open(look: _Look, tests: Sequence[PairTest], metric: Metric, asked: _Asked) -> list[Suspicion]:
    """Return what another round would tell more about."""
    found = [each for each in look.suspicions if not asked.enough(each)]
    # A link that comes and goes may have been sound in all retests: it is open as long as there are rounds.
    if any(each.kind == "unsteady" and asked.enough(each) for each in look.suspicions):
        cleared = _told(look, PairTable(tests), metric)[2]
        found += [each for each in cleared if each.kind == "unsteady" and asked.enough(each)]
    return [*found, *look.leads]


def _told(look: _Look, table: PairTable, metric: Metric) -> tuple[Fit, tuple[FabricAnswer, ...], tuple[Suspicion, ...]]:
    """Return the fit with all tests, what is named, and what is not."""
    later = table[len(look.fit.residuals) :]
    fitted = extended(look.fit, look.places, table, len(look.fit.residuals), look.kinds(later)) if later else look.fit
    return fitted, *confirmed(look.suspicions, look.places, table, fitted, UNITS[metric])


def _concluded(look: _Look, tests: Sequence[PairTest], rounds: int, metric: Metric) -> Swept:
    fitted, answers, cleared = _told(look, table_of(tests), metric)
    return Swept(
        places=look.places,
        tests=tests if isinstance(tests, PairTable) else tuple(tests),
        rounds=rounds,
        fit=fitted,
        answers=answers,
        cleared=cleared,
        bands=look.bands,
        leaf_agreement=look.inferred.agreement,
        leaves_untold=look.inferred.why_not,
    )
