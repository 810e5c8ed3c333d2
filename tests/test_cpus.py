"""CPU lists and masks: every set comes back, and what is no set is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.base.cpus import MOST_CPUS, format_cpu_list, format_mask, parse_cpu_list, parse_mask

SETS = st.sets(st.integers(0, 300), max_size=80).map(lambda cpus: tuple(sorted(cpus)))


@given(SETS)
def test_a_set_comes_back_from_its_list_and_from_its_mask(cpus):
    assert parse_cpu_list(format_cpu_list(cpus)) == cpus
    assert parse_mask(format_mask(cpus)) == cpus


@pytest.mark.parametrize(
    ("mask", "cpus"),
    [
        ("ffff,00000000", "32-47"),
        ("00000000,0000ffff,ffffffff", "0-47"),
        ("000000ff,ffff0000,00000000", "48-71"),
        ("ff000000,00000000,ff000000,00000000", "56-63,120-127"),
        # A short word is its number: the CPUs that were meant are not the ones it names.
        ("fff0000,00000000", "48-59"),
        ("0", ""),
    ],
)
def test_masks_are_words_of_32_bits_with_the_highest_first(mask, cpus):
    assert format_cpu_list(parse_mask(mask) or ()) == cpus


@pytest.mark.parametrize("text", ["", "xyz", "0x1", "123456789", "ff,,ff", "-1", "ffffffff,ffffffffg", "f" * 40])
def test_what_is_no_mask_is_refused(text):
    assert parse_mask(text) is None


@pytest.mark.parametrize("text", ["a", "3-1", "1-", "0-99999999", f"0-{MOST_CPUS}", "1;2", "1--2"])
def test_what_is_no_list_is_refused(text):
    assert parse_cpu_list(text) is None


def test_a_mask_is_filled_to_the_words_asked_for():
    assert format_mask((0, 1), words=3) == "00000000,00000000,00000003"
