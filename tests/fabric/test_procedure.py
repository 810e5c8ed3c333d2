"""Each kind of fault is named at its place, a sound fabric raises no alarm, whatever the topology."""

import random
import re
from dataclasses import replace

import pytest

from busbw.api.sweeping.fabrics import FabricRequest, judge_fabric
from busbw.fabric.bands import bands, inferred_leaves
from busbw.fabric.drawing import report_lines
from busbw.fabric.places import Endpoint, Pairing, PairTest, Places, flat
from busbw.fabric.procedure import analysed, sweep
from busbw.fabric.report import ExpectedPair, report
from busbw.fabric.simulation import Fault, Noise, Simulated, made_places

SEEDS = (1, 2, 3, 4, 5)


def swept(topology, faults, seed, *, nodes=64, metric="bandwidth", sigma=0.02, full=False):
    draws = random.Random(seed)
    places = made_places(topology, nodes)
    fabric = Simulated(
        topology=topology, places=places, faults=faults, noise=Noise(sigma=sigma), metric=metric, draws=draws
    )
    return sweep(places, fabric.measure, metric, draws, full=full)


def answers(outcome) -> list[tuple[str, str]]:
    return [(each.kind, each.place) for each in outcome.answers]


def test_flows_of_a_dragonfly_pass_routers_of_neither_end_and_detours_share_what_is_bad() -> None:
    """Four groups of two routers, eight hosts; groups 0 and 1 are regions 8 and 9, linked at routers 0 and 2."""
    quiet = Noise(sigma=0, spikes=0, drift=0)
    pairs = [Pairing(sender=one, receiver=other) for one, other in ((8, 24), (0, 8), (8, 40), (16, 56))]
    others = [Pairing(sender=17 + each, receiver=57 + each) for each in range(6)]
    bad = {
        "local-link": Fault(kind="local-link", element=0, other=1, effect=0.5),
        "spine-link": Fault(kind="spine-link", element=8, other=9, effect=0.5),
    }
    shares = {}
    for topology in ("dragonfly", "dragonfly-adaptive"):
        for kind, fault in bad.items():
            fabric = Simulated(topology=topology, places=made_places(topology, 64), faults=(fault,), noise=quiet,
                               metric="bandwidth", draws=random.Random(1))  # fmt: skip
            values = fabric.measure(pairs + others, 0)
            shares[topology, kind] = [round(1 - (value or 0) / 47.5e9, 6) for value in values[:4]]
    assert shares["dragonfly", "local-link"] == [0.5, 0.5, 0.0, 0.0]
    assert shares["dragonfly", "spine-link"] == [0.5, 0.0, 0.0, 0.0]
    assert 0.25 <= shares["dragonfly-adaptive", "spine-link"][0] < 0.5
    assert 0 < shares["dragonfly-adaptive", "spine-link"][2] <= 0.125


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("topology", "fault", "expected"),
    [
        ("dragonfly", Fault(kind="spine-link", element=8, other=10, effect=0.15),
         ("spine_link", "a link above leaf0, leaf1 and leaf4, leaf5")),
        ("fat-tree-2", Fault(kind="node", element=9), ("node", "node n0009")),
        ("fat-tree-2", Fault(kind="nic-send", element=20), ("nic_send", "NIC of n0020, sending")),
        ("dragonfly", Fault(kind="nic-receive", element=40), ("nic_receive", "NIC of n0040, receiving")),
        ("fat-tree-2", Fault(kind="leaf-uplink", element=2), ("leaf_uplink", "uplinks of leaf2")),
        ("fat-tree-2", Fault(kind="cable-static", element=1, other=3, effect=0.5),
         ("cable", "one of several cables above leaf1")),
        ("fat-tree-2", Fault(kind="cable-adaptive", element=1, effect=0.5), ("leaf_uplink", "uplinks of leaf1")),
        ("fat-tree-2", Fault(kind="cable-destination", element=1, other=3, effect=0.5),
         ("cable", "one of several cables above leaf1")),
        ("fat-tree-2", Fault(kind="congestion", element=3, effect=0.3), ("congestion", "congestion above leaf3")),
        ("fat-tree-2", Fault(kind="spine-link", element=0, other=2, effect=0.15),
         ("spine_link", "a link above leaf0 and leaf2")),
    ],
)  # fmt: skip
def test_a_fault_is_named_at_its_place_in_eight_rounds(topology, fault, expected, seed) -> None:
    outcome = swept(topology, (fault,), seed)
    assert answers(outcome) == [expected]
    assert outcome.rounds <= 8
    assert outcome.answers[0].evidence


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(kind="nic", element=43), ("nic", "NIC n0005:rail3")),
        (Fault(kind="node", element=43), ("node", "node n0005")),
        (Fault(kind="rail", element=3), ("rail", "rail rail3")),
    ],
)
def test_one_nic_of_eight_a_node_and_a_rail_are_told_apart(fault, expected) -> None:
    assert answers(swept("rail", (fault,), 4, nodes=32)) == [expected]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("topology", ["fat-tree-2", "fat-tree-3"])
def test_a_sound_fabric_raises_no_alarm(topology, seed) -> None:
    assert answers(swept(topology, (), seed)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_two_faults_are_both_named(seed) -> None:
    faults = (Fault(kind="node", element=3), Fault(kind="nic-send", element=50))
    assert sorted(answers(swept("fat-tree-2", faults, seed))) == [
        ("nic_send", "NIC of n0050, sending"),
        ("node", "node n0003"),
    ]


def test_a_loss_below_the_least_effect_raises_no_alarm_however_tight_the_fabric_is() -> None:
    assert answers(swept("fat-tree-2", (Fault(kind="node", element=9, effect=0.02),), 1, sigma=0.001)) == []
    assert answers(swept("fat-tree-2", (Fault(kind="node", element=9, effect=0.08),), 1, sigma=0.001)) != []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_uniform_loss_is_seen_where_the_platform_is_known_and_does_not_pass_where_it_is_not(seed) -> None:
    slow = FabricRequest(topology="fat-tree-2", fault="slow", seed=seed)
    assert judge_fabric(slow).report.verdict.outcome == "cannot_tell"
    known = FabricRequest(topology="fat-tree-2", fault="slow", seed=seed, platform="azure-hbv4")
    assert [each.code for each in judge_fabric(known).report.findings] == ["FAB009"]
    sound = FabricRequest(topology="fat-tree-2", seed=seed, platform="azure-hbv4")
    assert judge_fabric(sound).report.verdict.outcome == "ok"


def test_a_node_that_does_not_answer_is_named_and_its_partners_are_not() -> None:
    draws = random.Random(1)
    places = made_places("fat-tree-2", 16)
    fabric = Simulated(topology="fat-tree-2", places=places, faults=(), noise=Noise(), metric="bandwidth", draws=draws)

    def measure(pairs, number):
        values = fabric.measure(pairs, number)
        return [None if 7 in (pair.sender, pair.receiver) else value for pair, value in zip(pairs, values, strict=True)]

    assert answers(sweep(places, measure, "bandwidth", draws)) == [("unanswered", "node n0007, which does not answer")]


def test_latencies_of_two_and_four_hops_are_judged_each_against_their_own() -> None:
    outcome = swept("fat-tree-2", (), 2, metric="latency")
    made = report(
        outcome,
        "latency",
        "",
        expected=tuple(ExpectedPair(value=each, kind="measured", source="") for each in (1.65e-6, 2.25e-6)),
    )
    assert [each.centre_s for each in made.bands] == pytest.approx([1.65e-6, 2.25e-6], rel=0.02)
    assert [each.published_s for each in made.bands] == [1.65e-6, 2.25e-6]
    assert made.verdict.outcome == "ok"


def test_leaves_follow_from_latencies_of_all_pairs() -> None:
    judged = judge_fabric(FabricRequest(topology="fat-tree-2", nodes=32, metric="latency", full=True, blind=True))
    assert judged.report.leaf_agreement is not None
    assert judged.report.leaf_agreement > 0.99
    assert judged.tree is not None
    assert judged.tree.splitlines()[1] == "SwitchName=leaf1 Nodes=n[0004-0007]"


def test_from_few_pairs_no_leaves_are_inferred() -> None:
    judged = judge_fabric(FabricRequest(topology="fat-tree-2", metric="latency", blind=True))
    assert (judged.tree, judged.report.leaf_agreement, judged.report.leaves) == (None, None, ())
    said = "\n".join(report_lines(judged.report))
    assert re.search(
        r"no leaves inferred from the bands: \d\d % of the pairs agree with the best, and\s+90 % is", said
    ), said


def test_leaves_that_less_than_nine_of_ten_pairs_agree_with_are_not_inferred_and_it_says_so() -> None:
    places = flat(Endpoint(node=f"n{number}") for number in range(16))
    pairs = [(one, other) for one in range(16) for other in range(one)]
    tests = [PairTest(sender=one, receiver=other, round=0, value=1e-6) for one, other in pairs]
    # Two leaves of eight; of some pairs across them the latency says the opposite.
    numbers = [int(one // 8 != other // 8 and (one + 3 * other) % 5 != 0) for one, other in pairs]
    for known, least in ((numbers, 0.0), ([int(one // 8 != other // 8) for one, other in pairs], 1.0)):
        found = inferred_leaves(places, tests, known)
        assert found.agreement == (least or None)
        assert (found.places is None) == bool(found.why_not)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_many_bands_are_found_as_there_are(count: int) -> None:
    draws = random.Random(5)
    centres = (1.65e-6, 2.25e-6, 2.85e-6)[:count]
    values = [each * 2.718281828 ** draws.gauss(0, 0.015) for each in centres for _ in range(400)]
    found = bands(values)
    assert len(found) == count
    assert all(abs(band.centre_s / centre - 1) < 0.01 for band, centre in zip(found, centres, strict=True))


def test_the_answer_says_the_same_for_the_same_seed() -> None:
    asked = FabricRequest(topology="rail", nodes=16, fault="nic", seed=9)
    assert judge_fabric(asked) == judge_fabric(asked)


def test_tests_of_a_file_name_a_node_without_retests() -> None:
    outcome = swept("fat-tree-2", (Fault(kind="node", element=9),), 1, nodes=16, full=True)
    told = [each for each in outcome.tests if not each.retest]
    again = analysed(flat(outcome.places.endpoints), told, "bandwidth")
    assert answers(again) == [("node", "node n0009")]


def test_both_directions_of_a_round_are_asked_at_once() -> None:
    asked: list[tuple[Pairing, ...]] = []
    places = made_places("fat-tree-2", 8)
    draws = random.Random(1)
    fabric = Simulated(topology="fat-tree-2", places=places, faults=(), noise=Noise(), metric="bandwidth", draws=draws)

    def measure(pairs, number):
        asked.append(tuple(pairs))
        return fabric.measure(pairs, number)

    sweep(places, measure, "bandwidth", draws)
    assert all(len(each) == 8 for each in asked[:5])
    assert all(
        {(pair.receiver, pair.sender) for pair in each} == {(pair.sender, pair.receiver) for pair in each}
        for each in asked
    )


GIVEN = (ExpectedPair(value=47.5e9, kind="given", source="--expect"),)


def standing(*sizes: int) -> Places:
    """Return hosts below leaves of such sizes."""
    return Places(
        endpoints=tuple(Endpoint(node=f"n{number}") for number in range(sum(sizes))),
        leaves=tuple(leaf for leaf, size in enumerate(sizes) for _ in range(size)),
        leaf_names=tuple(f"leaf{leaf}" for leaf in range(len(sizes))),
        groups=(0,) * len(sizes),
    )


def judged(places: Places, fault: Fault | None, seed: int, *, full: bool = False):
    draws = random.Random(seed)
    faults = () if fault is None else (fault,)
    fabric = Simulated(
        topology="fat-tree-2", places=places, faults=faults, noise=Noise(), metric="bandwidth", draws=draws
    )
    return report(sweep(places, fabric.measure, "bandwidth", draws, full=full), "bandwidth", "", expected=GIVEN)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("sizes", [(4, 4), (16, 16)])
def test_an_uplink_of_two_leaves_makes_all_ways_between_them_slow_and_not_the_whole_fabric(sizes, full, seed) -> None:
    made = judged(standing(*sizes), Fault(kind="leaf-uplink", element=1, effect=0.5), seed, full=full)
    assert [(each.kind, each.place) for each in made.answers] == [("crossing", "all ways between leaves")]
    assert [each.code for each in made.findings] == ["FAB014"]
    assert made.verdict.outcome == "slow"
    assert made.answers[0].loss == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("leaf", [1, 2])
@pytest.mark.parametrize("sizes", [(3, 3, 2), (4, 4, 4)])
def test_an_uplink_of_three_leaves_is_named_alone_though_most_of_the_fabric_is_slow_by_it(
    sizes, leaf, full, seed
) -> None:
    made = judged(standing(*sizes), Fault(kind="leaf-uplink", element=leaf, effect=0.5), seed, full=full)
    assert [(each.kind, each.place) for each in made.answers] == [("leaf_uplink", f"uplinks of leaf{leaf}")]


@pytest.mark.parametrize("sizes", [(3, 3, 2), (4, 4, 4), (4, 4, 4, 4)])
def test_the_scatter_of_few_tests_is_told_as_large_as_it_is_and_accuses_nobody(sizes) -> None:
    places, told, accused = standing(*sizes), [], 0
    for seed in range(40):
        draws = random.Random(30000 + seed)
        noise = Noise(sigma=0.05)
        fabric = Simulated(
            topology="fat-tree-2", places=places, faults=(), noise=noise, metric="bandwidth", draws=draws
        )
        outcome = sweep(places, fabric.measure, "bandwidth", draws)
        told.append(outcome.fit.noise)
        accused += bool(outcome.answers)
    # Before, the scatter was told as six tenths of what it is, and 5 of 40 had a NIC accused.
    assert sorted(told)[len(told) // 2] == pytest.approx(0.05, rel=0.2)
    assert accused <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_too_few_uplinks_are_congestion_where_a_pair_alone_is_sound(seed) -> None:
    made = judged(standing(16, 16), Fault(kind="congestion", element=1, effect=0.5), seed)
    assert ("congestion", "congestion between leaves") in [(each.kind, each.place) for each in made.answers]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_whole_is_slow_where_pairs_beside_a_named_fault_are_slow_too(seed) -> None:
    draws = random.Random(seed)
    faults = (Fault(kind="slow", effect=0.3), Fault(kind="leaf-uplink", element=1, effect=0.5))
    places = standing(4, 4, 4)
    fabric = Simulated(
        topology="fat-tree-2", places=places, faults=faults, noise=Noise(), metric="bandwidth", draws=draws
    )
    made = report(sweep(places, fabric.measure, "bandwidth", draws), "bandwidth", "", expected=GIVEN)
    assert [each.kind for each in made.answers] == ["leaf_uplink", "slow"]
    assert made.answers[1].loss == pytest.approx(0.3, abs=0.05)


def cut_off(places: Places, faults: tuple[Fault, ...], seed: int, rounds: int):
    """Return a sweep that ended after so many rounds."""
    draws = random.Random(seed)
    fabric = Simulated(
        topology="fat-tree-2", places=places, faults=faults, noise=Noise(), metric="bandwidth", draws=draws
    )
    whole = sweep(places, fabric.measure, "bandwidth", draws)
    return analysed(places, [replace(each, retest=False) for each in whole.tests if each.round < rounds], "bandwidth")


@pytest.mark.parametrize("rounds", [2, 3, 4, 5])
@pytest.mark.parametrize("sizes", [(3, 3, 2), (16, 16, 16, 16)])
def test_a_sweep_that_was_cut_off_accuses_no_sound_host(sizes, rounds) -> None:
    places = standing(*sizes)
    accused = [seed for seed in range(20) if cut_off(places, (), seed, rounds).answers]
    assert accused == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_host_at_half_speed_is_named_after_three_rounds_and_one_at_nine_tenths_after_five(seed) -> None:
    places = standing(16, 16, 16, 16)
    half = cut_off(places, (Fault(kind="node", element=9, effect=0.5),), seed, 3)
    assert answers(half) == [("node", "node n9")]
    few = cut_off(places, (Fault(kind="node", element=9),), seed, 3)
    assert few.answers == ()
    assert report(few, "bandwidth", "", expected=GIVEN).verdict.outcome == "cannot_tell"
    assert answers(cut_off(places, (Fault(kind="node", element=9),), seed, 5)) == [("node", "node n9")]


@pytest.mark.parametrize("metric", ["latency", "bibandwidth"])
def test_disturbed_tests_of_two_rounds_are_no_link_that_comes_and_goes(metric) -> None:
    # Where a round tests an endpoint once, two of 2 % far values are no wonder in 64.
    accused = [seed for seed in range(2000000, 2000012) if swept("fat-tree-2", (), seed, metric=metric).answers]
    assert accused == []


def test_more_rounds_name_a_link_that_was_sound_in_the_usual_ones() -> None:
    places = made_places("fat-tree-2", 64)

    def named(seed: int, most: int | None) -> bool:
        draws = random.Random(seed)
        faults = (Fault(kind="flapping", element=9),)
        fabric = Simulated(
            topology="fat-tree-2", places=places, faults=faults, noise=Noise(), metric="bandwidth", draws=draws
        )
        found = sweep(places, fabric.measure, "bandwidth", draws, most=most)
        assert found.rounds <= (most or 8)
        return answers(found) == [("unsteady", "link of n0009, which comes and goes")]

    usual = sum(named(seed, None) for seed in range(15))
    more = sum(named(seed, 14) for seed in range(15))
    assert 12 <= usual <= more
    assert more >= 14


def test_a_link_between_two_of_64_leaves_is_named_within_twelve_rounds() -> None:
    outcome = swept("fat-tree-2", (Fault(kind="spine-link", element=5, other=40),), 3, nodes=1024)
    assert answers(outcome) == [("spine_link", "a link above leaf5 and leaf40")]
    assert outcome.rounds <= 12
