"""What training jobs write is read, or refused with InputError, whatever is in it, and in time that grows with it."""

import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from .harnesses import feed
from .test_parsers import damaged
from .training_log_harnesses import TRAINING_LOG_HARNESSES, TRAINING_LOG_SEEDS

# What a number may be replaced by.
_NUMBERS = (
    b"0",
    b"-1",
    b"007",
    b"1e400",
    b"9" * 40,
    b"1" * 18,
    b"\xd9\xa3",
    b"nan",
    b"inf",
    b"1,2,3",
    b"+5",
    b".",
    b"",
)


@pytest.mark.parametrize("name", TRAINING_LOG_HARNESSES)
def test_only_an_input_error_comes_out_of_a_reader(name: str) -> None:
    seeds = TRAINING_LOG_SEEDS[name]

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=200) | damaged(seeds))
    def check(data: bytes) -> None:
        feed(TRAINING_LOG_HARNESSES[name], data)

    check()


@pytest.mark.parametrize("name", TRAINING_LOG_HARNESSES)
def test_any_number_in_the_place_of_another_is_read_or_refused(name: str) -> None:
    draw = random.Random(name)
    for seed in TRAINING_LOG_SEEDS[name]:
        for _ in range(36 // len(TRAINING_LOG_SEEDS[name])):
            places = list(re.finditer(rb"\d+(?:\.\d+)?", seed))
            chosen = set(draw.sample(places, min(len(places), 3)))
            parts, end = [], 0
            for place in places:
                if place in chosen:
                    parts += [seed[end : place.start()], draw.choice(_NUMBERS)]
                    end = place.end()
            feed(TRAINING_LOG_HARNESSES[name], b"".join((*parts, seed[end:])))


@pytest.mark.parametrize(
    "text",
    [
        b"elapsed time per iteration (ms): ",
        b"iteration 1/ 2 | elapsed time per iteration (ms): ",
        b"global_step=1, train_step_timing in s",
        b"step: 1  loss: tps: ",
        b" 50%| it/s",
        b":::MLLOG {",
        b"seq_length .. ",
    ],
)
def test_a_long_line_costs_no_more_than_its_length(text: bytes) -> None:
    short, long = (text * (length // len(text)) for length in (20_000, 400_000))
    check_growth(lambda data: feed(TRAINING_LOG_HARNESSES["training_log"], data), short, long, most=60)
