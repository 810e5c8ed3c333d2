import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.model.record import Attribution
from busbw.stats.tail import blame, culprit, culprit_of_halves, slow_samples

from .crowd import BASE_S, Crowd, take

DELAY_S = 200e-6


def slow_and_blamed(crowd: Crowd) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    slow = slow_samples(crowd.values)
    blamed = blame(
        crowd.values,
        slow,
        off_processor=crowd.off_processor,
        durations=crowd.durations,
        latenesses=crowd.latenesses,
    )
    return slow, blamed


def named(crowd: Crowd) -> int | None:
    ranks = len(crowd.durations)
    slow, blamed = slow_and_blamed(crowd)
    return culprit([blamed.count(rank) for rank in range(ranks)], len(slow), ranks)


def one(kind: str, rank: int, share: float = 0.05):
    return lambda draw: [(kind, rank, DELAY_S)] if draw.random() < share else []


def anyone(ranks: int, share: float, kinds=("finish", "start", "off", "hidden")):
    def delayed(draw):
        delay_s = DELAY_S * draw.lognormvariate(0, 1)
        return [(draw.choice(kinds), draw.randrange(ranks), delay_s)] if draw.random() < share else []

    return delayed


def test_no_samples_hold_no_slow_ones():
    assert slow_samples([]) == ()
    assert slow_samples([1.0]) == ()


def test_a_slow_sample_is_beyond_the_spread_half_the_median_and_five_microseconds():
    assert slow_samples([100e-6] * 50 + [149e-6, 151e-6]) == (51,)
    assert slow_samples([2e-6] * 50 + [6.9e-6, 7.1e-6]) == (51,)
    wide = [float(value) for value in range(100, 200)]
    # median 149.5, deviation 1.4826 * 25
    assert slow_samples([*wide, 330.0, 340.0]) == (101,)


@given(st.lists(st.floats(1e-9, 10.0), max_size=100))
def test_at_most_half_of_the_samples_are_slow(values):
    slow = slow_samples(values)
    assert 2 * len(slow) <= len(values)
    assert list(slow) == sorted(set(slow))


@pytest.mark.parametrize("kind", ["finish", "start", "off"])
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_the_rank_that_alone_is_delayed_is_blamed(kind, ranks):
    crowd = take(random.Random(f"{kind} {ranks}"), ranks, 200, one(kind, ranks - 1))
    slow, blamed = slow_and_blamed(crowd)
    assert len(slow) >= 5
    assert set(blamed) == {ranks - 1}


def test_a_delay_that_all_ranks_feel_alike_is_blamed_on_nobody():
    slow, blamed = slow_and_blamed(take(random.Random(1), 4, 200, one("hidden", 0)))
    assert len(slow) >= 5
    assert set(blamed) == {None}


@pytest.mark.parametrize("kind", ["finish", "start", "off"])
def test_two_ranks_delayed_at_once_are_both_not_blamed(kind):
    crowd = take(
        random.Random(2), 4, 100, lambda draw: [(kind, 1, DELAY_S), (kind, 2, DELAY_S)] * (draw.random() < 0.1)
    )
    slow, blamed = slow_and_blamed(crowd)
    assert slow
    assert set(blamed) == {None}


def test_evidence_against_two_ranks_blames_neither():
    values = [20e-6] * 20 + [220e-6]
    quiet, late = [20e-6] * 21, [20e-6] * 20 + [220e-6]
    none, off = [0.0] * 21, [0.0] * 20 + [200e-6]
    assert blame(values, (20,), durations=[quiet, late, quiet], off_processor=[none, off, none]) == (1,)
    assert blame(values, (20,), durations=[quiet, late, quiet], off_processor=[off, none, none]) == (None,)


def test_who_waits_off_the_processor_in_every_sample_is_not_blamed_for_it():
    values = [20e-6] * 20 + [220e-6]
    always, sometimes = [300e-6] * 21, [0.0] * 20 + [200e-6]
    assert blame(values, (20,), off_processor=[always, [0.0] * 21]) == (None,)
    assert blame(values, (20,), off_processor=[always, sometimes]) == (1,)


def test_a_child_that_returns_late_with_others_does_not_hide_the_parent():
    values = [20e-6] * 20 + [220e-6]
    quiet, late = [20e-6] * 21, [20e-6] * 20 + [220e-6]
    none, off = [0.0] * 21, [0.0] * 20 + [200e-6]
    found = blame(
        values, (20,), durations=[quiet, quiet, quiet, late, late], off_processor=[none, none, none, off, none]
    )
    assert found == (3,)


def test_without_evidence_nobody_is_blamed():
    values = [20e-6] * 20 + [220e-6]
    assert blame(values, (20,), off_processor=()) == (None,)
    assert blame(values, (20,), off_processor=[values]) == (None,)
    assert blame(values, (20,), off_processor=[[], []], durations=[values, values[:3]]) == (None,)
    assert blame(values, (), off_processor=[[], []]) == ()


@pytest.mark.parametrize(
    ("counts", "slow", "expected"),
    [
        ((0, 5, 0, 0), 5, 1),  # 0.25^5 is below 0.001
        ((0, 4, 0, 0), 4, None),  # fewer than five
        ((0, 5, 0, 0), 9, None),  # 56 %
        ((5, 0), 5, None),  # a coin does that in 3 of 100
        ((10, 0), 10, 0),
        ((6, 6), 12, None),
        ((), 12, None),
        ((9,), 9, None),  # alone
    ],
)
def test_a_rank_is_named_only_with_enough_slow_samples_most_of_them_and_no_coincidence(counts, slow, expected):
    assert culprit(counts, slow, len(counts)) == expected


@pytest.mark.parametrize(("ranks", "most"), [(2, 2), (4, 0), (8, 0)])
def test_random_delays_on_random_ranks_hardly_ever_name_a_rank(ranks, most):
    draw = random.Random(ranks)
    false = sum(named(take(draw, ranks, 300, anyone(ranks, 0.05))) is not None for _ in range(150))
    assert false <= most


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_random_late_returns_hardly_ever_name_a_rank(ranks):
    draw = random.Random(100 + ranks)
    false = sum(named(take(draw, ranks, 200, anyone(ranks, 0.08, ("finish",)))) is not None for _ in range(300))
    assert false <= 3


@pytest.mark.parametrize("kind", ["finish", "start", "off"])
@pytest.mark.parametrize("ranks", [4, 8])
def test_a_rank_delayed_by_200_us_in_one_call_of_twenty_is_named(kind, ranks):
    draw = random.Random(f"{kind} {ranks}")
    noise, planted = anyone(ranks, 0.01), one(kind, 3)
    found = [named(take(draw, ranks, 400, lambda draw: noise(draw) + planted(draw))) for _ in range(60)]
    assert set(found) <= {3, None}
    assert found.count(3) >= 58


def test_samples_without_a_tail_name_nobody():
    crowd = take(random.Random(9), 4, 500, lambda _draw: [])
    assert slow_samples(crowd.values) == ()
    assert named(crowd) is None
    assert max(crowd.values) < 1.5 * BASE_S


def halves(ranks: int, slow_calls, calls: int = 400) -> tuple[Attribution, ...]:
    """Return the passes of all bits; `slow_calls(members)` says how many calls are slow among these ranks."""
    found = []
    for bit in range((ranks - 1).bit_length()):
        for group in (0, 1):
            members = tuple(rank for rank in range(ranks) if (rank >> bit) & 1 == group)
            found.append(Attribution(bit=bit, group=group, ranks=members, calls=calls, slow_calls=slow_calls(members)))
    return tuple(found)


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 13])
def test_the_slower_halves_spell_the_rank(ranks):
    for rank in range(ranks):
        passes = halves(ranks, lambda members, rank=rank: 20 if rank in members else 1)
        assert culprit_of_halves(passes, ranks) == rank


def test_the_order_of_the_passes_does_not_matter():
    passes = halves(8, lambda members: 20 if 5 in members else 0)
    assert culprit_of_halves(tuple(reversed(passes)), 8) == 5


@pytest.mark.parametrize("slow", [0, 4])
def test_fewer_than_five_slow_calls_spell_nothing(slow):
    assert culprit_of_halves(halves(4, lambda members: slow if 2 in members else 0, calls=5), 4) is None


def test_halves_that_are_slow_alike_spell_nothing():
    assert culprit_of_halves(halves(4, lambda _members: 40), 4) is None


def test_two_culprits_on_both_sides_of_a_bit_spell_nothing():
    assert culprit_of_halves(halves(8, lambda members: 20 * ((1 in members) + (6 in members))), 8) is None


def test_a_missing_pass_spells_nothing():
    passes = halves(4, lambda members: 20 if 3 in members else 0)
    assert culprit_of_halves(passes[:-1], 4) is None
    assert culprit_of_halves(passes[:2], 4) is None
    assert culprit_of_halves((), 4) is None
    assert culprit_of_halves((), 1) is None


def test_a_number_that_no_rank_has_is_not_named():
    # Of five ranks, both upper halves and the odd one: 7.
    assert (
        culprit_of_halves(halves(5, lambda members: 20 if max(members) in (3, 4) and 0 not in members else 0), 5)
        is None
    )


@given(
    st.lists(
        st.builds(
            Attribution,
            bit=st.integers(-1, 4),
            group=st.integers(-1, 2),
            ranks=st.just(()),
            calls=st.integers(-5, 500),
            slow_calls=st.integers(-5, 500),
        ),
        max_size=10,
    ),
    st.integers(0, 9),
)
def test_whatever_was_recorded_a_rank_of_the_run_is_named_or_none(passes, ranks):
    rank = culprit_of_halves(passes, ranks)
    assert rank is None or 0 <= rank < ranks


def spikes(draw: random.Random, share: float, calls: int = 400) -> int:
    return sum(draw.random() < share for _ in range(calls))


def test_random_slow_calls_never_spell_a_rank():
    draw = random.Random(11)
    for ranks in (4, 8):
        assert all(
            culprit_of_halves(halves(ranks, lambda _members: spikes(draw, 0.05)), ranks) is None for _ in range(200)
        )


@pytest.mark.parametrize(("others", "least"), [(0.0, 0.9), (0.002, 0.7)])
def test_a_rank_slow_in_one_call_of_twenty_is_mostly_spelled_and_never_another(others, least):
    draw = random.Random(12)
    found = [
        culprit_of_halves(halves(8, lambda members: spikes(draw, 0.05 if 6 in members else others)), 8)
        for _ in range(200)
    ]
    assert set(found) <= {6, None}
    assert found.count(6) >= least * 200
