"""Names, values and lists of any text are understood or refused in words, in no time, and never with a traceback."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from busbw.base.units import parse_size
from busbw.env.hca import choose, device_names, device_problems, parse_devices
from busbw.env.misspelled import read_name
from busbw.env.rules.combinations import interactions
from busbw.env.values import read_value
from busbw.env.values_c import leading_integer, meant_bytes, suffixed_bytes
from busbw.env.values_nccl import read_algorithms, read_protocols
from busbw.facts.envvars import variables

NAMES = sorted(variables())
VERSIONS = st.sampled_from([None, (2, 18, 3), (2, 23, 4), (2, 24), (2, 30, 7), (2, 32, 3), (9, 9, 9)])
PIECES = [
    "NVLS",
    "ring",
    "^",
    "=",
    ",",
    ";",
    ":",
    "mlx5_1",
    "8M",
    "0x",
    "-2",
    "true",
    '"',
    "'",
    " ",
    "~/",
    "\r",
    "LL128",
]
TEXTS = st.text(max_size=40) | st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
LONG = 20_000


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.sampled_from(NAMES), TEXTS, VERSIONS)
def test_any_value_of_any_variable_is_understood_or_told(name: str, text: str, version: tuple[int, ...] | None) -> None:
    found = read_value(variables()[name], text, version)

    assert (found.problem is None) == (found.kind is None)
    assert found.problem is None or len(found.problem) < 4000


@settings(max_examples=266, deadline=None, derandomize=True)
@given(st.sampled_from(NAMES), TEXTS, VERSIONS)
def test_what_to_write_instead_leads_to_an_end(name: str, text: str, version: tuple[int, ...] | None) -> None:
    variable = variables()[name]
    found = read_value(variable, text, version)
    steps = 0
    while found.instead is not None:
        found = read_value(variable, found.instead, version)
        steps += 1
        # Quotation marks within each other come off one pair at a time.
        assert steps <= 1 + len(text) // 2


@settings(max_examples=166, deadline=None, derandomize=True)
@given(TEXTS, VERSIONS)
def test_any_list_is_read(text: str, version: tuple[int, ...] | None) -> None:
    devices = parse_devices(text)
    for problem in device_problems(devices, "NCCL_IB_HCA", version):
        assert text[problem.offset :].startswith(problem.written)
    for entry in devices.entries:
        assert text[entry.offset :].startswith(entry.written)
    present = ("mlx5_0", "mlx5_1", "mlx5_10", "mlx5_0:2")
    assert set(choose(devices, present).taken) <= set(present)
    read_algorithms(text, version)
    read_protocols(text, version)
    device_names(text)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=60) | st.sampled_from(NAMES).map(lambda name: name[:-1]), st.integers())
def test_any_name_is_judged(name: str, number: int) -> None:
    for each in (name, f"NCCL_{name}", f"{name}{number}"):
        read = read_name(each)
        assert each not in read.meant
        assert (read.verdict == "misspelt") <= bool(read.meant)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.dictionaries(st.sampled_from([name for name in NAMES if name.startswith("NCCL_")]), TEXTS, max_size=12), VERSIONS
)
def test_any_settings_together_are_judged(values: dict[str, str], version: tuple[int, ...] | None) -> None:
    for nodes in (None, 1, 2):
        for each in interactions(values, version=version, nodes=nodes):
            assert set(each.names) <= set(variables())
            assert each.condition
            assert each.effect


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_of_64_bits_are_read_in_three_bases(value: int) -> None:
    sign = "-" if value < 0 else ""
    for written in (f"{value}", f"{sign}0x{abs(value):x}", f"{sign}0{abs(value):o}"):
        number = leading_integer(written + "k")
        assert number is not None
        assert (number.value, number.rest) == (value, "k")


@settings(max_examples=66, deadline=None, derandomize=True)
@given(st.integers(1, 1023), st.sampled_from("KMGkmg"))
def test_sizes_with_suffixes_agree_with_busbw_s_own(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"

    assert meant_bytes(text) == suffixed_bytes(text) == parse_size(text)


@pytest.mark.parametrize(
    "name", ["NCCL_IB_HCA", "NCCL_ALGO", "NCCL_BUFFSIZE", "NCCL_DEBUG_SUBSYS", "UCX_TLS", "CUDA_VISIBLE_DEVICES"]
)
@pytest.mark.parametrize("piece", ["a,", "9", ":", "^", "=", " ", ";ring:", "0,", "mlx5_1,"])
def test_a_long_value_takes_no_longer_than_its_length_explains(name: str, piece: str) -> None:
    short, long = (piece * (length // len(piece)) for length in (LONG // 8, LONG))
    # Linear is a factor of 8, quadratic 64.
    check_growth(lambda text: read_value(variables()[name], text), short, long, most=24)
