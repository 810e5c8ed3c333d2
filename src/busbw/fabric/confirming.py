"""What the tests that were made about a suspicion say, and what they confirm of what lies between endpoints."""

import math
from collections.abc import Collection, Mapping, Sequence

from busbw.fabric.answers import FabricAnswer, Retest, Suspicion, is_endpoint
from busbw.fabric.between import (
    SHARED,
    answer_between,
    crosses_slowly,
    ends_about,
    leaf_terms,
    named_between,
    own_between,
    passes,
)
from busbw.fabric.cables import firm_cables
from busbw.fabric.inference import LEAST_EFFECT, Fit
from busbw.fabric.pair_table import PairTable
from busbw.fabric.places import ONE_WAY, Places
from busbw.fabric.schedule import Pair
from busbw.stats.distributions import median

# Tests alone that are slower than this are not sound, however much slower others were that shared a way with them; or
# by this share of what was seen among others.
_SOUND_ALONE = 3 * LEAST_EFFECT
_SHARE_ALONE = 0.6


def retest(
    suspicion: Suspicion, places: Places, tests: PairTable, fit: Fit, suspects: set[int], way: str = "both",
    above: frozenset[int] = frozenset(), picked: frozenset[int] = frozenset(), but: Collection[frozenset[int]] = (),
    whole: frozenset[int] | None = None,
) -> Retest:  # fmt: skip
    """Return how many tests against known-good partners show a suspicion; of retests alone, where there are some.

    `above`: leaves of which no test that leaves them counts; `picked`: tests of pairs that were slow before and asked
    again for that, which say nothing about what all pairs share; `but`: regions, two and two, whose tests do not count.
    `whole`: of a link, leaves whose uplinks are bad: what the fit took for slowness of another leaf is the link's.
    """
    first = tests.first_retest
    numbers = (
        range(max(first, suspicion.since), len(tests))
        if first < len(tests)
        else tests.among(places, ends_about(suspicion, places))
    )
    votes: list[tuple[int, bool]] = []
    lonely: list[tuple[int, bool]] = []
    shown: list[float] = []
    alone: list[float] = []
    for number in numbers:
        residual = fit.residuals[number]
        ends = (tests.senders[number], tests.receivers[number])
        if math.isnan(residual) or number in picked or (above and passes(places, ends, above)):
            continue
        if but and frozenset(map(places.region, ends)) in but:
            continue
        own = _own(suspicion, places, fit, ends, suspects, way)
        if own is not None and whole is not None:
            own += leaf_terms(places, fit, ends, whole)
        if own is not None:
            # What others congest changes from round to round, by more than half.
            least = min(suspicion.effect / 2, LEAST_EFFECT if suspicion.kind in SHARED else math.inf)
            vote = (number, residual + own > max(least, LEAST_EFFECT / 2))
            if tests[number].alone:
                alone.append(residual + own)
                lonely.append(vote)
            else:
                votes.append(vote)
                shown.append(residual + own)
    least_alone = max(min(_SHARE_ALONE * suspicion.effect, _SOUND_ALONE), LEAST_EFFECT / 2)
    if not votes:
        # What is slow though nothing else runs is so by itself: suspected late, it needs no test among others.
        votes, shown = lonely, alone
    return Retest(
        slow=sum(slow for _, slow in votes),
        of=len(votes),
        tests=tuple(number for number, slow in votes if slow),
        alone_slow=median(sorted(alone)) > least_alone if alone else None,
        effect=median(sorted(shown)) if shown else 0.0,
        scatter=fit.scatter(len(shown)) if shown else 0.0,
    )


def _own(
    suspicion: Suspicion, places: Places, fit: Fit, ends: tuple[int, int], suspects: set[int], way: str
) -> float | None:
    """Return the term of a suspicion in a test; None where the test says nothing about it."""
    if not is_endpoint(suspicion):
        return own_between(suspicion, places, fit, ends, suspects)
    end = suspicion.elements[0]
    if end not in ends or (suspects - {end}) & set(ends):
        return None
    if end == ends[0]:
        return fit.senders[end] if way in ("both", "send") else None
    return fit.receivers[end] if way in ("both", "receive") or fit.metric not in ONE_WAY else None


def confirmed_between(
    found: Sequence[Suspicion], places: Places, tests: PairTable, fit: Fit, suspects: set[int], unit: str
) -> dict[Suspicion, FabricAnswer | None]:
    """Return the answer to each suspicion that is of no endpoint, None where its tests do not confirm it.

    One that is wider and explains the tests of another comes before it: the uplinks of a leaf before a link, before
    all ways between leaves, before a cable.
    """
    again = _again(found, tests)
    between: dict[Suspicion, FabricAnswer | None] = {}
    for each in found:
        if not is_endpoint(each):
            picked = again if each.kind in SHARED else frozenset[int]()
            seen = retest(each, places, tests, fit, suspects, picked=picked)
            between[each] = answer_between(each, seen, places, tests, unit)
    between |= _links(between, places, tests, fit, suspects, again, unit)
    # Tests that a bad or congested leaf explains say nothing about a cable of another.
    wide = _leaves_of(between)
    for each in found:
        if each.kind == "crossing" and wide:
            # What else crosses must be slow too.
            seen = retest(each, places, tests, fit, suspects, above=wide, picked=again)
            slow = crosses_slowly(places, tests, fit, suspects, wide)
            between[each] = answer_between(each, seen, places, tests, unit) if slow else None
        if each.kind == "cable" and 2 * sum(passes(places, pair, wide) for pair in each.pairs) > len(each.pairs):
            between[each] = None
    if tests.first_retest < len(tests):
        between = {each: answer for each, answer in between.items() if each.kind != "cable"}
        between |= {each: named_between(each, seen, places, tests, unit)
                    for each, seen in firm_cables(places, tests, fit, wide, links_of(between))}  # fmt: skip
    return between


def _leaves_of(between: Mapping[Suspicion, FabricAnswer | None]) -> frozenset[int]:
    """Return the leaves whose uplinks are named, as bad or as congested."""
    return frozenset(
        leaf for each, answer in between.items() if answer is not None and each.kind == "leaf_uplink"
        for leaf in each.elements
    )  # fmt: skip


def links_of(between: Mapping[Suspicion, FabricAnswer | None]) -> frozenset[frozenset[int]]:
    """Return the regions, two and two, between which a link is named."""
    return frozenset(
        frozenset(each.elements) for each, answer in between.items()
        if answer is not None and each.kind == "spine_link"
    )  # fmt: skip


def _links(
    between: Mapping[Suspicion, FabricAnswer | None], places: Places, tests: PairTable, fit: Fit, suspects: set[int],
    again: frozenset[int], unit: str,
) -> dict[Suspicion, FabricAnswer | None]:  # fmt: skip
    """Return the answers to links between two leaves, and to the uplinks of those, told from each other.

    Of few tests the fit takes part of a slow link for uplinks of both its leaves. A leaf is bad where its ways to
    others than the far end of the link are slow too; where they are not, and the link is slow, it is the link.
    """
    links = [each for each in between if each.kind == "spine_link"]
    if not links or places.has_groups:
        return {}
    found: dict[Suspicion, FabricAnswer | None] = {}
    narrow: dict[int, Suspicion] = {}
    for each, answer in between.items():
        own = [frozenset(link.elements) for link in links if each.elements[0] in link.elements]
        if each.kind == "leaf_uplink" and answer is not None and len(own) == 1:
            beside = retest(each, places, tests, fit, suspects, picked=again, but=own)
            if not beside.confirms:
                narrow[each.elements[0]] = each
    whole = _leaves_of(between) - set(narrow)
    for each in links:
        if whole & set(each.elements):
            continue
        seen = retest(each, places, tests, fit, suspects, picked=again, whole=whole)
        found[each] = answer_between(each, seen, places, tests, unit)
        if found[each] is not None:
            found |= {narrow[leaf]: None for leaf in each.elements if leaf in narrow}
    return found


def _again(found: Sequence[Suspicion], tests: PairTable) -> frozenset[int]:
    """Return retests of pairs that were suspected of a cable, and had been tested before."""
    slow = {pair for each in found if each.kind == "cable" for pair in each.pairs}
    met: set[Pair] = set()
    again: set[int] = set()
    for number in range(len(tests)) if slow and tests.first_retest < len(tests) else ():
        pair = (tests.senders[number], tests.receivers[number])
        if pair in slow and pair in met and number >= tests.first_retest:
            again.add(number)
        met.add(pair)
    return frozenset(again)
