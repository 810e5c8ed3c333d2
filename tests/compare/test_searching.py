"""The search finds what makes a difference, whatever that is."""

import itertools

import pytest

from busbw.judge.comparing.comparison import Unclear, answer_of, causes, change
from busbw.model.comparison import SpeedEstimate


def oracle(*sets):
    """Return answers as if each of these sets of items made the difference by itself."""
    return lambda asked: ["shows" if any(cause <= items for cause in sets) else "absent" for items in asked]


@pytest.mark.parametrize("count", [2, 3, 5, 8, 13])
def test_a_single_cause_is_found_wherever_it_is(count):
    for cause in range(count):
        assert causes(range(count), oracle({cause})) == ({cause},)


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
def test_two_that_do_it_only_together_are_found(count):
    for pair in itertools.combinations(range(count), 2):
        assert causes(range(count), oracle(set(pair))) == (set(pair),)


def test_three_that_do_it_only_together_are_found():
    for three in itertools.combinations(range(8), 3):
        assert causes(range(8), oracle(set(three))) == (set(three),)


def test_two_that_each_do_it_are_both_found_in_different_halves():
    assert set(causes(range(8), oracle({1}, {6}))) == {frozenset({1}), frozenset({6})}


def test_a_single_cause_takes_as_many_questions_as_there_are_halvings():
    asked = []
    ask = oracle({5})

    causes(range(16), lambda sets: asked.append(sets) or ask(sets))

    assert len(asked) == 4


def test_an_answer_that_is_none_ends_the_search_with_what_is_left():
    with pytest.raises(Unclear) as caught:
        causes(range(4), lambda sets: ["unclear"] * len(sets))

    assert caught.value.left == {0, 1, 2, 3}


@pytest.mark.parametrize("count", [3, 4, 9])
def test_the_side_with_which_a_change_came_is_found(count):
    for first in range(1, count):
        assert change(count, lambda sets, first=first: ["shows" if max(sets[0]) >= first else "absent"]) == first


def test_a_change_that_cannot_be_placed_is_said_to_be():
    with pytest.raises(Unclear) as caught:
        change(5, lambda _sets: ["unclear"])

    assert caught.value.left == {1, 2, 3, 4}


def estimate(ratio, low, high, claim):
    return SpeedEstimate(ratio=ratio, low=low, high=high, blocks=(ratio,), claim=claim)


def test_a_part_answers_for_the_whole_in_its_own_direction_only():
    slower = estimate(0.5, 0.45, 0.55, "slower")

    assert answer_of(estimate(0.6, 0.5, 0.7, "slower"), slower) == "shows"
    assert answer_of(estimate(1.5, 1.4, 1.6, "faster"), slower) == "absent"
    assert answer_of(estimate(1.0, 0.98, 1.02, "none"), slower) == "absent"
    assert answer_of(estimate(0.8, 0.5, 1.2, "none"), slower) == "unclear"
    assert answer_of(estimate(0.8, None, None, "cannot_tell"), slower) == "unclear"
