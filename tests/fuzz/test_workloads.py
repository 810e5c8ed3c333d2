"""Workloads and configurations: any text is understood or refused in words, in time that grows with its length."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from .harnesses import feed
from .workload_harnesses import WORKLOAD_HARNESSES, WORKLOAD_SEEDS

PIECES = (
    b"--num-layers ", b"--nnodes 2 ", b"$A", b"A=3\n", b"007", b"-1", b"99999999999999999999999", b"0", b"\xd9\xa3",
    b"tp=", b"nic=", b"2x", b",", b"layers = ", b"[model]\n", b"parallelism = { tp = 3 }\n", b"gpus = 1048577\n", b": ",
    b"&a [*a]", b"- ", b"\n", b"{", b"}", b"\xff", b"\x00", b"'", b'"', b"=", b"\x7f", b"# ",
    *(line + b"\n" for seed in WORKLOAD_SEEDS for line in seed.split(b"\n")[:14]),
    *WORKLOAD_SEEDS,
)  # fmt: skip
LONG = 20_000


@pytest.mark.parametrize("name", WORKLOAD_HARNESSES)
def test_only_an_input_error_comes_out_of_what_reads_training_jobs(name: str) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=10).map(b"".join))
    def read(data: bytes) -> None:
        feed(WORKLOAD_HARNESSES[name], data)

    read()


@pytest.mark.parametrize("name", WORKLOAD_HARNESSES)
@pytest.mark.parametrize("pattern", [b"[", b"--a ", b"a=1\n", b"."])
def test_a_long_text_of_a_job_costs_no_more_than_its_length(name: str, pattern: bytes) -> None:
    short, long = (pattern * (size // len(pattern)) for size in (LONG // 4, LONG))
    check_growth(lambda data: feed(WORKLOAD_HARNESSES[name], data), short, long, most=12)
