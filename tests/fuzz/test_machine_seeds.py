"""What the campaign starts from is valid: a harness that refuses its seeds reaches nothing behind the first check."""

import pytest

from busbw.base.errors import InputError

from .campaign import LONGEST_INPUT_BYTES
from .machine_harnesses import MACHINE_HARNESSES
from .machine_seeds import machine_seeds


@pytest.mark.parametrize("name", MACHINE_HARNESSES)
def test_most_seeds_of_a_machine_are_taken_whole(name: str) -> None:
    valid = machine_seeds(name)
    taken = 0
    for seed in valid:
        assert len(seed) <= LONGEST_INPUT_BYTES
        try:
            MACHINE_HARNESSES[name](seed)
            taken += 1
        except InputError:
            continue
    assert taken > len(valid) / 2
