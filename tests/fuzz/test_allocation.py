"""Lists and files of hosts, and what batch systems set: any text is understood or refused in words, in no time."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_cost

from .allocation_harnesses import ALLOCATION_HARNESSES, ALLOCATION_SEEDS
from .harnesses import feed

PIECES = (
    *(b"n0", b"[", b"]", b",", b"-", b":", b"=", b"(x", b")", b"#", b" ", b"\n", b"07", b"9999999999", b"slots=", b"@"),
    *(b"^", b"+", b"\t", b"\xff", b"\x00", b"n[0-65535]", b"max_slots=", b"SLURM_JOB_NODELIST="),
    *ALLOCATION_SEEDS,
)
LONG = 40_000


@pytest.mark.parametrize("name", ALLOCATION_HARNESSES)
def test_only_an_input_error_comes_out_of_what_reads_hosts(name: str) -> None:
    @settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=8).map(b"".join))
    def read(data: bytes) -> None:
        feed(ALLOCATION_HARNESSES[name], data)

    read()


@pytest.mark.parametrize("name", ALLOCATION_HARNESSES)
@pytest.mark.parametrize(
    "pattern", [b"n", b"[", b"]", b"n[0-9]", b"n,", b"n0\n", b"0-1,", b"n[0-65535]\n", b"1(x9),", b"#", b" ", b"a."]
)
def test_a_long_list_of_hosts_takes_little_time(name: str, pattern: bytes) -> None:
    data = pattern * (LONG // len(pattern))
    check_cost(lambda: feed(ALLOCATION_HARNESSES[name], data), most_s=5)
