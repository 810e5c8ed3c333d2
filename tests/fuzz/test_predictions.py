"""Graphs and cells of predictions: any text is understood or refused in words, in time that grows with its length."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from .harnesses import feed
from .prediction_harnesses import PREDICTION_HARNESSES, PREDICTION_SEEDS

PIECES = (
    b"<graphs>", b"</graphs>", b'<graph id="0" ', b"</graph>", b"<channel>", b'"', b"=", b"007", b"-1", b"0", b",",
    b"\n", b"\xd9\xa3", b"nan", b"inf", b"1e400", b"ring=8x48/48", b" ", b"\xff", b"\x00", b"'",
    b"99999999999999999999999",
    b"NCCL INFO Pattern 4, crossNic 0, nChannels 999, bw 1.0/1.0, type NVL/PIX, sameChannels 1\n",
    *(line + b"\n" for seed in PREDICTION_SEEDS for line in seed.split(b"\n")[:12]),
    *PREDICTION_SEEDS,
)  # fmt: skip


@pytest.mark.parametrize("name", PREDICTION_HARNESSES)
def test_only_an_input_error_comes_out_of_what_predictions_are_made_from(name: str) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=8).map(b"".join))
    def read(data: bytes) -> None:
        feed(PREDICTION_HARNESSES[name], data)

    read()


@pytest.mark.parametrize("name", PREDICTION_HARNESSES)
def test_time_grows_with_the_length_only(name: str) -> None:
    for seed in (b'<graph id="0" ', b"A,aws-p5,2,16,all_reduce,1024,0.01,default\n", b"ring=8x48/48 "):
        short, long = (PREDICTION_SEEDS[-1] + seed * count for count in (500, 4_000))
        check_growth(lambda data: feed(PREDICTION_HARNESSES[name], data), short, long, most=24)
