"""A link, the uplinks of a leaf, one cable of several and a link that comes and goes are told from each other."""

import random
from collections.abc import Collection

import pytest

from busbw.fabric.places import Pairing
from busbw.fabric.procedure import Swept, sweep
from busbw.fabric.simulation import Fault, FaultKind, Noise, Simulated, Topology, drawn_faults, made_places

NODES = 16


def swept(fault: Fault | None, seed: int, flaps: Collection[int] = (), nodes: int = NODES, left: float = 0.4) -> Swept:
    """Return a sweep; what host 9 has to do with is at 40 %, or what is `left`, in the rounds `flaps`."""
    draws = random.Random(seed)
    places = made_places("fat-tree-2", nodes)
    faults = () if fault is None else (fault,)
    fabric = Simulated(
        topology="fat-tree-2", places=places, faults=faults, noise=Noise(), metric="bandwidth", draws=draws
    )

    def measure(pairs: list[Pairing], number: int) -> list[float | None]:
        values = fabric.measure(pairs, number)
        return [
            left * value if value is not None and number in flaps and 9 in (pair.sender, pair.receiver) else value
            for pair, value in zip(pairs, values, strict=True)
        ]

    return sweep(places, measure, "bandwidth", draws)


def kinds(outcome: Swept) -> list[str]:
    return [each.kind for each in outcome.answers]


def places_named(outcome: Swept) -> list[str]:
    return [each.place for each in outcome.answers]


def test_a_link_between_two_of_four_leaves_is_named_and_neither_leaf_for_it() -> None:
    right = 0
    for seed in range(24):
        one, other = random.Random(seed).sample(range(4), 2)
        outcome = swept(Fault(kind="spine-link", element=one, other=other), seed)
        right += places_named(outcome) == [f"a link above leaf{min(one, other)} and leaf{max(one, other)}"]
        assert "leaf" not in kinds(outcome)
    assert right == 24


def test_the_uplinks_of_one_of_four_leaves_are_named_and_no_link_for_them() -> None:
    named = [places_named(swept(Fault(kind="leaf-uplink", element=seed % 4), seed)) for seed in range(24)]
    assert sum(each == [f"uplinks of leaf{seed % 4}"] for seed, each in enumerate(named)) >= 23


def test_one_cable_of_several_is_not_taken_for_all_uplinks_of_its_leaf() -> None:
    named = [
        places_named(swept(Fault(kind="cable-static", element=seed % 4, other=seed // 4 % 4, effect=0.5), seed))
        for seed in range(32)
    ]
    right = [each == [f"one of several cables above leaf{seed % 4}"] for seed, each in enumerate(named)]
    assert sum(right) >= 29
    assert sum(bool(each) for each in named) - sum(right) <= 3


def test_by_destination_the_cable_of_one_host_is_named_and_not_its_nic() -> None:
    # Below leaf0 it carries what comes to host 1; 36 of 96 ways across.
    outcomes = [swept(Fault(kind="cable-destination", element=0, other=3, effect=0.5), seed) for seed in range(20)]
    assert sum(places_named(each) == ["one of several cables above leaf0"] for each in outcomes) >= 18
    assert not any({"node", "nic_receive", "nic_send"} & set(kinds(each)) for each in outcomes)


@pytest.mark.parametrize(
    ("flaps", "confidence"),
    [
        # Slow in all rounds across leaves and in none within its leaf, as a cable above it would be, but both ways.
        ((2, 3, 4), "possible"),
        # With two partners before the retests, and in none of those.
        ((1, 4), "possible"),
        # Its partner in the retest is suspected as well, because of it.
        ((1, 5), "likely"),
        ((0, 6), "likely"),
    ],
)
def test_a_link_that_was_down_in_two_rounds_is_named(flaps: tuple[int, ...], confidence: str) -> None:
    found = [swept(None, seed, flaps, nodes=64).answers for seed in range(6)]
    named = [each for each in found if [answer.place for answer in each] == ["link of n0009, which comes and goes"]]
    assert len(named) >= 5
    assert {each[0].confidence for each in named} == {confidence}


def test_a_link_that_was_down_in_one_round_is_not_told_from_its_partner() -> None:
    for seed in range(6):
        assert swept(None, seed, (3,), nodes=64).answers == ()


def test_a_slow_node_that_was_disturbed_in_one_round_is_still_named() -> None:
    named = [places_named(swept(Fault(kind="node", element=9), seed, (1,), nodes=64, left=0.75)) for seed in range(6)]
    assert named == [["node n0009"]] * 6


def drawn(topology: Topology, nodes: int, kind: FaultKind, seed: int) -> tuple[tuple[Fault, ...], Swept]:
    """Return faults of a kind at a random place, and a sweep of the fabric that has them."""
    draws = random.Random(seed)
    places = made_places(topology, nodes)
    faults = drawn_faults(kind, places, draws)
    fabric = Simulated(topology=topology, places=places, faults=faults, noise=Noise(), metric="bandwidth", draws=draws)
    return faults, sweep(places, fabric.measure, "bandwidth", draws)


def test_traffic_that_comes_and_goes_above_a_leaf_is_no_host_below_it() -> None:
    # Congestion that was heavy in one round of the retests and light in the others: two hosts were named for it.
    assert "unsteady" not in kinds(drawn("fat-tree-3", 64, "congestion", 300010)[1])


@pytest.mark.parametrize(("nodes", "seeds"), [(256, (500005, 500011, 500012, 500015)), (1024, (500015,))])
def test_congestion_above_one_of_many_leaves_is_named_and_none_of_its_links(nodes: int, seeds: Collection[int]) -> None:
    # It changes from round to round: links of the leaf that were tested in a bad round were named beside it.
    for seed in seeds:
        (fault,), outcome = drawn("fat-tree-2", nodes, "congestion", seed)
        assert places_named(outcome) == [f"congestion above leaf{fault.element}"]


@pytest.mark.parametrize("seed", [500104, 8300001])
def test_of_a_thousand_sound_hosts_one_that_is_disturbed_again_is_not_named(seed: int) -> None:
    assert drawn("fat-tree-2", 1024, "none", seed)[1].answers == ()


def test_a_link_between_groups_is_named_where_part_of_the_packets_goes_another_way() -> None:
    right = 0
    for seed in range(20):
        (fault,), outcome = drawn("dragonfly-adaptive", 64, "spine-link", seed)
        ends = [outcome.places.region_leaves(each) for each in sorted((fault.element, fault.other))]
        right += places_named(outcome) == ["a link above " + " and ".join(f"leaf{one}, leaf{two}" for one, two in ends)]
        assert drawn("dragonfly-adaptive", 64, "none", seed)[1].answers == ()
    assert right >= 18


def test_one_bad_router_of_a_dragonfly_is_one_answer_and_so_is_one_bad_link_within_a_group() -> None:
    """What passes a bad router, or a bad link to most others, is named with it and not by itself."""
    routers = links = 0
    for seed in range(12):
        (fault,), outcome = drawn("dragonfly", 64, "leaf-uplink", seed)
        routers += places_named(outcome) == [f"uplinks of leaf{fault.element}"]
        (fault,), outcome = drawn("dragonfly", 64, "local-link", seed)
        links += places_named(outcome) == [f"a link above leaf{fault.element} and leaf{fault.other}"]
    assert routers >= 10
    assert links >= 10


def test_a_link_within_one_of_many_groups_is_named() -> None:
    for seed in range(3):
        (fault,), outcome = drawn("fat-tree-3", 256, "local-link", seed)
        assert places_named(outcome) == [f"a link above leaf{fault.element} and leaf{fault.other}"]


def test_a_tenth_that_is_lost_above_one_of_two_leaves_of_four_hosts_is_told_of_all_ways_between_them() -> None:
    for seed in range(12):
        (_,), outcome = drawn("fat-tree-2", 8, "leaf-uplink", seed)
        assert kinds(outcome) == ["crossing"]
        assert drawn("fat-tree-2", 8, "none", seed)[1].answers == ()
