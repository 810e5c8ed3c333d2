"""Gates as they are written on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.judge.gates.expression import format_gate, parse_gate, parse_sizes

from .rows import GiB, any_gate

MiB = 2**20


def test_a_gate_names_points_and_a_bound():
    gate = parse_gate("all_reduce@1G..8G,in-place,bfloat16,sum,16ranks,checked=380 GB/s", "at_least")
    assert (gate.collective, gate.from_bytes, gate.to_bytes) == ("all_reduce", GiB, 8 * GiB)
    assert (gate.in_place, gate.dtype, gate.op, gate.ranks, gate.checked) == (True, "bfloat16", "sum", 16, True)
    assert (gate.number, gate.unit) == (380.0, "GB/s")


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("1G", (GiB, GiB)),
        ("1GiB", (GiB, GiB)),
        ("8", (8, 8)),
        ("0", (0, 0)),
        ("1M..1G", (MiB, GiB)),
        ("1M .. 1G", (MiB, GiB)),
        ("1G..", (GiB, None)),
        (">=1G", (GiB, None)),
        ("..64K", (None, 65536)),
        ("<=64K", (None, 65536)),
    ],
)
def test_sizes_are_one_a_range_or_everything_from_one_on(text, ends):
    assert parse_sizes(text) == ends


def test_a_size_may_begin_with_a_comparison():
    assert parse_gate("all_reduce@>=1G=380GB/s", "at_least") == parse_gate("all_reduce@1G..=380GB/s", "at_least")


@pytest.mark.parametrize("unit", ["us", "\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s"])
def test_a_microsecond_is_written_in_three_ways(unit):
    assert parse_gate(f"latency@8=2{unit}", "at_most").unit == "us"


def test_a_percentage_may_be_for_everything_or_for_some_points():
    assert parse_gate("5%", "within").collective is None
    assert parse_gate("@1M..=2.5 %", "within").from_bytes == MiB
    assert parse_gate("all_gather@1M=0%", "within").number == 0


def test_names_of_nccl_tests_are_data_types_too():
    assert parse_gate("all_reduce@1G,half=1GB/s", "at_least").dtype == "float16"


@pytest.mark.parametrize(
    ("requirement", "text", "cause"),
    [
        ("at_least", "all_reduce@1G", "no number"),
        ("at_least", "=380GB/s", "no collective"),
        ("at_least", "@1G=380GB/s", "no collective"),
        ("at_least", "all_reduce@1G=380", "no unit"),
        ("at_least", "all_reduce@1G=380gb/s", "'gb/s' is not a unit"),
        ("at_least", "all_reduce@1G=2us", "a time is bounded from above"),
        ("at_most", "latency@8=2GB/s", "a bandwidth is bounded from below"),
        ("at_least", "all_reduce@1G=0GB/s", "holds nothing back"),
        ("at_least", "all_reduce@1G=-1GB/s", "not a number"),
        ("at_least", "all_reduce@1G=nanGB/s", "not a number"),
        ("at_least", "all_reduce@1G=1e9GB/s", "'e9GB/s'"),
        ("at_least", "all_reduce@=380GB/s", "is not a size"),
        ("at_least", "all_reduce@..=380GB/s", "not a range"),
        ("at_least", "all_reduce@8G..1G=380GB/s", "the greater one"),
        ("at_least", "all_reduce@1X=380GB/s", "is not a size"),
        ("at_least", "all_reduce@1G,inplace=380GB/s", "not a condition"),
        ("at_least", "all_reduce@1G,in-place,out-of-place=380GB/s", "said twice"),
        ("at_least", "all_reduce@1G,p99=380GB/s", "no bandwidth"),
        ("at_most", "latency@8,algbw=2us", "no time"),
        ("at_least", "all_reduce@1G,0ranks=1GB/s", "not a condition"),
        ("within", "100%", "below 100"),
        ("within", "5", "no unit"),
        ("within", "5us", "not a unit"),
        ("at_least", "all reduce@1G=1GB/s", "no collective"),
        ("at_least", "a" * 300 + "=1GB/s", "characters"),
    ],
)
def test_what_is_no_gate_is_refused_with_the_cause(requirement, text, cause):
    with pytest.raises(InputError) as refused:
        parse_gate(text, requirement)
    assert cause in refused.value.cause
    assert refused.value.hint is not None
    assert len(str(refused.value).splitlines()) <= 4


@given(gate=any_gate())
def test_every_gate_is_read_back_as_it_was_written(gate):
    assert parse_gate(format_gate(gate), gate.requirement) == gate


@given(
    text=st.text(alphabet="all_reduce@1G.,=380B/s%us><- \n\x00é", max_size=60),
    requirement=st.sampled_from(["at_least", "at_most", "within"]),
)
def test_any_text_is_a_gate_that_is_read_back_or_refused(text, requirement):
    try:
        gate = parse_gate(text, requirement)
    except InputError:
        return
    assert parse_gate(format_gate(gate), requirement) == gate
