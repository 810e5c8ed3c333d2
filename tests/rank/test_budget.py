"""Who is measured next, on a machine that is only numbers."""

from dataclasses import dataclass

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.rank.budget import LEAST_TURN_S, Standing, Turn, next_turn


@dataclass(frozen=True)
class Costs:
    """What a point takes: to verify once, for one sample with what is around it, and until it is known well."""

    size_bytes: int
    verify_s: float
    sample_s: float
    need_s: float


COSTS = st.builds(
    Costs,
    size_bytes=st.sampled_from([8, 1024, 2**20, 2**30]),
    verify_s=st.floats(0.0, 2.0),
    sample_s=st.floats(1e-5, 2.0),
    need_s=st.floats(0.0, 100.0),
)


def played(costs: list[Costs], limit_s: float, kept_s: float = 0.0) -> tuple[list[Turn], list[float]]:
    """Return the turns of a run, and what each took."""
    standings = [Standing(point=number, size_bytes=one.size_bytes) for number, one in enumerate(costs)]
    spent_s = [0.0] * len(costs)
    turns: list[Turn] = []
    took: list[float] = []
    while (turn := next_turn(standings, limit_s - sum(took), kept_s)) is not None:
        cost, before = costs[turn.point], standings[turn.point]
        if turn.number == 0:
            took.append(cost.verify_s + cost.sample_s)
            changed = msgspec.structs.replace(before, turns=1, least_s=max(cost.sample_s, LEAST_TURN_S))
        else:
            need_s = max(cost.need_s - spent_s[turn.point], 0.0)
            took.append(max(min(turn.share_s, need_s), cost.sample_s))
            spent_s[turn.point] += took[-1]
            is_done = spent_s[turn.point] >= cost.need_s
            changed = msgspec.structs.replace(before, turns=before.turns + 1, is_done=is_done, half_width=0.1)
        standings[turn.point] = changed
        turns.append(turn)
    return turns, took


@settings(max_examples=300)
@given(st.lists(COSTS, min_size=1, max_size=12), st.floats(0.01, 30.0))
def test_every_point_has_its_first_sample_before_any_has_its_second(costs: list[Costs], limit_s: float):
    turns, _took = played(costs, limit_s)

    first = [turn.point for turn in turns if turn.number == 0]
    assert [turn.number for turn in turns[: len(first)]] == [0] * len(first)
    assert len(set(first)) == len(first)
    if len(first) < len(costs):
        assert len(turns) == len(first)


@given(st.lists(COSTS, min_size=1, max_size=12), st.floats(0.01, 30.0))
def test_what_is_not_reached_are_the_largest_messages(costs: list[Costs], limit_s: float):
    turns, _took = played(costs, limit_s)

    reached = {turn.point for turn in turns}
    missed = [one.size_bytes for number, one in enumerate(costs) if number not in reached]
    largest = max(costs[number].size_bytes for number in reached)
    assert all(size_bytes >= largest for size_bytes in missed)


@settings(max_examples=300)
@given(st.lists(COSTS, min_size=1, max_size=12), st.floats(0.01, 30.0), st.floats(0.0, 0.2))
def test_a_run_is_never_longer_than_its_limit_by_more_than_one_turn_at_its_shortest(
    costs: list[Costs], limit_s: float, kept: float
):
    turns, took = played(costs, limit_s, kept * limit_s)

    last = costs[turns[-1].point]
    shortest_s = last.sample_s + (last.verify_s if turns[-1].number == 0 else 0.0)
    assert sum(took) <= limit_s + shortest_s + 1e-6


@settings(max_examples=300)
@given(st.lists(COSTS, min_size=1, max_size=12), st.floats(1.0, 60.0))
def test_no_point_uses_what_another_needs_for_its_second_turn(costs: list[Costs], limit_s: float):
    turns, _took = played(costs, limit_s)

    first_s = sum(one.verify_s + one.sample_s for one in costs)
    second_s = sum(max(one.sample_s, LEAST_TURN_S) for one in costs)
    # Sums of floats, in another order.
    if first_s + second_s <= limit_s - 1e-6:
        assert sorted(turn.point for turn in turns if turn.number == 1) == list(range(len(costs)))


def test_equal_points_get_equal_shares():
    ready = [Standing(point=number, size_bytes=8, turns=1, least_s=0.1) for number in range(4)]

    assert next_turn(ready, 8.0) == Turn(point=0, number=1, share_s=2.0)
    assert next_turn(ready, 8.0, 2.0) == Turn(point=0, number=1, share_s=1.5)


def test_a_point_that_takes_longer_is_given_that_first():
    ready = [
        Standing(point=number, size_bytes=8, turns=1, least_s=least) for number, least in enumerate((5.0, 0.1, 0.1))
    ]

    assert next_turn(ready, 8.0) == Turn(point=0, number=1, share_s=5.0)
    assert next_turn(ready[1:], 3.0) == Turn(point=1, number=1, share_s=1.5)


def test_points_that_do_not_fit_are_left_out():
    ready = [
        Standing(point=number, size_bytes=8, turns=1, least_s=least) for number, least in enumerate((5.0, 0.1, 9.0))
    ]

    assert next_turn(ready, 4.0) == Turn(point=1, number=1, share_s=4.0)
    assert next_turn(ready[:1], 4.0) is None


def test_what_is_left_goes_to_the_widest_interval_first():
    widths = (0.02, 0.3, None, 0.1)
    waiting = [Standing(point=n, size_bytes=8, turns=2, half_width=width) for n, width in enumerate(widths)]

    order = []
    while (turn := next_turn(waiting, 1.0)) is not None and turn.number == 2:
        order.append(turn.point)
        waiting[turn.point] = msgspec.structs.replace(waiting[turn.point], turns=3)

    assert order == [2, 1, 3, 0]


def test_the_very_first_turn_needs_no_time():
    fresh = [Standing(point=number, size_bytes=8) for number in range(2)]

    first = next_turn(fresh, -1.0)

    assert first is not None
    assert (first.point, first.number) == (0, 0)
    assert next_turn([msgspec.structs.replace(fresh[0], turns=1), fresh[1]], -1.0) is None


def test_points_that_are_done_get_no_more():
    done = [Standing(point=0, size_bytes=8, turns=2, is_done=True)]

    assert next_turn(done, 10.0) is None
