"""A message is tried only with patterns whose words it holds, and what is found is the same as with all of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.facts.logs import log_patterns, log_regex
from busbw.logs.pattern_index import possible_patterns, words_of

from .test_families import FAMILIES
from .test_patterns import LINES

KNOWN = [*FAMILIES.values(), *LINES.values()]
EVERY = range(len(log_patterns()))


def matching(message: str) -> list[int]:
    return [number for number in EVERY if log_regex(log_patterns()[number].regex).search(message) is not None]


@pytest.mark.parametrize(
    ("regex", "words"),
    [
        ("has lost its daemon", {"has lost its daemon"}),
        ("(?:failed to start|cannot open) it", {"failed to start", "cannot open"}),
        ("(?i)Host KEY", {"host key"}),
        ("(?:never )?seen before", {"seen before"}),
        ("(?:again ){1,3}tried", {"again "}),
        (r"\d+ (?:ab|cdefg)", None),
        ("(?!not this one).*", None),
        (r"\w+-[xy]", None),
    ],
)
def test_a_pattern_asks_for_the_words_that_each_of_its_matches_holds(regex: str, words: set[str] | None):
    assert words_of(regex) == (frozenset(words) if words is not None else None)


def test_most_patterns_are_not_tried_with_a_line_that_none_is_for():
    assert len(list(possible_patterns("epoch 3 of 10: loss 2.31, 81234 tokens per second", EVERY))) < len(EVERY) / 4


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.sampled_from(KNOWN), st.sampled_from(KNOWN), st.integers(0, 200), st.integers(0, 200), st.text(max_size=4))
def test_no_pattern_is_left_out_that_matches_a_piece_of_lines(one: str, two: str, at: int, cut: int, text: str):
    message = one[: at % (len(one) + 1)] + text + two[cut % (len(two) + 1) :]

    assert set(matching(message)) <= set(possible_patterns(message, EVERY))


def test_what_is_too_long_to_take_apart_is_tried_with_all():
    assert list(possible_patterns("x" * 5000, EVERY)) == list(EVERY)
