"""What the terms of a fit make suspicious, the pairs that would tell, and the name of what the retests confirm."""

import math
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from busbw import _core
from busbw.fabric.answers import (
    FAR_SLOWER,
    LEAST_TESTS,
    LEAST_UNASKED,
    MOST_OF,
    SHOWN_TESTS,
    FabricAnswer,
    Kind,
    Least,
    Retest,
    Suspicion,
    answer_of,
    evidence_line,
    is_endpoint,
    names_of,
)
from busbw.fabric.between import confirmed_between, links_of, passes, retest, suspicions_between, wanted_between
from busbw.fabric.inference import DISTURBED, LEAST_EFFECT, Fit, disturbed_share
from busbw.fabric.pair_table import PairTable, leaf_column
from busbw.fabric.places import ONE_WAY, Draws, Places, slowness
from busbw.fabric.schedule import MANY_NODES, Pair, shuffled
from busbw.fabric.through import through_routers
from busbw.stats.distributions import median

# From so much slower on a single test counts for a link that comes and goes.
_LARGE = math.log(1.2)
# A round in which an endpoint is slow by no more than this is sound.
_SOUND = LEAST_EFFECT * 1.5
_PARTNERS = 6
# Bad rounds from which on a link that comes and goes is named though no retest saw it.
_OFTEN = 3
# So many tests within its leaf clear an endpoint, where their median is below this share of what it is suspected of;
# one is enough where that is much.
_LEAST_WITHIN, _SOUND_WITHIN = 2, 1 / 3
# Of so many tests, of all leaves, the usual value within leaves is known well enough.
_ENOUGH_TESTS = 2**16
# Of all tests of an endpoint of many so many are slow where it is bad.
_MOST_OF_MANY = 0.75
# Where one direction is suspicious, the retests decide about the other from this effect on.
_OTHER_WAY = 0.6 * LEAST_EFFECT


def suspicions(places: Places, tests: PairTable, fit: Fit, least: Least) -> tuple[Suspicion, ...]:
    """Return what is to be looked at again: the widest first; what explains tests keeps them from others."""
    found = suspicions_between(places, tests, fit, least)
    explained = {leaf for each in found if each.kind in ("cable", "leaf_uplink") for leaf in each.elements}
    found += _endpoints(places, tests, fit, explained, least.bad_rounds)
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


def is_slow_by_itself(suspicion: Suspicion, places: Places, tests: PairTable, fit: Fit, suspects: set[int]) -> bool:
    """Whether an endpoint was very slow with a partner that nothing is suspected of."""
    end = suspicion.elements[0]
    for number in tests.among(places, (end,)):
        ends = (tests.senders[number], tests.receivers[number])
        term = fit.senders[end] if end == ends[0] else fit.receivers[end]
        if fit.residuals[number] + term > _LARGE and not (suspects - {end}) & set(ends):
            return True
    return False


def wanted_pairs(
    suspicion: Suspicion, places: Places, good: Sequence[int], draws: Draws, met: Collection[Pair]
) -> tuple[Pair, ...]:
    """Return the pairs that would tell, the most telling first.

    `good`: endpoints that nothing is suspected of; `met`: pairs of earlier retests, another partner tells more.
    """
    if not is_endpoint(suspicion):
        return wanted_between(suspicion, places, good, draws, met)
    end = suspicion.elements[0]
    partners = [
        each for each in shuffled(good, draws) if places.endpoints[each].rail == places.endpoints[end].rail
        and places.endpoints[each].node != places.endpoints[end].node
    ]  # fmt: skip
    # Within the leaf first: nothing but the two ends and their switch is on that way.
    partners.sort(key=lambda each: ((end, each) in met or (each, end) in met, places.crossing(end, each)))
    return tuple((end, each) for each in partners[:_PARTNERS])


def confirmed(
    found: Sequence[Suspicion], places: Places, tests: PairTable, fit: Fit, unit: str
) -> tuple[tuple[FabricAnswer, ...], tuple[Suspicion, ...]]:
    """Return what of the suspicions two of three tests against known-good partners confirm, and the others."""
    suspects = {each.elements[0] for each in found if is_endpoint(each)}
    told = confirmed_between(found, places, tests, fit, suspects, unit)
    between = through_routers(told, places, tests, fit, suspects, unit)
    answers = [answer for answer in between.values() if answer is not None]
    # What a bad cable or a congested leaf does to a test says nothing about its ends.
    above = frozenset(leaf for each, answer in between.items() if answer is not None
                      and each.kind in ("cable", "leaf_uplink") for leaf in each.elements)  # fmt: skip
    links = links_of(between)
    usual = _usual_within(places, tests, fit, suspects) if suspects else None
    is_often = len(places.nodes) >= MANY_NODES or (
        bool(suspects) and _are_disturbed(places, tests, fit, suspects, above)
    )
    bad: dict[int, tuple[Suspicion, Retest]] = {}
    for each in found:
        if (
            is_endpoint(each)
            and (kept := _endpoint_of(each, places, tests, fit, suspects, above, links, usual, often=is_often))
            is not None
        ):
            bad[each.elements[0]] = kept
    answers += _wholes(bad, places, tests, unit)
    answers += _unanswered(places, tests, fit)
    named = {each.subject for each, answer in between.items() if answer is not None}
    cleared = [each for each in found
               if (each.elements[0] not in bad if is_endpoint(each) else each.subject not in named)]  # fmt: skip
    return tuple(sorted(answers, key=lambda each: -each.loss)), tuple(cleared)


def _endpoint_of(
    suspicion: Suspicion, places: Places, tests: PairTable, fit: Fit, suspects: set[int], above: frozenset[int],
    links: frozenset[frozenset[int]], usual: float | None, *, often: bool,
) -> tuple[Suspicion, Retest] | None:  # fmt: skip
    """Return an endpoint as what its tests confirm; None where they clear it.

    `often`: whether an endpoint of so many, or where so many tests are disturbed, is slow twice by chance.
    """
    if suspicion.kind == "unsteady":
        if (found := _comes_and_goes(suspicion, places, tests, fit, suspects, above, links, often=often)) is not None:
            return found
        # It may be slow in all rounds, and disturbed in one.
        end, ways = suspicion.elements[0], 2 * len(places.endpoints)
        suspicion = replace(suspicion, kind="nic", effect=max(fit.senders[end], fit.receivers[end]))
        if suspicion.effect < min(fit.bound(fit.sent[end], ways), fit.bound(fit.received[end], ways)):
            return None
    return _always_slow(suspicion, places, tests, fit, suspects, above, links, usual, often=often)


def _always_slow(
    suspicion: Suspicion, places: Places, tests: PairTable, fit: Fit, suspects: set[int], above: frozenset[int],
    links: frozenset[frozenset[int]], usual: float | None, *, often: bool,
) -> tuple[Suspicion, Retest] | None:  # fmt: skip
    """Return an endpoint with the directions that its tests confirm; None where they clear it."""
    end = suspicion.elements[0]
    both = retest(suspicion, places, tests, fit, suspects, above=above, but=links)
    ways = {way: retest(suspicion, places, tests, fit, suspects, way, above, but=links) for way in ("send", "receive")}
    terms = {"send": fit.senders[end], "receive": fit.receivers[end]}
    asked = tests.first_retest < len(tests)
    # One is disturbed in half of the first rounds by chance, and then in two of three more.
    whole = tests.among(places, (end,)) if often else ()
    all_of = {way: retest(suspicion, places, tests, fit, suspects, way, above, but=links, numbers=whole)
              for way in ways} if whole else ways  # fmt: skip
    sure = [
        way for way in ways if ways[way].confirms and terms[way] >= _OTHER_WAY
        and (not whole or all_of[way].slow >= _MOST_OF_MANY * all_of[way].of)
        and (asked or ways[way].of >= LEAST_UNASKED or terms[way] >= FAR_SLOWER)
    ]  # fmt: skip
    effect = max((terms[way] for way in sure), default=0.0)
    if not sure:
        return None
    if _is_sound_within(end, places, tests, fit, suspects, sure, effect, usual):
        # Within the leaf it was slow as well, in some rounds.
        bad = _bad_rounds(end, places, tests, fit, above)
        if any(not places.crossing(tests.senders[at], tests.receivers[at]) for those in bad.values() for at in those):
            return _comes_and_goes(
                replace(suspicion, kind="unsteady"), places, tests, fit, suspects, above, links, often=often
            )
        return None
    if len(sure) == 2 or fit.metric not in ONE_WAY:
        return Suspicion(kind="nic", elements=(end,), effect=effect), both
    kind: Kind = "nic_send" if sure == ["send"] else "nic_receive"
    return Suspicion(kind=kind, elements=(end,), effect=effect), ways[sure[0]]


def _comes_and_goes(
    suspicion: Suspicion, places: Places, tests: PairTable, fit: Fit, suspects: set[int], above: frozenset[int],
    links: frozenset[frozenset[int]], *, often: bool,
) -> tuple[Suspicion, Retest] | None:  # fmt: skip
    """Return an endpoint that is very slow in some rounds, with the tests of those; None where too few show it.

    One of the retests in which it came is enough, beside the rounds before; or it came so often before that the retests
    may have missed it. Where a round has both directions by themselves both must be slow; where it has one test, chance
    does that sooner.
    """
    end = suspicion.elements[0]
    bad = _bad_rounds(end, places, tests, fit, above)
    # A partner that was slow with this endpoint alone is suspected because of it, where another one was so too.
    partners = _partners(end, bad, tests)
    if len(partners) > 1:
        own = {
            each for each in partners if _partners(each, _bad_rounds(each, places, tests, fit, above), tests) == {end}
        }
        suspects = suspects - own
    seen = retest(suspicion, places, tests, fit, suspects, above=above, but=links)
    is_one_way = fit.metric in ONE_WAY
    numbers = tuple(number for at in sorted(bad) for number in bad[at])
    # Two partners both ways, further than what disturbs a test, and never one way alone, as a cable above it would be.
    effects = {number: _effect_at(end, number, tests, fit) for number in tests.among(places, (end,))}
    slow_alone = {tests.rounds[at] for at, effect in effects.items() if effect > FAR_SLOWER} - set(bad)
    far = len(partners) > 1 and not slow_alone and all(effects[number] > FAR_SLOWER for number in numbers)
    if any(tests.rounds[number] in bad for number in seen.tests):
        # Of many hosts one is disturbed in two rounds of twelve.
        enough = len(bad) >= (2 if is_one_way and not often else 3)
        return (suspicion, seen) if enough or (is_one_way and len(bad) > 1 and far) else None
    came = is_one_way and (len(bad) >= _OFTEN or far) and tests.first_retest < len(tests)
    made = sum(not math.isnan(effect) for effect in effects.values())
    return (suspicion, replace(seen, slow=len(numbers), of=made, tests=numbers, again=False)) if came else None


def _are_disturbed(places: Places, tests: PairTable, fit: Fit, suspects: set[int], above: frozenset[int]) -> bool:
    """Whether more tests of those that nothing is suspected of are slow than is taken for granted. Of many a sample."""
    slow = of = 0
    for number in tests.spread(max(1, len(tests) // _ENOUGH_TESTS)):
        ends = (tests.senders[number], tests.receivers[number])
        if not suspects & {*ends} and not (above and passes(places, ends, above)):
            of += not math.isnan(fit.residuals[number])
            slow += fit.residuals[number] > fit.slower
    return disturbed_share(slow, of) > DISTURBED


def _effect_at(end: int, number: int, tests: PairTable, fit: Fit) -> float:
    """Return how slow a test was by what is left of it and the term of one of its ends; NaN where it has no value."""
    return fit.residuals[number] + (fit.senders if tests.senders[number] == end else fit.receivers)[end]


def _partners(end: int, bad: dict[int, list[int]], tests: PairTable) -> set[int]:
    """Return with whom an endpoint was tested in its bad rounds."""
    numbers = [number for those in bad.values() for number in those]
    return {each for number in numbers for each in (tests.senders[number], tests.receivers[number])} - {end}


def _usual_within(places: Places, tests: PairTable, fit: Fit, suspects: set[int]) -> float | None:
    """Return the median logarithm of tests within leaves between endpoints that nothing is suspected of.

    Of millions of tests a sample; None: there are too few.
    """
    found: list[float] = []
    for number in tests.spread(max(1, len(tests) // _ENOUGH_TESTS)):
        one, other, value = tests.senders[number], tests.receivers[number], tests.values[number]
        leaf = places.leaves[one]
        if leaf is not None and leaf == places.leaves[other] and not {one, other} & suspects and not math.isnan(value):
            found.append(math.log(slowness(value, fit.metric)))
    found.sort()
    return median(found) if len(found) >= _LEAST_WITHIN else None


def _is_sound_within(
    end: int, places: Places, tests: PairTable, fit: Fit, suspects: set[int], ways: Sequence[str], effect: float,
    usual: float | None,
) -> bool:  # fmt: skip
    """Whether tests within its leaf are as fast as those of others: then what is bad lies beyond the leaf.

    By the values themselves: one bad cable of several slows all that comes to some of the hosts, where routes go by
    destination, and the fit of few tests takes part of it for slowness of partners.
    """
    if places.leaves[end] is None or usual is None:
        return False
    within: list[float] = []
    for number in tests.among(places, (end,)):
        one, other, value = tests.senders[number], tests.receivers[number], tests.values[number]
        if math.isnan(value) or places.crossing(one, other) or (suspects - {end}) & {one, other}:
            continue
        if ("send" if one == end else "receive") in ways or fit.metric not in ONE_WAY:
            within.append(math.log(slowness(value, fit.metric)))
    if len(within) < (1 if effect > _LARGE else _LEAST_WITHIN):
        return False
    return median(sorted(within)) - usual < _SOUND_WITHIN * effect


def _bad_rounds(end: int, places: Places, tests: PairTable, fit: Fit, above: frozenset[int]) -> dict[int, list[int]]:
    """Return the rounds in which all tests of an endpoint were very slow, with the numbers of those.

    `above`: leaves of which no test that leaves them counts.
    """
    rounds: dict[int, list[int]] = defaultdict(list)
    sound: set[int] = set()
    for number in tests.among(places, (end,)):
        ends = (tests.senders[number], tests.receivers[number])
        if not math.isnan(fit.residuals[number]) and not (above and passes(places, ends, above)):
            rounds[tests.rounds[number]].append(number)
            if _effect_at(end, number, tests, fit) <= _LARGE:
                sound.add(tests.rounds[number])
    bad = {at: numbers for at, numbers in rounds.items() if at not in sound}
    return {at: numbers for at, numbers in bad.items() if at not in _shared_rounds(end, bad, places, tests, fit)}


def _shared_rounds(end: int, bad: Collection[int], places: Places, tests: PairTable, fit: Fit) -> set[int]:
    """Return bad rounds in which an endpoint was tested across leaves, and what others of its leaf had across was slow.

    Traffic of others above the leaf comes and goes as well.
    """
    leaf = places.leaves[end]
    if leaf is None or not bad:
        return set()
    own: set[int] = set()
    others: dict[int, list[float]] = defaultdict(list)
    for number in tests.among(places, places.members[leaf]):
        pair, at = (tests.senders[number], tests.receivers[number]), tests.rounds[number]
        if at not in bad or not places.crossing(*pair) or math.isnan(fit.residuals[number]):
            continue
        if end in pair:
            own.add(at)
        else:
            others[at].append(fit.residuals[number])
    return {at for at, those in others.items()
            if at in own and len(those) >= LEAST_TESTS and median(sorted(those)) > LEAST_EFFECT}  # fmt: skip


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
_GPU = (
    "GPU {name}", "its NVLinks, or other work on it", "`nvidia-smi nvlink -e` and `busbw doctor --here` on its host",
)  # fmt: skip


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
        if len(ends) < LEAST_TESTS or len(those) < MOST_OF * len(ends):
            continue
        first = left[max(those, key=lambda each: left[each][0].effect)]
        seen = Retest(slow=sum(left[each][1].slow for each in those), of=sum(left[each][1].of for each in those),
                      tests=first[1].tests, alone_slow=None)  # fmt: skip
        otherwise = "each of its NICs or cables by itself" if kind == "node" else "all nodes below it"
        nodes = tuple(dict.fromkeys(places.endpoints[each].node for each in ends))
        leaf = places.leaves[ends[0]]
        parts = (places.leaf_names[leaf],) if kind == "leaf" and leaf is not None else names_of(places, ends)
        yield answer_of(first[0], seen, tests, places, unit, kind=kind, place=place, otherwise=otherwise,
                      clears="test them again after a move to another leaf", nodes=nodes, parts=parts)  # fmt: skip
        for end in those:
            del left[end]
    for end, (suspicion, seen) in left.items():
        endpoint = places.endpoints[end]
        words, otherwise, clears = _ENDPOINT[suspicion.kind]
        if suspicion.kind == "nic" and places.are_gpus:
            words, otherwise, clears = _GPU
        elif suspicion.kind == "nic" and endpoint.rail is not None:
            words, otherwise = "NIC {name}", "its cable or its port at the leaf"
        kind = "node" if suspicion.kind == "nic" and endpoint.rail is None else suspicion.kind
        yield answer_of(suspicion, seen, tests, places, unit, kind=kind, place=words.format(name=endpoint),
                      otherwise=otherwise, clears=clears, nodes=(endpoint.node,))  # fmt: skip


def _unanswered(places: Places, tests: PairTable, fit: Fit) -> Iterator[FabricAnswer]:
    """Yield endpoints that did not answer two partners or more, which answered others.

    Who answers nobody is taken first, with all that it did not answer: its partners are not silent for it.
    """
    partners: dict[int, set[int]] = defaultdict(set)
    for number in tests.unanswered():
        one, other = tests.senders[number], tests.receivers[number]
        partners[one].add(other)
        partners[other].add(one)
    silent_ends = []
    while partners:
        end = min(partners, key=lambda each: (-len(partners[each]), each))
        others = partners.pop(end)
        if len(others) < 2:
            break
        for other in others:
            partners[other].discard(end)
        if sum(fit.sent[each] + fit.received[each] > 0 for each in others) >= 2:
            silent_ends.append(end)
    for end in sorted(silent_ends):
        those = [tests[number] for number in tests.among(places, (end,))]
        silent = [each for each in those if each.value is None]
        yield FabricAnswer(
            kind="unanswered",
            place=f"node {places.endpoints[end]}, which does not answer",
            loss=1.0,
            confidence="likely",
            evidence=tuple(evidence_line(each, places, "") for each in silent[:SHOWN_TESTS]),
            slow_tests=len(silent),
            of_tests=len(those),
            otherwise="a firewall, or a daemon of the launcher that is not there",
            clears="start one rank on it alone",
            nodes=(places.endpoints[end].node,),
            parts=names_of(places, (end,)),
        )
