"""What may be bad in a fabric, what came of the tests about it, and the answer that they amount to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from busbw.base.units import format_in
from busbw.base.value import Integer, Value
from busbw.fabric.inference import LEAST_EFFECT
from busbw.fabric.pair_table import PairTable
from busbw.fabric.places import PairTest, Places
from busbw.fabric.schedule import Pair
from busbw.model.finding import Confidence

Kind = Literal[
    "node", "nic", "nic_send", "nic_receive", "rail", "leaf", "leaf_uplink", "spine_link", "crossing", "cable",
    "congestion", "unsteady", "unanswered", "slow",
]  # fmt: skip
# Of an endpoint, or of the node that it is.
ENDPOINT_KINDS: tuple[Kind, ...] = ("node", "nic", "nic_send", "nic_receive", "unsteady")
# What is confirmed of a whole makes the whole the answer.
MOST_OF = 0.75
LEAST_TESTS = 3
SHOWN_TESTS = 6
# Without retests an answer needs so many tests of a direction: of fewer two or three that are disturbed make a median,
# which must lie beyond what disturbs a test then, 30 % in the simulation.
LEAST_UNASKED = 5
FAR_SLOWER = -math.log(0.7)
# What retests must show by themselves, and how far beyond the scatter of their median.
_LEAST_AGAIN = 0.8 * LEAST_EFFECT
_SCATTERS_AGAIN = 2.0


@dataclass(frozen=True, kw_only=True)
class Least:
    """From what on a link that comes and goes, or one cable of several, is suspicious."""

    bad_rounds: int
    # Slow tests that leave a leaf, and how rarely chance makes as many.
    cluster: int
    chance: float


# What is asked again may be less than what is named as it stands.
TO_ASK = Least(bad_rounds=1, cluster=2, chance=0.05)
TO_NAME = Least(bad_rounds=2, cluster=3, chance=0.002)


@dataclass(frozen=True, kw_only=True)
class Suspicion:
    """Something that may be bad. `elements`: endpoints, leaves, regions, hops; `pairs`: the tests that say so."""

    kind: Kind
    elements: tuple[int, ...]
    # Logarithm of slowness.
    effect: float
    pairs: tuple[Pair, ...] = ()
    # The number of tests that it was suspected from: those from here on are retests of it.
    since: int = 0

    @property
    def subject(self) -> tuple[Kind, tuple[int, ...]]:
        """What it is about: the same in every look at the tests."""
        return self.kind, self.elements


def is_endpoint(each: Suspicion) -> bool:
    """Whether a suspicion is of an endpoint, not of what lies between."""
    return each.kind in ("nic", "nic_send", "nic_receive", "unsteady")


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
    # What it names, as `Places` does: endpoints, a rail, leaves (of a spine link of both sides); (): all, or `hops`.
    parts: tuple[str, ...] = ()
    # Where all tests of some hop classes are it: these, as `Places.hops` counts them.
    hops: tuple[Integer, ...] = ()

    def slower(self, digits: int) -> str:
        """Return how much slower it is, as a sentence goes on: `, 9.5 % slower`; "" of one that does not answer."""
        return "" if self.kind == "unanswered" else f", {100 * self.loss:.{digits}f} % slower"


@dataclass(frozen=True, kw_only=True)
class Retest:
    """What came of the tests that were made about a suspicion."""

    slow: int
    of: int
    tests: tuple[int, ...]
    alone_slow: bool | None
    # By how much, in the median of those alone; a logarithm.
    alone_effect: float = 0.0
    # The same of the others. And the scatter of that median where nothing is wrong.
    effect: float = 0.0
    scatter: float = 0.0
    # Whether a retest shows it, not the first rounds alone.
    again: bool = True

    @property
    def confirms(self) -> bool:
        """Whether two of three show it, and they come near the least effect by themselves, beyond their scatter."""
        least = max(_LEAST_AGAIN, _SCATTERS_AGAIN * self.scatter)
        return self.of >= 2 and 3 * self.slow >= 2 * self.of and self.effect >= least

    @property
    def confirms_alone(self) -> bool:
        """Whether tests alone show the least effect, and those among others half of it, beyond their scatter."""
        least = max(LEAST_EFFECT / 2, _SCATTERS_AGAIN * self.scatter)
        return self.alone_effect >= LEAST_EFFECT and 2 * self.slow >= self.of and self.effect >= least


def answer_of(
    suspicion: Suspicion, seen: Retest, tests: PairTable, places: Places, unit: str, *, kind: Kind, place: str,
    otherwise: str, clears: str, nodes: tuple[str, ...] = (), parts: tuple[str, ...] = (),
) -> FabricAnswer:  # fmt: skip
    """Return a confirmed suspicion as an answer. `seen`: the tests that confirm it; `parts`: those of the suspicion."""
    retested = tests.first_retest < len(tests)
    return FabricAnswer(
        kind=kind,
        place=place,
        loss=1 - math.exp(-suspicion.effect),
        confidence="likely" if seen.again and (retested or seen.of >= 2 * LEAST_TESTS) else "possible",
        evidence=tuple(evidence_line(tests[each], places, unit) for each in seen.tests[:SHOWN_TESTS]),
        slow_tests=seen.slow,
        of_tests=seen.of,
        otherwise=otherwise,
        clears=clears,
        nodes=nodes,
        parts=parts or _parts(suspicion, places),
        hops=suspicion.elements if suspicion.kind == "crossing" else (),
    )


def _parts(suspicion: Suspicion, places: Places) -> tuple[str, ...]:
    if suspicion.kind == "rail":
        return (str(places.endpoints[suspicion.elements[0]].rail),)
    if suspicion.kind == "crossing":
        return ()
    if is_endpoint(suspicion):
        return names_of(places, suspicion.elements)
    return tuple(places.leaf_names[leaf] for region in suspicion.elements for leaf in places.region_leaves(region))


def names_of(places: Places, endpoints: Sequence[int]) -> tuple[str, ...]:
    """Return endpoints as tables name them."""
    return tuple(str(places.endpoints[each]) for each in endpoints)


def evidence_line(test: PairTest, places: Places, unit: str) -> str:
    """Return a test in words: `n0001 -> n0002: 42.3 GB/s (round 6)`."""
    if test.value is None or unit == "s":
        shown = "no answer" if test.value is None else f"{test.value * 1e6:.2f} us"
    else:
        shown = f"{test.value / 1e9:.2f} GB/s" if test.value >= 1e8 else format_in(test.value, unit)
    ends = f"{places.endpoints[test.sender]} -> {places.endpoints[test.receiver]}"
    return f"{ends}: {shown} (round {test.round + 1}{', alone' if test.alone else ''})"
