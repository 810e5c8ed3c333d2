"""Ways of a dragonfly that pass routers of neither end: what one bad router or link slows beside its own ways.

A flow between two groups passes the link between them, at one router of each, and a link within its own group where its
host is below another router. So a router that is slow slows links between groups as well, and a slow link within a
group slows most of what leaves a router, which looks like its uplinks.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from itertools import chain

from msgspec.structs import replace

from busbw.fabric.answers import LEAST_TESTS, FabricAnswer, Retest, Suspicion
from busbw.fabric.between import links_of, named_between
from busbw.fabric.inference import LEAST_EFFECT, Fit
from busbw.fabric.pair_table import PairTable
from busbw.fabric.places import Places
from busbw.stats.distributions import median

# Of the tests of a router that is bad itself so many are slow; of one whose ways pass another that is, fewer.
_OF_ITSELF = 5 / 6
# A region is slow from a router where most tests to it are, and sound where few are.
_MOST, _FEW = 2 / 3, 1 / 3
# What passes what is bad loses no more than this, as a multiple; medians of few tests scatter.
_MORE = 1.3

Told = Mapping[Suspicion, FabricAnswer | None]
# The tests of a router by the region at their far end: number, and how slow beside tests within leaves.
Ways = Mapping[int, list[tuple[int, float]]]


def through_routers(
    told: Told, places: Places, tests: PairTable, fit: Fit, suspects: set[int], unit: str
) -> dict[Suspicion, FabricAnswer | None]:
    """Return answers between endpoints, one where ways through another router or link explain several.

    What is explained stands with the answer that explains it. Of fabrics without groups nothing changes.
    """
    if not places.has_groups:
        return dict(told)
    found = dict(told)
    links = links_of(told)
    # Routers of which all ways are slow.
    whole: set[int] = set()
    for each in sorted(told, key=lambda own: -own.effect):
        if each.kind != "leaf_uplink":
            continue
        leaf = each.elements[0]
        ways = _ways_out(leaf, places, tests, fit, suspects)
        slow = _slow_regions(ways, each.effect / 2)
        if len(slow) == 1 and _between(leaf, slow[0], places) in links:
            # Of its ways only those over one link are slow.
            found[each] = None
        elif slow and len(slow) == len(ways):
            whole.add(leaf)
        elif (link := _link_within(each, ways, slow, places)) is not None:
            found[each] = None
            known = next((other for other in found if other.subject == link[0].subject), link[0])
            answer = found.get(known) or named_between(*link, places, tests, unit)
            found[known] = _with_more(answer, f"what {places.leaf_names[leaf]} sends to other groups over it")
    return _gathered(found, whole, places)


def _gathered(told: Told, whole: set[int], places: Places) -> dict[Suspicion, FabricAnswer | None]:
    """Return answers of which each holds those that traffic through it explains. `whole`: leaves, all ways slow."""
    found = dict(told)
    for each in sorted(found, key=lambda own: -own.effect):
        answer = found[each]
        if answer is not None and (group := _group_of(each, places)) is not None:
            passing = {other: held for other, held in found.items()
                       if held is not None and _passes(other, held, each, answer, group, whole, places)}  # fmt: skip
            if passing:
                found[each] = _with_more(answer, ", ".join(held.place for held in passing.values()))
                found |= dict.fromkeys(passing)
    return found


def _with_more(answer: FabricAnswer, slow: str) -> FabricAnswer:
    """Return an answer that says what is slow as well, because its traffic passes what is named."""
    return replace(answer, otherwise=f"{answer.otherwise}; slow as well, for traffic that passes it: {slow}")


def _ways_out(leaf: int, places: Places, tests: PairTable, fit: Fit, suspects: set[int]) -> Ways:
    found: dict[int, list[tuple[int, float]]] = defaultdict(list)
    own = {leaf, places.group_region(places.groups[leaf])}
    for number in tests.among(places, places.members[leaf]):
        ends = (tests.senders[number], tests.receivers[number])
        link = places.link(*ends)
        if link is not None and not math.isnan(fit.residuals[number]) and not suspects & {*ends}:
            term = (fit.leaf_up if places.leaves[ends[0]] == leaf else fit.leaf_down).get(leaf, 0.0)
            found[min(link - own)].append((number, fit.residuals[number] + term))
    return {far: held for far, held in found.items() if len(held) >= LEAST_TESTS}


def _slow_regions(ways: Ways, least: float) -> tuple[int, ...]:
    """Return the regions that are slow from a router, the others being sound; () where some are neither."""
    shares = {far: sum(effect > least for _, effect in held) / len(held) for far, held in ways.items()}
    if any(_FEW < share < _MOST for share in shares.values()):
        return ()
    return tuple(far for far, share in shares.items() if share >= _MOST)


def _between(leaf: int, far: int, places: Places) -> frozenset[int]:
    """Return the link that the ways from a leaf to a region go over."""
    return frozenset((leaf if far < len(places.leaf_names) else places.group_region(places.groups[leaf]), far))


def _link_within(
    suspicion: Suspicion, ways: Ways, slow: tuple[int, ...], places: Places
) -> tuple[Suspicion, Retest] | None:
    """Return the link within its group that slows a router's ways to some regions and leaves those to others sound."""
    near = [far for far in slow if far < len(places.leaf_names)]
    if len(near) != 1:
        return None
    held = sorted(chain.from_iterable(ways[far] for far in slow))
    effect = median(sorted(each for _, each in held))
    if effect < LEAST_EFFECT:
        return None
    numbers = tuple(number for number, each in held if each > suspicion.effect / 2)
    ends = sorted((suspicion.elements[0], near[0]))
    return (
        Suspicion(kind="spine_link", elements=tuple(ends), effect=effect),
        Retest(slow=len(numbers), of=len(held), tests=numbers[::-1], alone_slow=None, effect=effect),
    )


def _group_of(suspicion: Suspicion, places: Places) -> int | None:
    """Return the group of a router, or of a link within one."""
    first = suspicion.elements[0]
    is_within = suspicion.kind in ("leaf_uplink", "spine_link") and first < len(places.leaf_names)
    return places.groups[first] if is_within else None


def _passes(
    other: Suspicion, held: FabricAnswer, bad: Suspicion, answer: FabricAnswer, group: int, whole: set[int],
    places: Places,
) -> bool:  # fmt: skip
    """Whether what is slow may be so by ways through what is bad in a group: of that group, and about as slow."""
    if other is bad or held.loss > _MORE * answer.loss:
        return False
    if other.kind == "cable":
        return places.groups[other.elements[0]] == group
    if other.kind == "leaf_uplink":
        is_of_itself = held.slow_tests >= _OF_ITSELF * held.of_tests
        return places.groups[other.elements[0]] == group and not is_of_itself
    if other.kind == "spine_link" and bad.kind == "leaf_uplink" and bad.elements[0] in other.elements:
        return bad.elements[0] in whole
    return other.kind == "spine_link" and places.group_region(group) in other.elements
