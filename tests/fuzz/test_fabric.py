"""Links and counters of a fabric: any text is understood or refused in words, in time that grows with its length."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from .fabric_harnesses import FABRIC_HARNESSES, FABRIC_SEEDS
from .harnesses import feed

PIECES = (
    *(
        b"Switch\t8 ",
        b'"S-1"',
        b'"H-1"',
        b'"n1 mlx5_0"',
        b"[1]",
        b"[2]",
        b"#",
        b"lid 4",
        b" 4xHDR",
        b"1xSDR",
        b"\n",
        b"Ca\t1 ",
    ),
    *(
        b"CA: n1:\n",
        b" ==( 4X 25.78125 Gbps Active/ LinkUp)==> ",
        b"\xff",
        b"\x00",
        b"{",
        b"}",
        b":",
        b"....",
        b"99999",
        b"n0:a",
        b",",
        b"n1:b",
    ),
    *(line + b"\n" for seed in FABRIC_SEEDS for line in seed.split(b"\n")[:12]),
    *FABRIC_SEEDS,
)
LONG = 30_000


@pytest.mark.parametrize("name", FABRIC_HARNESSES)
def test_only_an_input_error_comes_out_of_what_reads_a_fabric(name: str) -> None:
    @settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=12).map(b"".join))
    def read(data: bytes) -> None:
        feed(FABRIC_HARNESSES[name], data)

    read()


@pytest.mark.parametrize("name", FABRIC_HARNESSES)
@pytest.mark.parametrize(
    "pattern", [b"[", b'"', b"#", b" ", b"\n", b".", b"{", b"[1]", b"lid 1 ", b"a:", b"0x0 ", b"=="]
)
def test_a_long_text_costs_no_more_than_its_length(name: str, pattern: bytes) -> None:
    short, long = (pattern * (size // len(pattern)) for size in (LONG // 4, LONG))
    check_growth(lambda data: feed(FABRIC_HARNESSES[name], data), short, long, most=12)
