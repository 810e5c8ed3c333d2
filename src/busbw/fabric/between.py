"""What lies between endpoints: rails, uplinks of leaves, links between leaves, one cable of several, congestion.

What is suspected of it, the pairs that would tell, what the tests about a suspicion say, and what they confirm.
"""

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from busbw import _core
from busbw.fabric.answers import LEAST_TESTS, FabricAnswer, Least, Retest, Suspicion, answer_of, is_endpoint
from busbw.fabric.cables import cable_suspicions, firm_cables
from busbw.fabric.inference import LEAST_EFFECT, Fit
from busbw.fabric.pair_table import PairTable, group_column, leaf_column
from busbw.fabric.places import ONE_WAY, Draws, Places, members_text
from busbw.fabric.schedule import Pair, shuffled
from busbw.stats.distributions import median

# Both ways of one pair, before it is known whether others between the same two are slow as well.
_LEAST_LEAD = 2
# Of bandwidths hops cost nothing: 375 to 385 Gb/s, and 730 to 770 both ways, were published over all pairs of one
# machine (mug-slides), which is 2.6 and 5.2 % from end to end. What crosses is told from 7 % on.
_LEAST_CROSSING = -math.log(0.93)
# Tests that an answer without retests needs: more than one round of a small leaf has.
_LEAST_UNASKED = 8
# What some tests show and others do not is told from so many scatters on.
_SCATTERS_OF_TWO = 4.0
# Tests alone that are slower than this are not sound, however much slower others were that shared a way with them; or
# by this share of what was seen among others.
_SOUND_ALONE = 3 * LEAST_EFFECT
_SHARE_ALONE = 0.6
# Between groups part of the packets may go another way: what is slower by less than the least effect is asked alone,
# where they do not.
_LEAST_DETOURED = 0.5 * LEAST_EFFECT
# Pairs that cross, for what lies between leaves.
_CROSSING = 6
# What others on the same way may slow: one round tests it alone.
SHARED = ("leaf_uplink", "spine_link", "crossing")
_BETWEEN = {
    "leaf_uplink": (
        "one of its cables under adaptive routing, or the leaf switch itself",
        "test pairs within the leaf, and read the error counters of its uplinks",
    ),
    "spine_link": (
        "a switch above both, or routes that collide",
        "trace the routes between both, and read the counters of the ports on them",
    ),
    "crossing": (
        "the spine, too few uplinks for the traffic, or the uplinks of one leaf where there are two or three",
        "test one pair that crosses alone; count the uplinks of each leaf and read their counters",
    ),
    "cable": (
        "a port of the leaf or of the switch above it; with routes by destination, the receiving NICs behind it",
        "trace the routes of the slow pairs; the port they share is the one",
    ),
    "rail": ("the switches of the rail, or a setting of all NICs of that place", "test two other nodes over this rail"),
    "congestion": (
        "fewer uplinks than the traffic needs: oversubscription, or one that is down",
        "repeat the sweep when the fabric is idle",
    ),
}  # fmt: skip
# By how much all ways that a test shares were slower in its round, of the number of a test.
Level = Callable[[int], float]


def suspicions_between(places: Places, tests: PairTable, fit: Fit, least: Least) -> list[Suspicion]:
    """Return what is to be looked at again between endpoints: the widest first; what explains tests keeps them."""
    found = [Suspicion(kind="rail", elements=places.rails[rail][:1], effect=effect)
             for rail, effect in fit.rails.items() if effect >= LEAST_EFFECT and len(fit.rails) > 2]  # fmt: skip
    whole: set[int] = set()
    partly: set[int] = set()
    for leaf in sorted({*fit.leaf_up, *fit.leaf_down}):
        effect = max(fit.leaf_up.get(leaf, 0.0), fit.leaf_down.get(leaf, 0.0))
        if effect >= LEAST_EFFECT:
            each = Suspicion(kind="leaf_uplink", elements=(leaf,), effect=effect)
            (whole if _is_of_all(each, places, tests, fit) else partly).add(leaf)
            found += [each] if leaf in whole else []
    found += _crossing(places, tests, fit)
    found += [each for each in _spine_links(places, tests, fit) if _is_of_all(each, places, tests, fit)]
    left = _with_terms_of(partly, places, tests, fit) if partly else fit.residuals
    return [*found, *cable_suspicions(places, tests, fit, left, whole, least)]


def _is_of_all(suspicion: Suspicion, places: Places, tests: PairTable, fit: Fit) -> bool:
    """Whether the tests of a leaf or a link are slow together, not some of them very and others not at all.

    Medians of few tests have one bad cable of several for the leaf or the link. True where the scatter does not tell.
    """
    if suspicion.effect < _SCATTERS_OF_TWO * fit.noise:
        return True
    slow = of = 0
    for number in tests.among(places, ends_about(suspicion, places)):
        residual = fit.residuals[number]
        own = own_between(suspicion, places, fit, (tests.senders[number], tests.receivers[number]), set())
        if own is not None and not math.isnan(residual):
            of += 1
            slow += residual + own > suspicion.effect / 2
    return 3 * slow >= 2 * of


def _with_terms_of(leaves: Collection[int], places: Places, tests: PairTable, fit: Fit) -> "array[float]":
    """Return what is left of each test with the terms of some leaves, which are of a part of their tests, put back."""
    left = fit.residuals[:]
    others = frozenset(places.members) - frozenset(leaves)
    for number in tests.among(places, [end for leaf in leaves for end in places.members[leaf]]):
        ends = (tests.senders[number], tests.receivers[number])
        if places.crossing(*ends):
            left[number] += leaf_terms(places, fit, ends, others)
    return left


def _crossing(places: Places, tests: PairTable, fit: Fit) -> Iterator[Suspicion]:
    """Yield the hop classes beyond leaves as one that are slower than what stays within: the fit has them as hops."""
    if fit.metric == "latency" or 0 not in fit.hops or len(fit.hops) < 2:
        return
    more = {hops: effect - fit.hops[0] for hops, effect in fit.hops.items() if hops in (1, 2)}
    kinds = tests.hop_kinds(places) if max(more.values(), default=0.0) >= _LEAST_CROSSING else array("i")
    least = {hops: max(_LEAST_CROSSING, fit.bound(min(kinds.count(0), kinds.count(hops)), 1)) for hops in more}
    if slow := tuple(hops for hops, effect in sorted(more.items()) if effect >= least[hops]):
        yield Suspicion(kind="crossing", elements=slow, effect=min(more[hops] for hops in slow))


def _spine_links(places: Places, tests: PairTable, fit: Fit) -> list[Suspicion]:
    """Return pairs of regions between which all is slow, and the ways from each to others are not."""
    cells = _link_cells(places, tests, fit)
    return [
        Suspicion(kind="spine_link", elements=(each.one, each.other), effect=each.median)
        for each in cells
        if each.tests >= LEAST_TESTS and each.ends > LEAST_TESTS
        and each.median > fit.bound(each.tests, len(cells), _least_of(each.one, places))
    ]  # fmt: skip


def _least_of(region: int, places: Places) -> float:
    """Return the effect from which on a link of a region is suspicious."""
    return _LEAST_DETOURED if _is_group(region, places) else LEAST_EFFECT


def _is_group(region: int, places: Places) -> bool:
    return region >= len(places.leaf_names)


def leads_between(places: Places, tests: PairTable, fit: Fit) -> list[Suspicion]:
    """Return pairs of regions of which one pair of endpoints was tested, and was slow both ways.

    Of thousands of nodes two leaves meet once in the first rounds: that is too little to suspect what lies between.
    """
    return [
        Suspicion(kind="spine_link", elements=(each.one, each.other), effect=each.median)
        for each in _link_cells(places, tests, fit)
        if each.tests >= _LEAST_LEAD
        and each.ends <= LEAST_TESTS
        and each.median > LEAST_EFFECT
        and each.least > LEAST_EFFECT / 2
    ]


def _link_cells(places: Places, tests: PairTable, fit: Fit) -> "list[_core.RegionCell]":
    """Return what is left of the tests of each link: between leaves of a group, and between groups.

    Nothing of leaves, or of groups, that have two links or fewer: there the fit takes one of them for hops.
    """
    columns = [leaf_column(places), *([group_column(places)] if places.has_groups else [])]
    found: list[_core.RegionCell] = []
    for column in columns:
        cells = _core.region_cells(tests.senders, tests.receivers, fit.residuals, column)
        own = [each for each in cells if _is_group(each.one, places)
               or places.groups[each.one] == places.groups[each.other]]  # fmt: skip
        found += own if len(own) >= LEAST_TESTS else []
    return found


def wanted_between(
    suspicion: Suspicion, places: Places, good: Sequence[int], draws: Draws, met: Collection[Pair]
) -> tuple[Pair, ...]:
    """Return the pairs that would tell of what is no endpoint, the most telling first. `met`: of earlier retests."""
    match suspicion.kind:
        case "cable":
            # Each once more, then others that leave the leaf.
            again = [each for each in dict.fromkeys(suspicion.pairs) if (min(each), max(each)) not in met]
            return (*again[:_CROSSING], *_out_of(suspicion.elements[0], places, good, draws))
        case "leaf_uplink":
            return _out_of(suspicion.elements[0], places, good, draws)
        case "spine_link":
            one, other = suspicion.elements
            kept = {*good}
            ends = [[each for each in places.region_members(region) if each in kept] for region in (one, other)]
            return _between(places, ends[0], ends[1], draws)
        case "crossing":
            return tuple(_further(places, suspicion.elements, good, draws))
        case _:
            rail = places.rails[places.endpoints[suspicion.elements[0]].rail]
            return tuple(zip(rail[::2], rail[1::2], strict=False))


def _out_of(leaf: int, places: Places, good: Sequence[int], draws: Draws) -> tuple[Pair, ...]:
    inside = [each for each in good if places.leaves[each] == leaf]
    outside = [each for each in good if places.leaves[each] != leaf]
    # Other routers of its group may be slow by ways through this one.
    group = set(places.region_members(places.group_region(places.groups[leaf])))
    return _between(places, inside, [each for each in outside if each not in group] or outside, draws)


def _between(places: Places, inside: Sequence[int], outside: Sequence[int], draws: Draws) -> tuple[Pair, ...]:
    """Return pairs of the same rail from one side to the other, each endpoint once, and those again in other pairs."""
    found: list[Pair] = []
    for _ in range(3):
        others = shuffled(outside, draws)
        for one in shuffled(inside, draws)[:_CROSSING]:
            rail = places.endpoints[one].rail
            at = next((at for at, each in enumerate(others) if places.endpoints[each].rail == rail), None)
            if at is not None:
                found.append((one, others.pop(at)))
    return tuple(found)


def _further(places: Places, hops: Sequence[int], good: Sequence[int], draws: Draws) -> Iterator[Pair]:
    """Yield pairs of a rail so many hops apart: a few in which each endpoint is once, and such again."""
    for _ in range(3):
        left = shuffled(good, draws)
        found = 0
        while left and found < _CROSSING:
            one = left.pop()
            rail = places.endpoints[one].rail
            other = next(
                (each for each in left if places.endpoints[each].rail == rail and places.hops(one, each) in hops), None
            )
            if other is not None:
                left.remove(other)
                found += 1
                yield one, other


def ends_about(suspicion: Suspicion, places: Places) -> Sequence[int]:
    """Return endpoints of which one is in each test that says something about it."""
    first = suspicion.elements[0]
    match suspicion.kind:
        case "rail":
            return places.rails[places.endpoints[first].rail]
        case "cable":
            return [end for pair in suspicion.pairs for end in pair]
        case "leaf_uplink":
            return places.members[first]
        case "spine_link":
            return places.region_members(first)
        case "crossing":
            return range(len(places.endpoints))
        case _:
            return (first,)


def own_between(
    suspicion: Suspicion, places: Places, fit: Fit, ends: tuple[int, int], suspects: set[int]
) -> float | None:
    """Return the same of what lies between endpoints. A rail and a cable are judged with all of their ends."""
    term: float | None = None
    if suspicion.kind == "rail":
        rail = places.endpoints[suspicion.elements[0]].rail
        term = fit.rails.get(rail, 0.0) if places.endpoints[ends[0]].rail == rail else None
    elif suspicion.kind == "cable":
        term = _terms_of(places, fit, ends) if ends in suspicion.pairs else None
    elif suspects & set(ends):
        term = None
    elif suspicion.kind == "spine_link":
        term = 0.0 if places.link(*ends) == frozenset(suspicion.elements) else None
    elif suspicion.kind == "crossing":
        term = _beyond_leaf(places, fit, ends) if places.hops(*ends) in suspicion.elements else None
    elif places.crossing(*ends):
        leaf = suspicion.elements[0]
        if places.leaves[ends[0]] == leaf:
            term = fit.leaf_up.get(leaf, 0.0)
        elif places.leaves[ends[1]] == leaf:
            term = fit.leaf_down.get(leaf, 0.0)
    return term


def _beyond_leaf(places: Places, fit: Fit, ends: tuple[int, int]) -> float:
    """Return by how much the fit has a way slower than one within a leaf, as hops or as leaves."""
    hops, one, other = places.hops(*ends), places.leaves[ends[0]], places.leaves[ends[1]]
    assert hops is not None
    assert one is not None
    assert other is not None
    return fit.hops[hops] - fit.hops[0] + fit.leaf_up.get(one, 0.0) + fit.leaf_down.get(other, 0.0)


def crosses_slowly(places: Places, tests: PairTable, fit: Fit, suspects: set[int], named: frozenset[int]) -> bool:
    """Whether ways between leaves that are not `named` are slower than ways within a leaf, by the values themselves.

    Of three leaves the fit may have what is one leaf's for hops in part.
    """
    within: list[float] = []
    across: list[float] = []
    for one, other, value in zip(tests.senders, tests.receivers, tests.logs(fit.metric), strict=True):
        if not math.isnan(value) and not suspects & {one, other} and not passes(places, (one, other), named):
            (across if places.crossing(one, other) else within).append(value)
    if min(len(within), len(across)) < LEAST_TESTS:
        return False
    return median(sorted(across)) - median(sorted(within)) >= _LEAST_CROSSING


def leaf_terms(places: Places, fit: Fit, ends: tuple[int, int], but: frozenset[int]) -> float:
    """Return what the fit took for slowness of the uplinks on a way, but for those of some leaves."""
    one, other = places.leaves[ends[0]], places.leaves[ends[1]]
    terms = [(leaf, those) for leaf, those in ((one, fit.leaf_up), (other, fit.leaf_down)) if leaf not in but]
    return sum(those.get(leaf, 0.0) for leaf, those in terms if leaf is not None)


def _terms_of(places: Places, fit: Fit, ends: tuple[int, int]) -> float:
    """Return what the fit took for slowness of the ends of a test and of their leaves."""
    terms = [fit.senders[ends[0]], fit.receivers[ends[1]]]
    if places.crossing(*ends):
        one, other = places.leaves[ends[0]], places.leaves[ends[1]]
        terms += [each for leaf, those in ((one, fit.leaf_up), (other, fit.leaf_down)) if leaf is not None
                  and (each := those.get(leaf, 0.0)) > 0]  # fmt: skip
    return sum(each for each in terms if each > 0)


def passes(places: Places, ends: tuple[int, int], leaves: frozenset[int]) -> bool:
    """Whether a test crosses out of one of the leaves."""
    return places.crossing(*ends) and bool(leaves & {places.leaves[each] for each in ends})


def answer_between(
    suspicion: Suspicion, seen: Retest, places: Places, tests: PairTable, unit: str
) -> FabricAnswer | None:
    """Return what lies between endpoints and is bad; None where its tests do not confirm it."""
    if suspicion.kind == "spine_link" and suspicion.effect < LEAST_EFFECT:
        if not seen.confirms_alone:
            return None
        suspicion = replace(suspicion, effect=seen.alone_effect)
    elif not seen.confirms or (tests.first_retest == len(tests) and seen.of < _LEAST_UNASKED):
        return None
    return named_between(suspicion, seen, places, tests, unit)


def named_between(suspicion: Suspicion, seen: Retest, places: Places, tests: PairTable, unit: str) -> FabricAnswer:
    """Return the answer to what lies between endpoints and was confirmed."""
    kind = suspicion.kind
    if kind in SHARED and seen.alone_slow is False:
        kind = "congestion"
    names = _region_names(suspicion, places)
    words = {
        "rail": f"rail {names}",
        "leaf_uplink": f"uplinks of {names}",
        "spine_link": f"a link above {names}",
        "crossing": f"all ways {names}",
        "cable": f"one of several cables above {names}",
        "congestion": f"congestion {'' if suspicion.kind == 'crossing' else 'above '}{names}",
    }
    otherwise, clears = _BETWEEN[kind]
    return answer_of(
        suspicion, seen, tests, places, unit, kind=kind, place=words[kind], otherwise=otherwise, clears=clears
    )


def _region_names(suspicion: Suspicion, places: Places) -> str:
    if suspicion.kind == "rail":
        return str(places.endpoints[suspicion.elements[0]].rail)
    if suspicion.kind == "crossing":
        return "between groups of leaves" if 1 not in suspicion.elements else "between leaves"
    return " and ".join(
        members_text([places.leaf_names[leaf] for leaf in places.region_leaves(each)]) for each in suspicion.elements
    )


def retest(
    suspicion: Suspicion, places: Places, tests: PairTable, fit: Fit, suspects: set[int], way: str = "both",
    above: frozenset[int] = frozenset(), picked: frozenset[int] = frozenset(), but: Collection[frozenset[int]] = (),
    whole: frozenset[int] | None = None, level: Level | None = None,
    numbers: Sequence[int] = (),
) -> Retest:  # fmt: skip
    """Return how many tests against known-good partners show a suspicion; of retests alone, where there are some.

    `above`: leaves of which no test that leaves them counts; `picked`: tests of pairs that were slow before and asked
    again for that, which say nothing about what all pairs share; `but`: regions, two and two, whose tests do not count.
    `whole`: of a link, leaves whose uplinks are bad: what the fit took for slowness of another leaf is the link's.
    `level`: by how much all ways that a test shares were slower in its round; `numbers`: of
    the tests to count, where not those.
    """
    first = tests.first_retest
    numbers = numbers or (
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
        if but and places.link(*ends) in but:
            continue
        own = _own(suspicion, places, fit, ends, suspects, way)
        if own is not None and whole is not None:
            own += leaf_terms(places, fit, ends, whole)
        if own is not None and level is not None:
            own -= level(number)
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
        alone_effect=median(sorted(alone)) if alone else 0.0,
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
    links = [each for each in between if each.kind == "spine_link" and not _is_group(each.elements[0], places)]
    if not links:
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
        level = _level_of(whole & set(each.elements), each.elements, places, tests, fit)
        seen = retest(each, places, tests, fit, suspects, picked=again, whole=whole, level=level)
        found[each] = answer_between(each, seen, places, tests, unit)
        if found[each] is not None:
            found |= {narrow[leaf]: None for leaf in each.elements if leaf in narrow}
    return found


def _level_of(leaves: Collection[int], link: Sequence[int], places: Places, tests: PairTable, fit: Fit) -> Level | None:
    """Return by how much other ways out of a link's bad leaves were slower in a round; None where no leaf is bad.

    What congests a leaf changes from round to round, for all of its ways at once: only what is slower than those is of
    the link.
    """
    if not leaves:
        return None
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    for number in tests.among(places, [end for leaf in leaves for end in places.members[leaf]]):
        ends = (tests.senders[number], tests.receivers[number])
        if places.crossing(*ends) and not math.isnan(fit.residuals[number]) and places.link(*ends) != frozenset(link):
            for leaf in set(leaves).intersection(places.leaves[each] for each in ends):
                found[leaf, tests.rounds[number]].append(fit.residuals[number])
    levels = {each: median(sorted(those)) for each, those in found.items() if len(those) >= LEAST_TESTS}
    return lambda number: sum(levels.get((leaf, tests.rounds[number]), 0.0) for leaf in leaves)


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
