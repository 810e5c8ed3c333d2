import pytest

from busbw.base.collectives import COLLECTIVES
from busbw.model.record import Attribution, Mismatch

from .records import SIZE_BYTES, US, make_measured, make_plan, make_sweep, measurement, parsed


def constant(*levels_ns: int, count: int = 40, **changes):
    return [make_measured((level_ns,) * count, **changes) for level_ns in levels_ns]


def test_an_isolated_sample_is_the_slowest_rank():
    found = measurement(make_plan(), *constant(100 * US, 110 * US, 120 * US, 90 * US))
    assert found.median_s == pytest.approx(120e-6)
    assert (found.low_s, found.high_s) == (found.min_s, found.max_s) == (found.median_s, found.median_s)
    assert [view.median_s for view in found.per_rank] == pytest.approx([100e-6, 110e-6, 120e-6, 90e-6])
    assert found.samples == 40
    assert found.source == "raw/rank-00000.0.jsonl:2"


def test_a_stream_sample_is_the_mean_of_the_ranks_for_one_call():
    plan = make_plan(mode="stream")
    found = measurement(plan, *constant(1000 * US, 1100 * US, 1200 * US, 900 * US, calls_per_sample=10, lateness_ns=()))
    assert found.median_s == pytest.approx(105e-6)
    assert found.clock_error_s is None
    assert found.calls_per_sample == 10
    assert [view.max_s for view in found.per_rank] == pytest.approx([100e-6, 110e-6, 120e-6, 90e-6])


def test_bus_bandwidth_follows_from_the_median():
    found = measurement(make_plan(), *constant(*[100 * US] * 4))
    assert found.algbw_Bps == pytest.approx(SIZE_BYTES / 100e-6)
    assert found.busbw_Bps == pytest.approx(1.5 * SIZE_BYTES / 100e-6)
    assert found.count == SIZE_BYTES // 4


def test_the_count_is_that_of_one_part():
    found = measurement(make_plan(make_sweep("alltoall")), *constant(*[100 * US] * 4))
    assert found.count == SIZE_BYTES // 4 // 4


@pytest.mark.parametrize(
    ("collective", "messages"), [("latency", 2), ("bandwidth", 64), ("bibw", 64), ("message_rate", 64)]
)
@pytest.mark.parametrize("mode", ["isolated", "stream"])
def test_a_point_to_point_time_is_that_of_one_message(collective, messages, mode):
    found = measurement(make_plan(make_sweep(collective), ranks=2, mode=mode), *constant(128 * US, 128 * US))
    assert found.median_s == pytest.approx(128e-6 / messages)
    factor = 2 if collective == "bibw" else 1
    assert found.busbw_Bps == pytest.approx(factor * SIZE_BYTES / found.median_s)
    assert found.per_rank[1].median_s == pytest.approx(128e-6 / messages)


def test_samples_that_any_rank_missed_are_left_out():
    times = tuple(range(100 * US, 140 * US, US))
    first, second = make_measured(times, missed=(39,)), make_measured(times, missed=(0, 39))
    found = measurement(make_plan(ranks=2), first, second)
    assert (found.samples, found.missed) == (38, 2)
    assert found.min_s == pytest.approx(101e-6)
    assert found.max_s == pytest.approx(138e-6)
    assert found.per_rank[0].max_s == pytest.approx(138e-6)


def test_a_missed_sample_that_was_never_taken_is_no_sample():
    found = measurement(make_plan(ranks=2), *constant(100 * US, 100 * US, missed=(-1, 40, 10**6)))
    assert (found.samples, found.missed) == (40, 0)


def test_a_point_of_which_every_sample_was_missed_is_not_measured():
    assert parsed(make_plan(ranks=2), *constant(100 * US, 100 * US, count=3, missed=(0, 1, 2))).measurements == ()


@pytest.mark.parametrize("mode", ["isolated", "stream"])
def test_a_point_without_samples_is_not_measured(mode):
    records = [make_measured((), ended="stopped")] * 2
    assert parsed(make_plan(ranks=2, mode=mode), *records).measurements == ()


def test_a_point_that_took_no_time_is_not_measured():
    assert parsed(make_plan(ranks=2), *constant(0, 0)).measurements == ()


def test_few_samples_have_their_extremes_as_interval():
    records = [make_measured((100 * US, 110 * US, 130 * US))] * 2
    found = measurement(make_plan(ranks=2), *records)
    assert (found.low_s, found.high_s) == pytest.approx((100e-6, 130e-6))
    assert found.percentiles == ()
    assert found.autocorrelation is None
    assert found.drift is None
    assert found.per_rank[0].p99_s is None


def test_a_wrong_result_is_told_and_has_no_time():
    mismatch = Mismatch(wrong=3, index=7, got="1", expected="2")
    right, wrong = make_measured((), ended="wrong"), make_measured((), ended="wrong", mismatch=mismatch)
    found = measurement(make_plan(), right, right, wrong, wrong)
    assert found.wrong is not None
    assert (found.wrong.rank, found.wrong.host, found.wrong.mismatch) == (2, "node1", mismatch)
    assert (found.samples, found.median_s, found.busbw_Bps, found.ended) == (0, 0.0, 0.0, "wrong")


def test_the_clock_error_is_that_of_the_worst_rank():
    records = [make_measured(clock_error_ns=error_ns) for error_ns in (1, 250, 30, 0)]
    assert measurement(make_plan(), *records).clock_error_s == pytest.approx(250e-9)


@pytest.mark.parametrize(
    ("collective", "elements", "verified"),
    [
        ("all_reduce", (1, 1, 1, 1), True),
        ("all_reduce", (1, 1, 0, 1), False),
        ("reduce", (0, 1, 0, 0), True),
        ("reduce", (1, 0, 1, 1), False),
        ("scatter", (1, 0, 1, 1), True),
        ("broadcast", (0, 1, 1, 1), False),
        ("bandwidth", (0, 0, 1, 1), True),
        ("bandwidth", (1, 1, 0, 1), False),
    ],
)
def test_a_result_is_verified_when_every_rank_that_receives_has_checked(collective, elements, verified):
    records = [make_measured(verified_elements=count) for count in elements]
    assert measurement(make_plan(make_sweep(collective, root=1)), *records).verified is verified


# Bytes that one call moves from rank to rank, all ranks together.
MOVED_BYTES = {
    "all_reduce": 2 * 3 * SIZE_BYTES,
    "all_gather": 3 * SIZE_BYTES,
    "reduce_scatter": 3 * SIZE_BYTES,
    "alltoall": 3 * SIZE_BYTES,
    "broadcast": 3 * SIZE_BYTES,
    "reduce": 3 * SIZE_BYTES,
    "gather": 3 * SIZE_BYTES // 4,
    "scatter": 3 * SIZE_BYTES // 4,
    "alltoallv": 3 * SIZE_BYTES,
    "alltoall_2dh": 3 * SIZE_BYTES,
    "hypercube": 3 * SIZE_BYTES,
    "sendrecv": 4 * SIZE_BYTES,
    "latency": 2 * 2 * SIZE_BYTES,
    "bandwidth": 2 * 64 * SIZE_BYTES,
    "message_rate": 2 * 64 * SIZE_BYTES,
    "bibw": 2 * 2 * 64 * SIZE_BYTES,
}


@pytest.mark.parametrize(("collective", "moved_bytes"), MOVED_BYTES.items())
def test_the_share_of_an_interface_is_of_all_bytes_that_all_calls_move(collective, moved_bytes):
    calls = 1 + 10 + 40 * 3
    first = make_measured(calls_per_sample=3, tcp_bytes=(("eth0", calls * moved_bytes // 4), ("lo", 0)))
    other = make_measured(calls_per_sample=3)
    elsewhere = make_measured(calls_per_sample=3, tcp_bytes=(("eth0", calls * moved_bytes // 4),))
    found = measurement(make_plan(make_sweep(collective), mode="stream"), first, other, elsewhere, other)
    assert dict(found.tcp_share) == pytest.approx({"eth0": 0.5, "lo": 0.0})


def test_every_collective_has_a_share_above():
    assert set(MOVED_BYTES) == set(COLLECTIVES)


def test_without_traffic_there_is_no_share():
    assert measurement(make_plan(), *constant(*[100 * US] * 4)).tcp_share == ()


def spiked(count: int, every: int, level_ns: int, spike_ns: int) -> tuple[int, ...]:
    return tuple(level_ns + (spike_ns if index % every == every - 1 else index % 5) for index in range(count))


def test_slow_samples_are_blamed_on_the_rank_that_was_off_its_processor():
    times = spiked(200, 20, 20 * US, 200 * US)
    off = tuple(200 * US if time_ns > 100 * US else 500 for time_ns in times)
    records = [make_measured(times, involuntary_switches=rank) for rank in range(3)]
    found = measurement(make_plan(), *records, make_measured(times, off_processor_ns=off, involuntary_switches=10))
    assert found.slow_samples == 10
    assert found.slow_excess_s == pytest.approx(200e-6, rel=1e-3)
    assert [view.blamed for view in found.per_rank] == [0, 0, 0, 10]
    assert [view.involuntary_switches for view in found.per_rank] == [0, 1, 2, 10]


def test_slow_samples_are_blamed_on_the_rank_that_started_late_whatever_was_missed():
    times = spiked(200, 20, 20 * US, 200 * US)
    late = tuple(200 * US if time_ns > 100 * US else 50 for time_ns in times)
    records = [make_measured(times, missed=(0, 1, 2, 19)), make_measured(times, lateness_ns=late), make_measured(times)]
    found = measurement(make_plan(ranks=3), *records)
    assert found.slow_samples == 9
    assert [view.blamed for view in found.per_rank] == [0, 9, 0]


def test_records_cut_short_blame_nobody():
    times = spiked(200, 20, 20 * US, 200 * US)
    records = [make_measured(times, off_processor_ns=(), lateness_ns=(1, 2))] * 2
    found = measurement(make_plan(ranks=2), *records)
    assert found.slow_samples == 10
    assert [view.blamed for view in found.per_rank] == [0, 0]


def test_a_slow_call_of_many_messages_is_slow():
    times = spiked(200, 20, 64 * US, 100 * US)
    found = measurement(make_plan(make_sweep("bandwidth"), ranks=2), make_measured(times), make_measured(times))
    assert found.slow_samples == 10
    assert found.slow_excess_s == pytest.approx(100e-6 / 64, rel=1e-3)


def test_in_stream_mode_only_time_off_the_processor_is_blamed():
    times = spiked(200, 20, 20 * US, 200 * US)
    off = tuple(200 * US if time_ns > 100 * US else 500 for time_ns in times)
    quiet = make_measured(times, lateness_ns=())
    found = measurement(
        make_plan(ranks=3, mode="stream"), quiet, make_measured(times, lateness_ns=(), off_processor_ns=off), quiet
    )
    assert [view.blamed for view in found.per_rank] == [0, 10, 0]


def test_the_attribution_is_that_of_the_first_rank():
    passes = (Attribution(bit=0, group=0, ranks=(0,), calls=400, slow_calls=3),)
    found = measurement(make_plan(ranks=2), make_measured(attribution=passes), make_measured())
    assert found.attribution == passes


def test_percentiles_and_p99_are_there_with_a_thousand_samples():
    times = tuple(range(100 * US, 100 * US + 1000))
    found = measurement(make_plan(ranks=2), make_measured(times), make_measured(times))
    assert dict(found.percentiles)[99] == pytest.approx(100.989e-6, rel=1e-6)
    assert found.per_rank[1].p99_s == pytest.approx(dict(found.percentiles)[99])
    assert found.autocorrelation == pytest.approx(1.0, abs=0.01)
    assert found.drift == pytest.approx(0.005, rel=0.01)
