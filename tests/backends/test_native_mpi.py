import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.measure.backends.backend import Parsed
from busbw.measure.backends.native_mpi import parse, program
from busbw.model.record import AnyRecord, Failed, Finished, Streamed
from busbw.model.run import CopyRate, Rates, StreamRate

from .records import SIZE_BYTES, US, make_copied, make_hello, make_measured, make_plan, make_sweep, parsed, placed


def test_a_rank_runs_this_python_and_nothing_of_the_working_directory():
    made = program("/runs/a b", "/opt/python")
    assert made.argv == ("/opt/python", "-P", "-m", "busbw.rank", "/runs/a b")


def test_no_records_are_no_result():
    nothing = Parsed(ranks=(), rates=Rates(), measurements=(), failures=())
    assert parse(make_plan(), {}) == nothing
    assert parse(make_plan(), {0: [], 9: [("raw/rank-00009.0.jsonl:1", make_hello(9))]}) == nothing


def test_a_point_that_one_rank_lacks_is_not_measured():
    plan = make_plan(make_sweep(sizes_bytes=(SIZE_BYTES, 2 * SIZE_BYTES)), ranks=2)
    both, second = make_measured(), make_measured(point=1, size_bytes=2 * SIZE_BYTES)
    found = parse(plan, placed([make_hello(0), both, second, Finished(reason="complete")], [make_hello(1), both]))
    assert [(each.point, each.size_bytes) for each in found.measurements] == [(0, SIZE_BYTES)]
    assert [hello.rank for hello in found.ranks] == [0, 1]


def test_a_rank_without_any_record_leaves_nothing_measured():
    found = parsed(make_plan(), *[make_measured()] * 3)
    assert found.measurements == ()
    assert len(found.ranks) == 3


def test_ranks_beyond_the_plan_are_ignored():
    found = parsed(make_plan(ranks=2), *[make_measured()] * 3)
    assert len(found.measurements) == 1
    assert len(found.ranks) == 2


@pytest.mark.parametrize(
    "other",
    [
        make_measured((100 * US,) * 39),
        make_measured(calls_per_sample=2),
        make_measured(point=1),
        make_measured(sweep=1),
        make_measured(size_bytes=SIZE_BYTES // 2),
    ],
)
def test_ranks_that_disagree_about_a_point_leave_it_unmeasured(other):
    assert parsed(make_plan(ranks=2), make_measured(), other).measurements == ()


def test_points_are_told_in_the_order_of_the_plan_with_their_sweep():
    plan = make_plan(make_sweep("alltoall"), make_sweep("sendrecv", dtype="int8", in_place=True), ranks=2)
    second, first = make_measured(point=1, sweep=1), make_measured()
    found = parse(plan, placed([second, first], [second, first])).measurements
    assert [(each.collective, each.dtype, each.in_place) for each in found] == [
        ("alltoall", "float32", False),
        ("sendrecv", "int8", True),
    ]
    assert [each.source for each in found] == ["raw/rank-00000.0.jsonl:2", "raw/rank-00000.0.jsonl:1"]
    assert found[0].per_rank[0].host == ""


def starts(*attempts):
    """Return the records of several starts of one run, one after the other as the store reads them."""
    together: dict[int, list[tuple[str, AnyRecord]]] = {}
    for attempt, by_rank in enumerate(attempts):
        for rank, entries in placed(*by_rank, attempt=attempt).items():
            together.setdefault(rank, []).extend(entries)
    return together


def test_a_point_measured_again_counts_as_it_was_last():
    old, new = make_measured((100 * US,) * 40, ended="stopped"), make_measured((50 * US,) * 30)
    hellos = [make_hello(rank, process_id=rank) for rank in (0, 1)]
    found = parse(make_plan(ranks=2), starts([[old], [old]], [[hellos[0], new], [hellos[1], new]]))
    assert [each.median_s for each in found.measurements] == pytest.approx([50e-6])
    assert found.measurements[0].source == "raw/rank-00000.1.jsonl:2"


def test_records_of_two_starts_are_never_mixed():
    old, new = make_measured((100 * US,) * 40), make_measured((50 * US,) * 40)
    found = parse(make_plan(ranks=2), starts([[old], [old]], [[new], []]))
    assert [each.median_s for each in found.measurements] == pytest.approx([100e-6])
    assert parse(make_plan(ranks=2), starts([[old], []], [[], [new]])).measurements == ()


def test_the_last_words_of_a_rank_are_kept():
    failed = Failed(step="sampling all_reduce 1 KiB, sample 3", cause="OSError: no space left on device")
    found = parse(make_plan(ranks=2), placed([make_hello(0)], [make_hello(1), failed]))
    assert found.failures == ((1, failed),)
    assert len(found.ranks) == 2


def test_the_faster_kernel_of_all_ranks_together_is_the_copy_rate():
    loop, slow_loop = make_copied((2 * US,) * 3), make_copied((8 * US,))
    memcpy = make_copied((4 * US, 4 * US, 4000 * US), "memcpy")
    found = parse(make_plan(ranks=2), placed([loop, memcpy], [slow_loop, memcpy])).rates.copies
    assert found == (CopyRate(size_bytes=2**16, rate_Bps=pytest.approx(2**16 * (1 / 2e-6 + 1 / 8e-6)), kernel="loop"),)
    faster = make_copied((3 * US,), "memcpy")
    found = parse(make_plan(ranks=2), placed([loop, faster], [slow_loop, faster])).rates.copies
    assert [each.kernel for each in found] == ["memcpy"]


def test_a_copy_that_one_rank_lacks_or_that_took_no_time_is_no_rate():
    small, large, instant = make_copied((US,)), make_copied((US,), size_bytes=2**20), make_copied((), size_bytes=2**18)
    found = parse(make_plan(ranks=2), placed([small, large, instant], [small, instant])).rates.copies
    assert [each.size_bytes for each in found] == [2**16]


def test_streams_of_all_ranks_add_up():
    ring = Streamed(pattern="ring", moved_bytes=(1000,), duration_ns=(1000,))
    sender = Streamed(pattern="pairs", moved_bytes=(0,), duration_ns=(1000,))
    receiver = Streamed(pattern="pairs", moved_bytes=(500,), duration_ns=(1000,))
    found = parse(make_plan(ranks=2), placed([ring, sender], [ring, receiver])).rates.streams
    assert found == (
        StreamRate(pattern="pairs", rate_Bps=pytest.approx(0.5e9)),
        StreamRate(pattern="ring", rate_Bps=pytest.approx(2e9)),
    )


def test_a_stream_that_one_rank_lacks_or_that_took_no_time_is_no_rate():
    ring = Streamed(pattern="ring", moved_bytes=(1000,), duration_ns=(1000,))
    instant = Streamed(pattern="pairs", moved_bytes=(1000,), duration_ns=(0,))
    assert parse(make_plan(ranks=2), placed([ring, instant], [instant])).rates.streams == ()


def test_a_number_that_no_clock_or_counter_gives_cannot_be_read():
    line = msgspec.json.encode(make_measured())
    for text in (str(2**64).encode(), b"1" + b"0" * 400, b"-1" + b"0" * 20):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(line.replace(b"100000,", text + b",", 1), type=AnyRecord)


def test_a_time_that_is_not_a_number_cannot_be_read():
    line = msgspec.json.encode(make_measured())
    for text in (b"NaN", b"null", b"1.5", b'"1"'):
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(line.replace(b"100000,", text + b",", 1), type=AnyRecord)


small = st.integers(-3, 10**6)
series = st.lists(small, max_size=8).map(tuple)
anything = {
    "lateness_ns": series,
    "off_processor_ns": series,
    "missed": series,
    "warmup_calls": small,
    "verified_elements": small,
    "tcp_bytes": st.lists(st.tuples(st.text(max_size=3), small), max_size=2).map(tuple),
}
agreeing = st.builds(make_measured, st.lists(small, min_size=6, max_size=6).map(tuple), **anything)
measured = agreeing | st.builds(
    make_measured,
    series,
    point=st.integers(-1, 2),
    sweep=st.integers(-1, 2),
    calls_per_sample=st.integers(-1, 3),
    **anything,
)


@settings(deadline=None)
@given(
    st.sampled_from(["all_reduce", "alltoall", "reduce", "latency", "bibw"]),
    st.sampled_from(["isolated", "stream"]),
    st.lists(st.lists(measured, max_size=3), max_size=3) | st.tuples(st.tuples(agreeing), st.tuples(agreeing)),
)
def test_whatever_the_records_say_they_are_parsed_to_finite_values(collective, mode, by_rank):
    plan = make_plan(make_sweep(collective, (SIZE_BYTES, 2 * SIZE_BYTES)), ranks=2, mode=mode)
    for found in parse(plan, placed(*by_rank)).measurements:
        assert found.median_s > 0
        assert found.min_s <= found.low_s <= found.median_s <= found.high_s <= found.max_s
        assert found.samples > 0
        assert sum(view.blamed for view in found.per_rank) <= found.slow_samples
        assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found
