"""What the terms of a fit make suspicious, the pairs that would tell, and the name of what the retests confirm."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from busbw import _core
from busbw.base.units import format_in
from busbw.base.value import Integer, Value
from busbw.fabric.inference import LEAST_EFFECT, Fit
from busbw.fabric.pair_table import PairTable, leaf_column, region_column
from busbw.fabric.places import ONE_WAY, Draws, PairTest, Places, members_text
from busbw.fabric.schedule import Pair, shuffled
from busbw.model.finding import Confidence
from busbw.stats.distributions import binomial_tail, median

Kind = Literal[
    "node", "nic", "nic_send", "nic_receive", "rail", "leaf", "leaf_uplink", "spine_link", "cable", "congestion",
    "unsteady", "unanswered", "slow",
]  # fmt: skip
# From so much slower on a single test counts for a link that comes and goes.
_LARGE = math.log(1.2)
# Of single tests in a row: their scatter, and how often chance alone goes beyond it, disturbed tests included.
# A round in which an endpoint is slow by no more than this is sound.
_SOUND = LEAST_EFFECT * 1.5
_PAIR_SIGMAS = 3.0
_CHANCE = 0.03
_CLUSTER = 0.002
_LEAST_CLUSTER = 3
# What is confirmed of a whole makes the whole the answer.
_MOST_OF = 0.75
_LEAST_TESTS = 3
_PARTNERS = 6
# Pairs that cross, for what lies between leaves.
_CROSSING = 6
_SHOWN_TESTS = 6
# Where one direction is suspicious, the retests decide about the other from this effect on.
_LEAST_AGAIN = 0.8 * LEAST_EFFECT
_OTHER_WAY = 0.6 * LEAST_EFFECT


@dataclass(frozen=True, kw_only=True)
class Suspicion:
    """Something that may be bad. `elements`: endpoints, leaves or regions, by kind; `pairs`: the tests that say so."""

    kind: Kind
    elements: tuple[int, ...]
    # Logarithm of slowness.
    effect: float
    pairs: tuple[Pair, ...] = ()
    # The number of tests that it was suspected from: those from here on are retests of it.
    since: int = 0


class FabricAnswer(Value, kw_only=True, frozen=True):
    """What the tests are consistent with."""

    kind: Kind
    # `node n0007`, `NIC n0007:rail3, sending`, `uplinks of leaf2`.
    place: str
    # By how much slower, as a share of the speed that is lost: 0.1 is 10 %.
    loss: float
    confidence: Confidence
    # Tests that show it, and how many of the retests did.
    evidence: tuple[str, ...]
    slow_tests: Integer
    of_tests: Integer
    # What else would explain it, and the test that would tell.
    otherwise: str
    clears: str
    nodes: tuple[str, ...] = ()
    # What it names, as `Places` does: endpoints, a rail, leaves (of a spine link those of both sides); (): all of it.
    parts: tuple[str, ...] = ()


def suspicions(places: Places, tests: PairTable, fit: Fit, bad_rounds: int = 2) -> tuple[Suspicion, ...]:
    """Return what is to be looked at again: the widest first; what explains tests keeps them from others.

    `bad_rounds`: in so many an endpoint is very slow, and sound in others, for its link to come and go.
    """
    found = [Suspicion(kind="rail", elements=places.rails[rail][:1], effect=effect)
             for rail, effect in fit.rails.items() if effect >= LEAST_EFFECT and len(fit.rails) > 2]  # fmt: skip
    for leaf in sorted({*fit.leaf_up, *fit.leaf_down}):
        effect = max(fit.leaf_up.get(leaf, 0.0), fit.leaf_down.get(leaf, 0.0))
        if effect >= LEAST_EFFECT:
            found.append(Suspicion(kind="leaf_uplink", elements=(leaf,), effect=effect))
    found += _spine_links(places, tests, fit)
    clusters = list(
        _cables(places, tests, fit, {leaf for each in found if each.kind == "leaf_uplink" for leaf in each.elements})
    )
    found += clusters
    explained = {leaf for each in clusters for leaf in each.elements}
    found += _endpoints(places, tests, fit, explained, bad_rounds)
    return tuple(found)


def _endpoints(places: Places, tests: PairTable, fit: Fit, explained: set[int], bad_rounds: int) -> Iterator[Suspicion]:
    """Yield endpoints that are slow in a direction, and those whose tests come and go."""
    count = len(places.endpoints)
    ways = count if fit.metric not in ONE_WAY else 2 * count
    unsteady = _unsteady(places, tests, fit, explained, bad_rounds)
    for each in range(count):
        send = fit.senders[each] > fit.bound(fit.sent[each], ways)
        receive = fit.receivers[each] > fit.bound(fit.received[each], ways)
        if each in unsteady:
            yield Suspicion(kind="unsteady", elements=(each,), effect=unsteady[each])
        elif send or receive:
            kind: Kind = "nic" if send and receive else "nic_send" if send else "nic_receive"
            yield Suspicion(kind=kind, elements=(each,), effect=max(fit.senders[each], fit.receivers[each]))


def excesses(tests: Sequence[PairTest], fit: Fit) -> Iterator[tuple[int, PairTest, float]]:
    """Yield the number of each test with a value, the test, and its residual."""
    for number, residual in enumerate(fit.residuals):
        if not math.isnan(residual):
            yield number, tests[number], residual


def _unsteady(places: Places, tests: PairTable, fit: Fit, explained: set[int], bad_rounds: int) -> dict[int, float]:
    """Return endpoints that are very slow in some rounds and sound in others, with how slow.

    In a bad round both directions are slow, in a good one none is; the partners of a bad endpoint saw it once each.
    """
    leaves = bytearray(len(places.leaf_names))
    for each in explained:
        leaves[each] = 1
    found = _core.unsteady(
        tests.senders, tests.receivers, tests.rounds, fit.residuals, array("d", fit.senders),
        array("d", fit.receivers), leaf_column(places), leaves, _LARGE, _SOUND, bad_rounds,
    )  # fmt: skip
    return {each.endpoint: each.effect for each in found}


def _spine_links(places: Places, tests: PairTable, fit: Fit) -> list[Suspicion]:
    """Return pairs of regions between which all is slow, and the ways from each to others are not."""
    cells = _core.region_cells(tests.senders, tests.receivers, fit.residuals, region_column(places))
    if len(cells) < _LEAST_TESTS:
        return []
    return [
        Suspicion(kind="spine_link", elements=(each.one, each.other), effect=each.median)
        for each in cells
        if each.tests >= _LEAST_TESTS and each.ends > _LEAST_TESTS and each.median > fit.bound(each.tests, len(cells))
    ]


def _cables(places: Places, tests: PairTable, fit: Fit, whole: set[int]) -> Iterator[Suspicion]:
    """Yield leaves of which more ways out are slow than chance makes, while the others are sound."""
    least = max(LEAST_EFFECT * 1.5, _PAIR_SIGMAS * fit.noise)
    crossed = _core.crossings(tests.senders, tests.receivers, fit.residuals, leaf_column(places), least)
    crossing = {leaf: count for leaf, count in enumerate(crossed.by_leaf) if count}
    slow: dict[int, list[tuple[Pair, float]]] = defaultdict(list)
    for number in crossed.slow:
        pair = (tests.senders[number], tests.receivers[number])
        for end in pair:
            if (leaf := places.leaves[end]) is not None:
                slow[leaf].append((pair, fit.residuals[number]))
    ranked = sorted(slow, key=lambda leaf: -len(slow[leaf]) / crossing[leaf])
    taken: set[Pair] = set()
    for leaf in ranked:
        left = [each for each in slow[leaf] if each[0] not in taken]
        if (
            leaf in whole
            or len(left) < _LEAST_CLUSTER
            or len({end for pair, _ in left for end in pair}) < 2 * _LEAST_CLUSTER
        ):
            continue
        regions = Counter(frozenset((places.region(one), places.region(other))) for (one, other), _ in left)
        if max(regions.values()) > _MOST_OF * len(left) and len(crossing) > 2:
            # They have both leaves in common, not one.
            continue
        if len(left) > _CHANCE * crossing[leaf] and binomial_tail(len(left), crossing[leaf], _CHANCE) < _CLUSTER:
            taken.update(pair for pair, _ in left)
            effect = median(sorted(effect for _, effect in left))
            strongest = sorted(left, key=lambda each: -each[1])
            yield Suspicion(kind="cable", elements=(leaf,), effect=effect, pairs=tuple(pair for pair, _ in strongest))


def wanted_pairs(suspicion: Suspicion, places: Places, good: Sequence[int], draws: Draws) -> tuple[Pair, ...]:
    """Return the pairs that would tell, the most telling first. `good`: endpoints that nothing is suspected of."""
    match suspicion.kind:
        case "cable":
            pairs = suspicion.pairs[:_CROSSING]
            return pairs * 3
        case "leaf_uplink":
            leaf = suspicion.elements[0]
            inside = [each for each in good if places.leaves[each] == leaf]
            outside = [each for each in good if places.leaves[each] != leaf]
            return _between(places, inside, outside, draws)
        case "spine_link":
            one, other = suspicion.elements
            return _between(
                places,
                [each for each in good if places.region(each) == one],
                [each for each in good if places.region(each) == other],
                draws,
            )
        case "rail":
            rail = places.rails[places.endpoints[suspicion.elements[0]].rail]
            return tuple(zip(rail[::2], rail[1::2], strict=False))
        case _:
            end = suspicion.elements[0]
            partners = [
                each for each in shuffled(good, draws) if places.endpoints[each].rail == places.endpoints[end].rail
                and places.endpoints[each].node != places.endpoints[end].node
            ]  # fmt: skip
            # Within the leaf first: nothing but the two ends and their switch is on that way.
            partners.sort(key=lambda each: places.crossing(end, each))
            return tuple((end, each) for each in partners[:_PARTNERS])


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


@dataclass(frozen=True, kw_only=True)
class Retest:
    """What came of the tests that were made about a suspicion."""

    slow: int
    of: int
    tests: tuple[int, ...]
    alone_slow: bool | None
    # By how much, in their median; a logarithm.
    effect: float = 0.0

    @property
    def confirms(self) -> bool:
        """Whether two of three show it, and they come near the least effect by themselves."""
        return self.of >= 2 and 3 * self.slow >= 2 * self.of and self.effect >= _LEAST_AGAIN


def retest(
    suspicion: Suspicion, places: Places, tests: PairTable, fit: Fit, suspects: set[int], way: str = "both",
    above: frozenset[int] = frozenset(),
) -> Retest:  # fmt: skip
    """Return how many tests against known-good partners show a suspicion; of retests alone, where there are some.

    `above`: leaves of which no test that leaves them counts.
    """
    first = tests.first_retest
    numbers = (
        range(max(first, suspicion.since), len(tests))
        if first < len(tests)
        else tests.among(places, _ends_of(suspicion, places))
    )
    votes: list[tuple[int, bool, bool]] = []
    shown: list[float] = []
    for number in numbers:
        residual = fit.residuals[number]
        ends = (tests.senders[number], tests.receivers[number])
        if math.isnan(residual) or (above and _passes(places, ends, above)):
            continue
        own = _own(suspicion, places, fit, ends, suspects, way)
        if own is not None:
            by_itself = tests[number].alone
            # What others congest changes from round to round, by more than half.
            varies = suspicion.kind in ("leaf_uplink", "spine_link") and not by_itself
            least = min(suspicion.effect / 2, LEAST_EFFECT) if varies else suspicion.effect / 2
            slow = residual + own > max(least, LEAST_EFFECT / 2)
            votes.append((number, slow, by_itself))
            if not by_itself:
                shown.append(residual + own)
    among = [slow for _, slow, alone in votes if not alone]
    alone = [slow for _, slow, alone in votes if alone]
    return Retest(
        slow=sum(among),
        of=len(among),
        tests=tuple(number for number, slow, _ in votes if slow),
        alone_slow=2 * sum(alone) >= len(alone) if alone else None,
        effect=median(sorted(shown)) if shown else 0.0,
    )


def _ends_of(suspicion: Suspicion, places: Places) -> Sequence[int]:
    """Return endpoints of which one is in each test that says something about a suspicion."""
    first = suspicion.elements[0]
    match suspicion.kind:
        case "rail":
            return places.rails[places.endpoints[first].rail]
        case "cable":
            return [end for pair in suspicion.pairs for end in pair]
        case "leaf_uplink":
            return places.members[first]
        case "spine_link":
            return [each for each in range(len(places.endpoints)) if places.region(each) == first]
        case _:
            return (first,)


def _own(
    suspicion: Suspicion, places: Places, fit: Fit, ends: tuple[int, int], suspects: set[int], way: str
) -> float | None:
    """Return the term of a suspicion in a test; None where the test says nothing about it."""
    if not _is_endpoint(suspicion):
        return _own_between(suspicion, places, fit, ends, suspects)
    end = suspicion.elements[0]
    if end not in ends or (suspects - {end}) & set(ends):
        return None
    if end == ends[0]:
        return fit.senders[end] if way in ("both", "send") else None
    return fit.receivers[end] if way in ("both", "receive") or fit.metric not in ONE_WAY else None


def _own_between(
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
        term = 0.0 if {places.region(each) for each in ends} == set(suspicion.elements) else None
    elif places.crossing(*ends):
        leaf = suspicion.elements[0]
        if places.leaves[ends[0]] == leaf:
            term = fit.leaf_up.get(leaf, 0.0)
        elif places.leaves[ends[1]] == leaf:
            term = fit.leaf_down.get(leaf, 0.0)
    return term


def _terms_of(places: Places, fit: Fit, ends: tuple[int, int]) -> float:
    """Return what the fit took for slowness of the ends of a test and of their leaves."""
    terms = [fit.senders[ends[0]], fit.receivers[ends[1]]]
    if places.crossing(*ends):
        one, other = places.leaves[ends[0]], places.leaves[ends[1]]
        terms += [each for leaf, those in ((one, fit.leaf_up), (other, fit.leaf_down)) if leaf is not None
                  and (each := those.get(leaf, 0.0)) > 0]  # fmt: skip
    return sum(each for each in terms if each > 0)


def confirmed(
    found: Sequence[Suspicion], places: Places, tests: PairTable, fit: Fit, unit: str
) -> tuple[tuple[FabricAnswer, ...], tuple[Suspicion, ...]]:
    """Return what of the suspicions two of three tests against known-good partners confirm, and the others."""
    suspects = {each.elements[0] for each in found if _is_endpoint(each)}
    between = {
        each: _between_leaves(each, places, tests, fit, suspects, unit) for each in found if not _is_endpoint(each)
    }
    # Tests that a bad or congested leaf explains say nothing about a cable of another.
    wide = frozenset(leaf for each, answer in between.items() if answer is not None and each.kind == "leaf_uplink"
                     for leaf in each.elements)  # fmt: skip
    for each in found:
        if each.kind == "cable" and 2 * sum(_passes(places, pair, wide) for pair in each.pairs) > len(each.pairs):
            between[each] = None
    answers = [answer for answer in between.values() if answer is not None]
    # What a bad cable or a congested leaf does to a test says nothing about its ends.
    above = frozenset(leaf for each, answer in between.items() if answer is not None
                      and each.kind in ("cable", "leaf_uplink") for leaf in each.elements)  # fmt: skip
    bad: dict[int, tuple[Suspicion, Retest]] = {}
    for each in found:
        if _is_endpoint(each) and (kept := _endpoint_of(each, places, tests, fit, suspects, above)) is not None:
            bad[each.elements[0]] = kept
    answers += _wholes(bad, places, tests, unit)
    answers += _unanswered(places, tests, fit)
    cleared = [each for each in found if (each.elements[0] not in bad if _is_endpoint(each) else between[each] is None)]
    return tuple(sorted(answers, key=lambda each: -each.loss)), tuple(cleared)


def _passes(places: Places, ends: tuple[int, int], leaves: frozenset[int]) -> bool:
    """Whether a test crosses out of one of the leaves."""
    return places.crossing(*ends) and bool(leaves & {places.leaves[each] for each in ends})


def _is_endpoint(each: Suspicion) -> bool:
    return each.kind in ("nic", "nic_send", "nic_receive", "unsteady")


def _endpoint_of(
    suspicion: Suspicion, places: Places, tests: PairTable, fit: Fit, suspects: set[int], above: frozenset[int]
) -> tuple[Suspicion, Retest] | None:
    """Return an endpoint with the directions that its tests confirm; None where they clear it."""
    end = suspicion.elements[0]
    both = retest(suspicion, places, tests, fit, suspects, above=above)
    if suspicion.kind == "unsteady":
        # It comes and goes: one of the retests in which it came is enough, beside the rounds before.
        return (suspicion, both) if _bad_rounds(end, places, tests, fit, both) >= 2 else None
    ways = {way: retest(suspicion, places, tests, fit, suspects, way, above) for way in ("send", "receive")}
    terms = {"send": fit.senders[end], "receive": fit.receivers[end]}
    sure = [way for way in ways if ways[way].confirms and terms[way] >= _OTHER_WAY]
    if not sure:
        return None
    effect = max(terms[way] for way in sure)
    if len(sure) == 2 or fit.metric not in ONE_WAY:
        return Suspicion(kind="nic", elements=(end,), effect=effect), both
    kind: Kind = "nic_send" if sure == ["send"] else "nic_receive"
    return Suspicion(kind=kind, elements=(end,), effect=effect), ways[sure[0]]


def _bad_rounds(end: int, places: Places, tests: PairTable, fit: Fit, seen: Retest) -> int:
    """Return in how many rounds all tests of an endpoint were very slow; 0 where none of `seen` is in one of them."""
    rounds: dict[int, float] = {}
    for number in tests.among(places, (end,)):
        if not math.isnan(fit.residuals[number]):
            own = fit.senders[end] if end == tests.senders[number] else fit.receivers[end]
            at = tests.rounds[number]
            rounds[at] = min(rounds.get(at, math.inf), fit.residuals[number] + own)
    bad = {at for at, least in rounds.items() if least > _LARGE}
    return len(bad) if any(tests.rounds[number] in bad for number in seen.tests) else 0


_BETWEEN = {
    "leaf_uplink": (
        "one of its cables under adaptive routing, or the leaf switch itself",
        "test pairs within the leaf, and read the error counters of its uplinks",
    ),
    "spine_link": (
        "a switch above both, or routes that collide",
        "trace the routes between both, and read the counters of the ports on them",
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


def _between_leaves(
    suspicion: Suspicion, places: Places, tests: PairTable, fit: Fit, suspects: set[int], unit: str
) -> FabricAnswer | None:
    seen = retest(suspicion, places, tests, fit, suspects)
    if not seen.confirms:
        return None
    kind = suspicion.kind
    if kind in ("leaf_uplink", "spine_link") and seen.alone_slow is False:
        kind = "congestion"
    names = _region_names(suspicion, places)
    words = {
        "rail": f"rail {names}",
        "leaf_uplink": f"uplinks of {names}",
        "spine_link": f"a link above {names}",
        "cable": f"one of several cables above {names}",
        "congestion": f"congestion above {names}",
    }
    otherwise, clears = _BETWEEN[kind]
    return _answer(
        suspicion, seen, tests, places, unit, kind=kind, place=words[kind], otherwise=otherwise, clears=clears
    )


def _region_names(suspicion: Suspicion, places: Places) -> str:
    if suspicion.kind == "rail":
        return str(places.endpoints[suspicion.elements[0]].rail)
    if suspicion.kind == "spine_link" and len(set(places.groups)) > 1:
        return " and ".join(
            members_text([name for name, group in zip(places.leaf_names, places.groups, strict=True) if group == each])
            for each in suspicion.elements
        )
    return " and ".join(places.leaf_names[each] for each in suspicion.elements)


def _answer(
    suspicion: Suspicion, seen: Retest, tests: PairTable, places: Places, unit: str, *, kind: Kind, place: str,
    otherwise: str, clears: str, nodes: tuple[str, ...] = (), parts: tuple[str, ...] = (),
) -> FabricAnswer:  # fmt: skip
    retested = tests.first_retest < len(tests)
    return FabricAnswer(
        kind=kind,
        place=place,
        loss=1 - math.exp(-suspicion.effect),
        confidence="likely" if retested or seen.of >= 2 * _LEAST_TESTS else "possible",
        evidence=tuple(evidence_line(tests[each], places, unit) for each in seen.tests[:_SHOWN_TESTS]),
        slow_tests=seen.slow,
        of_tests=seen.of,
        otherwise=otherwise,
        clears=clears,
        nodes=nodes,
        parts=parts or _parts(suspicion, places),
    )


def _parts(suspicion: Suspicion, places: Places) -> tuple[str, ...]:
    if suspicion.kind == "rail":
        return (str(places.endpoints[suspicion.elements[0]].rail),)
    if _is_endpoint(suspicion):
        return _names(places, suspicion.elements)
    if suspicion.kind == "spine_link" and len(set(places.groups)) > 1:
        return tuple(
            name for name, group in zip(places.leaf_names, places.groups, strict=True) if group in suspicion.elements
        )
    return tuple(places.leaf_names[each] for each in suspicion.elements)


def _names(places: Places, endpoints: Sequence[int]) -> tuple[str, ...]:
    return tuple(str(places.endpoints[each]) for each in endpoints)


def evidence_line(test: PairTest, places: Places, unit: str) -> str:
    """Return a test in words: `n0001 -> n0002: 42.3 GB/s (round 6)`."""
    if test.value is None or unit == "s":
        shown = "no answer" if test.value is None else f"{test.value * 1e6:.2f} us"
    else:
        shown = f"{test.value / 1e9:.2f} GB/s" if test.value >= 1e8 else format_in(test.value, unit)
    ends = f"{places.endpoints[test.sender]} -> {places.endpoints[test.receiver]}"
    return f"{ends}: {shown} (round {test.round + 1}{', alone' if test.alone else ''})"


_ENDPOINT = {
    "nic": (
        "node {name}", "its NIC, its cable or its port at the leaf",
        "the node's own counters and `busbw doctor --here` on it",
    ),
    "nic_send": (
        "NIC of {name}, sending", "its cable or port in that direction", "the error counters of the port at the leaf",
    ),
    "nic_receive": (
        "NIC of {name}, receiving", "its cable or port in that direction", "the error counters of its NIC",
    ),
    "unsteady": (
        "link of {name}, which comes and goes", "a program on the node that comes and goes",
        "the link's downed and recovery counters over an hour",
    ),
}  # fmt: skip


def _wholes(
    bad: dict[int, tuple[Suspicion, Retest]], places: Places, tests: PairTable, unit: str
) -> Iterator[FabricAnswer]:
    """Yield confirmed endpoints, with those that make up most of a leaf or of a node as that."""
    left = dict(bad)
    groups: list[tuple[Kind, str, list[int]]] = []
    if places.leaf_names:
        groups += [
            ("leaf", f"leaf switch {places.leaf_names[leaf]}", list(ends)) for leaf, ends in places.members.items()
        ]
    of_node: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(places.endpoints):
        of_node[each.node].append(number)
    groups += [("node", f"node {node}", own) for node, own in of_node.items()]
    for kind, place, ends in groups:
        those = [each for each in ends if each in left]
        if len(ends) < _LEAST_TESTS or len(those) < _MOST_OF * len(ends):
            continue
        first = left[max(those, key=lambda each: left[each][0].effect)]
        seen = Retest(slow=sum(left[each][1].slow for each in those), of=sum(left[each][1].of for each in those),
                      tests=first[1].tests, alone_slow=None)  # fmt: skip
        otherwise = "each of its NICs or cables by itself" if kind == "node" else "all nodes below it"
        nodes = tuple(dict.fromkeys(places.endpoints[each].node for each in ends))
        leaf = places.leaves[ends[0]]
        parts = (places.leaf_names[leaf],) if kind == "leaf" and leaf is not None else _names(places, ends)
        yield _answer(first[0], seen, tests, places, unit, kind=kind, place=place, otherwise=otherwise,
                      clears="test them again after a move to another leaf", nodes=nodes, parts=parts)  # fmt: skip
        for end in those:
            del left[end]
    for end, (suspicion, seen) in left.items():
        endpoint = places.endpoints[end]
        words, otherwise, clears = _ENDPOINT[suspicion.kind]
        if suspicion.kind == "nic" and endpoint.rail is not None:
            words, otherwise = "NIC {name}", "its cable or its port at the leaf"
        kind = "node" if suspicion.kind == "nic" and endpoint.rail is None else suspicion.kind
        yield _answer(suspicion, seen, tests, places, unit, kind=kind, place=words.format(name=endpoint),
                      otherwise=otherwise, clears=clears, nodes=(endpoint.node,))  # fmt: skip


def _unanswered(places: Places, tests: PairTable, fit: Fit) -> Iterator[FabricAnswer]:
    """Yield endpoints that did not answer two partners or more, which answered others."""
    partners: dict[int, set[int]] = defaultdict(set)
    for number in tests.unanswered():
        one, other = tests.senders[number], tests.receivers[number]
        partners[one].add(other)
        partners[other].add(one)
    for end, others in sorted(partners.items()):
        if len(others) >= 2 and sum(fit.sent[each] + fit.received[each] > 0 for each in others) >= 2:
            those = [tests[number] for number in tests.among(places, (end,))]
            silent = [each for each in those if each.value is None]
            yield FabricAnswer(
                kind="unanswered",
                place=f"node {places.endpoints[end]}, which does not answer",
                loss=1.0,
                confidence="likely",
                evidence=tuple(evidence_line(each, places, "") for each in silent[:_SHOWN_TESTS]),
                slow_tests=len(silent),
                of_tests=len(those),
                otherwise="a firewall, or a daemon of the launcher that is not there",
                clears="start one rank on it alone",
                nodes=(places.endpoints[end].node,),
                parts=_names(places, (end,)),
            )
