"""Parsers refuse any input politely, and in time that grows with its length only."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from busbw.model import codec

from .harnesses import DOCUMENTS, RUN_HARNESSES, STEP_PLAN, TEXT_HARNESSES, feed, seeds_of
from .seeds import FRAGMENTS, document, records_of_a_rank

EXAMPLES = 80
LONG = 50_000


@st.composite
def damaged(draw: st.DrawFn, valid: tuple[bytes, ...]) -> bytes:
    """A valid input, cut, or with stretches replaced by something else."""
    data = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        data = data[:start] + draw(st.sampled_from(FRAGMENTS) | st.binary(max_size=8)) + data[end:]
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


@pytest.mark.parametrize("name", RUN_HARNESSES)
def test_only_an_input_error_comes_out_of_a_parser(name: str) -> None:
    valid = seeds_of(name)

    # The same inputs every time; `make fuzz` is for new ones.
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        st.binary(max_size=200)
        | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace"))
        | damaged(valid)
    )
    def parse(data: bytes) -> None:
        feed(RUN_HARNESSES[name], data)

    parse()


@pytest.mark.parametrize("kind", DOCUMENTS.values(), ids=list(DOCUMENTS))
def test_the_seeds_are_valid_documents(kind: type) -> None:
    value = codec.decode(document(kind), kind, where="seed")
    assert codec.decode(codec.encode(value), kind, where="again") == value


@pytest.mark.parametrize("name", TEXT_HARNESSES)
def test_a_long_input_takes_no_longer_than_its_length_explains(name: str) -> None:
    patterns = [b"1", b"1.", b"a", b" ", b",", b"0-1,", b"\n", b"prte ", b"mpirun (Open MPI) ", b"Intel(R) MPI Library"]
    for pattern in patterns:
        short, long = (pattern * (length_bytes // len(pattern)) for length_bytes in (LONG // 8, LONG))
        # Linear is a factor of 8, quadratic 64.
        check_growth(lambda data: feed(RUN_HARNESSES[name], data), short, long, most=24)


def test_the_seeds_make_a_run_with_a_measurement() -> None:
    run = RUN_HARNESSES["loaded_records"](b"".join(records_of_a_rank()))
    assert [measurement.size_bytes for measurement in run.measurements] == [1024]
    assert run.unreadable == ()


def test_the_seed_of_a_replayed_step_is_a_plan_of_one() -> None:
    run = RUN_HARNESSES["loaded_plan"](STEP_PLAN)
    assert run.plan.step is not None
    assert [call.collective for call in run.plan.step.calls] == ["all_reduce"]


@pytest.mark.parametrize("name", RUN_HARNESSES)
@pytest.mark.parametrize("digits", [20, 5000])
def test_a_number_may_have_any_length(name: str, digits: int) -> None:
    for valid in seeds_of(name):
        numbers = list(re.finditer(rb"\d+", valid))
        # Of many, fifty spread over the whole.
        for number in numbers[:: 1 + len(numbers) // 50]:
            feed(RUN_HARNESSES[name], valid[: number.start()] + b"9" * digits + valid[number.end() :])
