"""A sweep that is planned and recorded: the same rounds again, as far as it came, and what is refused."""

import random
import socket
import time

import msgspec
import pytest

from busbw.base.errors import InputError
from busbw.fabric.places import Endpoint, Pairing, flat
from busbw.fabric.procedure import sweep
from busbw.fabric.recorded import carried_out, disjoint_rounds, drawn_rounds, places_of, recorded, rounds_of
from busbw.fabric.simulation import Fault, Noise, Simulated, made_places
from busbw.measure.plan.fabric import check, longest_s, read_chosen, request_of
from busbw.model.fabric import Earlier, FabricAsked, FabricMetric, FabricPlan, PairProbe, PairSeen, PlannedEndpoint
from busbw.model.request import Request
from busbw.rank.sweeping.fabric import PairOrder, answer_of, phases
from busbw.rank.sweeping.star import Hub, Spoke

PLACES = made_places("fat-tree-2", 16)
PROBE = PairProbe(metric="bandwidth", size_bytes=1024, calls=16, budget_s=0.1, limit_s=1.0)
FAULTS = (Fault(kind="node", element=3, effect=0.3),)


def planned(*, full: bool = False, metric: FabricMetric = "bandwidth") -> FabricPlan:
    """Return the plan of a sweep over 16 hosts."""
    asked = FabricAsked(metrics=(metric,), pairs="all" if full else "sparse")
    first = () if full else (drawn_rounds(PLACES, random.Random("1 bandwidth")),)
    return FabricPlan(
        asked=asked,
        seats=tuple(PlannedEndpoint(node=each.node) for each in PLACES.endpoints),
        leaves=PLACES.leaves,
        leaf_names=PLACES.leaf_names,
        groups=PLACES.groups,
        probes=(msgspec.structs.replace(PROBE, metric=metric),),
        first=first,
        of_rank=tuple(range(16)),
    )


def measured(plan: FabricPlan):
    """Return the sweep of a plan over a simulated fabric, and the rounds that it wrote down."""
    draws = random.Random(7)
    fabric = Simulated(
        topology="fat-tree-2", places=PLACES, faults=FAULTS, noise=Noise(), metric="bandwidth", draws=draws
    )
    rounds = []

    def measure(pairs, number):
        values = fabric.measure(pairs, number)
        tests = tuple(
            PairSeen(sender=pair.sender, receiver=pair.receiver, value=value)
            for pair, value in zip(pairs, values, strict=True)
        )
        rounds.append(Earlier(metric="bandwidth", round=number, tests=tests))
        return values

    return carried_out(plan, "bandwidth", random.Random, measure), rounds


@pytest.mark.parametrize("full", [False, True])
def test_the_rounds_on_disk_give_the_same_sweep_again(full):
    plan = planned(full=full)
    swept, rounds = measured(plan)

    again = recorded(plan, "bandwidth", random.Random, rounds_of(rounds))

    assert [each.place for each in swept.answers] == ["node n0003"]
    assert again.tests == swept.tests
    assert again.answers == swept.answers
    assert any(each.retest for each in again.tests)


def test_a_sweep_that_was_cut_off_is_judged_as_far_as_it_came():
    plan = planned()
    _swept, rounds = measured(plan)

    cut = recorded(plan, "bandwidth", random.Random, rounds_of(rounds[:3]))

    assert (cut.rounds, len(cut.tests)) == (3, sum(len(each.tests) for each in rounds[:3]))


def test_a_sweep_without_an_answer_says_so():
    nothing = Earlier(metric="bandwidth", round=0, tests=(PairSeen(sender=0, receiver=1, value=None),))

    with pytest.raises(InputError, match="no pair has answered"):
        recorded(planned(), "bandwidth", random.Random, rounds_of([nothing]))


def test_first_rounds_of_the_plan_are_those_that_are_measured():
    plan = planned()
    seen = []

    def measure(pairs, number):
        seen.append(tuple((each.sender, each.receiver) for each in pairs[: len(pairs) // 2]))
        return [1e9] * len(pairs)

    sweep(places_of(plan), measure, "bandwidth", random.Random(1), first=plan.first[0])

    assert tuple(seen[: len(plan.first[0])]) == plan.first[0]


def test_chosen_pairs_come_in_rounds_in_which_no_host_is_twice():
    rounds = disjoint_rounds([(0, 1), (0, 2), (1, 2), (2, 3)])

    assert sorted(pair for each in rounds for pair in each) == [(0, 1), (0, 2), (1, 2), (2, 3)]
    assert all(len({end for pair in each for end in pair}) == 2 * len(each) for each in rounds)


def test_both_directions_of_a_round_are_measured_one_after_the_other():
    pairs = [Pairing(sender=one, receiver=other) for one, other in ((0, 1), (2, 3), (1, 0), (3, 2))]

    assert tuple(phases(pairs)) == ((0, 1), (2, 3))


FOUR = flat(Endpoint(node=f"n{number}") for number in range(4))


def test_a_file_of_pairs_is_read():
    assert read_chosen("# these\nn0,n1\nn3 n2\n\nn1 n0\n", FOUR, "pairs") == ((0, 1), (2, 3), (0, 1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no pairs in this file"),
        ("n0", "1 words instead of two hosts"),
        ("n0,n1,n2", "3 words instead of two hosts"),
        ("n0,n9", "n9 is not among the 4 hosts"),
        ("n0,n0", "n0 is paired with itself"),
        ("n0,\x00", "is no host"),
    ],
)
def test_a_file_that_is_none_of_pairs_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        read_chosen(text, FOUR, "pairs")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pair_s": 0.0}, "seconds from"),
        ({"pair_s": 8.0}, "its test takes 8 s"),
        ({"size_bytes": 2**31}, "1 byte to 1 GiB"),
        ({"nics": ("mlx5_0", "mlx5_0")}, "named twice"),
        ({"nics": ("a b",)}, "is no NIC"),
        ({"pairs": "rail"}, "which NICs are the rails"),
    ],
)
def test_what_cannot_be_measured_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        check(FabricAsked(**changes))


def test_a_latency_is_the_median_half_round_trip_and_a_bandwidth_all_bytes_in_all_time():
    order = PairOrder(step=4, probe=0, peer=1, leads=True)
    latency = PairProbe(metric="latency", size_bytes=8, calls=10, budget_s=0.1, limit_s=1.0)

    trips = answer_of(order, latency, [20_000, 40_000, 1_000_000])
    rate = answer_of(order, PROBE, [1_000, 3_000])

    assert (trips.value, trips.best, trips.samples) == (pytest.approx(2e-6), pytest.approx(1e-6), 3)
    assert rate.value == pytest.approx(2 * 1024 * 16 / 4e-6)
    assert answer_of(order, PROBE, []).gave_up


def test_a_message_rate_counts_messages_of_8_bytes_and_has_a_direction():
    order = PairOrder(step=4, probe=0, peer=1, leads=True)
    rate = PairProbe(metric="message-rate", size_bytes=8, calls=64, budget_s=0.1, limit_s=1.0)

    answer = answer_of(order, rate, [32_000, 96_000])

    assert (answer.value, answer.best) == (pytest.approx(1e6), pytest.approx(2e6))
    assert longest_s(planned()) == longest_s(planned(metric="message-rate"))


def test_a_rank_that_is_silent_or_gone_keeps_rank_0_waiting_until_its_time_is_over():
    ends = [socket.socketpair() for _ in range(3)]
    hub = Hub({rank: one for rank, (one, _other) in enumerate(ends, start=1)})
    Spoke(ends[0][1]).tell(b"first")
    ends[1][1].close()

    began = time.monotonic()
    heard = list(hub.hear({1, 2, 3}, began + 0.2))

    assert heard == [(1, b"first")]
    assert hub.lost == {2}
    hub.tell(3, b"go on")
    assert Spoke(ends[2][1]).hear() == b"go on"
    ends[0][0].close()
    assert Spoke(ends[0][1]).hear() is None
    for one, other in ends:
        one.close()
        other.close()


def test_a_sweep_in_a_job_is_over_all_of_its_hosts_and_a_job_has_two_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[0-4]")
    assert request_of(Request(), FabricAsked()).nodes == 5

    monkeypatch.setenv("SLURM_JOB_NODELIST", "n7")
    with pytest.raises(InputError, match="a fabric needs two hosts or more: only n7 is named"):
        request_of(Request(), FabricAsked())

    monkeypatch.delenv("SLURM_JOB_NODELIST")
    with pytest.raises(InputError, match="no hosts are named, and this is no job"):
        request_of(Request(), FabricAsked())
