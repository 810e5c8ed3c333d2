"""The procedure: sparse rounds, a fit, rounds about what is suspicious, and answers. It measures through a function.

The function gets the pairs of one round, each in both directions, and the number of the round; it returns one value a
pair, None where there was no answer. Real hosts and the simulation are the same to it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from busbw.fabric.answers import FabricAnswer, Suspicion
from busbw.fabric.bands import LatencyBand, band_of, fabric_bands, inferred_leaves
from busbw.fabric.between import SHARED
from busbw.fabric.inference import Fit, extended, fit
from busbw.fabric.naming import confirmed, suspicions, wanted_pairs
from busbw.fabric.pair_table import UNKNOWN_HOPS, PairTable, table_of
from busbw.fabric.places import ONE_WAY, UNITS, Draws, Metric, Pairing, PairTest, Places
from busbw.fabric.schedule import Round, full_rounds, retest_rounds, sparse_rounds

Measure = Callable[[Sequence[Pairing], int], Sequence[float | None]]
RETEST_ROUNDS = 3
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
) -> Swept:
    """Measure a fabric in rounds and return what is bad about it.

    `full`: every pair once before the retests; `first`: these rounds before them.
    """
    rounds = first if first is not None else full_rounds(places) if full else sparse_rounds(places, draws)
    tests: list[PairTest] = []
    number = 0
    for each in rounds:
        tests += _measured(each, number, measure, metric)
        number += 1
    look = _looked(places, PairTable(tests), metric, bad_rounds=1)
    if look.suspicions:
        pairs, alone = _retests(look.suspicions, look.places, draws, RETEST_ROUNDS)[0]
        tests += _measured(pairs, number, measure, metric, retest=True, alone=alone)
        look = _looked_again(look, PairTable(tests), metric)
        for pairs, alone in _retests(look.suspicions, look.places, draws, RETEST_ROUNDS - 1):
            number += 1
            tests += _measured(pairs, number, measure, metric, retest=True, alone=alone)
        number += 1
    return _concluded(look, tests, number, metric)


def analysed(places: Places, tests: Sequence[PairTest], metric: Metric) -> Swept:
    """Return what tests that were made before say; there is nothing to ask them again."""
    table = table_of(tests)
    return replace(_concluded(_looked(places, table, metric), table, len(set(table.rounds)), metric), live=False)


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
    # Of latencies; and whether they, not leaves, stand for the hops of a test.
    bands: tuple[LatencyBand, ...] = ()
    by_band: bool = False
    agreement: float | None = None

    def kinds(self, tests: Sequence[PairTest]) -> list[int]:
        """Return the hop class of each test."""
        if not self.by_band:
            return [UNKNOWN_HOPS if (hops := self.places.hops(each.sender, each.receiver)) is None else hops
                    for each in tests]  # fmt: skip
        own = [self.fit.senders[each.sender] + self.fit.senders[each.receiver] for each in tests]
        return [band_of(each.value * math.exp(-shift), self.bands) if each.value else -1
                for each, shift in zip(tests, own, strict=True)]  # fmt: skip


def _looked(places: Places, tests: PairTable, metric: Metric, bad_rounds: int = 2) -> _Look:
    if metric != "latency":
        fitted = fit(places, tests, metric)
        return _Look(places=places, fit=fitted, suspicions=suspicions(places, tests, fitted, bad_rounds))
    _, numbers = fabric_bands(tests)
    first = fit(places, tests, metric, numbers)
    own = [first.senders[each.sender] + first.senders[each.receiver] for each in tests]
    bands, numbers = fabric_bands(tests, own)
    known, agreement = places, None
    if None in places.leaves and (inferred := inferred_leaves(places, tests, numbers)) is not None:
        known, agreement = inferred
    by_band = None in known.leaves
    fitted = fit(known, tests, metric, numbers if by_band else None)
    found = suspicions(known, tests, fitted, bad_rounds)
    return _Look(places=known, fit=fitted, suspicions=found, bands=bands, by_band=by_band, agreement=agreement)


def _looked_again(before: _Look, tests: PairTable, metric: Metric) -> _Look:
    """Return the same with what lies between endpoints and is suspicious by now: a fit of all tests so far tells.

    A cable is hidden as long as its leaf or its ends are taken for what is bad. The terms stay those of the first
    rounds: tests that are mostly about one link would move those of its ends.
    """
    again = _looked(before.places, tests, metric, bad_rounds=1)
    known = {(each.kind, each.elements) for each in before.suspicions}
    new = [replace(each, since=len(tests)) for each in again.suspicions
           if each.kind in _BETWEEN and (each.kind, each.elements) not in known]  # fmt: skip
    return replace(before, suspicions=(*before.suspicions, *new))


def _retests(found: Sequence[Suspicion], places: Places, draws: Draws, count: int) -> list[tuple[Round, bool]]:
    """Return `count` rounds about suspicions, and whether hardly anything else runs in each."""
    endpoints = len(places.endpoints)
    looked = sorted(found, key=lambda each: -each.effect)[: max(1, int(_MOST_SUSPECTS * endpoints))]
    suspects = {each.elements[0] for each in found if each.kind in ("nic", "nic_send", "nic_receive", "unsteady")}
    good = [each for each in range(endpoints) if each not in suspects]
    wanted = [wanted_pairs(each, places, good, draws) for each in looked]
    shared = [pairs for each, pairs in zip(looked, wanted, strict=True) if each.kind in SHARED]
    busy = count - 1 if shared else count
    rounds = [(each, False) for each in retest_rounds(wanted, places, good, draws, busy)]
    if shared:
        few = [pairs[-_ALONE_PAIRS:] for pairs in shared[:_MOST_ALONE]]
        rounds += [(each, True) for each in retest_rounds(few, places, (), draws, 1)]
    return rounds


def _concluded(look: _Look, tests: Sequence[PairTest], rounds: int, metric: Metric) -> Swept:
    table = table_of(tests)
    later = table[len(look.fit.residuals) :]
    fitted = extended(look.fit, look.places, table, len(look.fit.residuals), look.kinds(later)) if later else look.fit
    answers, cleared = confirmed(look.suspicions, look.places, table, fitted, UNITS[metric])
    return Swept(
        places=look.places,
        tests=tests if isinstance(tests, PairTable) else tuple(tests),
        rounds=rounds,
        fit=fitted,
        answers=answers,
        cleared=cleared,
        bands=look.bands,
        leaf_agreement=look.agreement,
    )
