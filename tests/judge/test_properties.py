"""Whatever the values are: a judgement comes out, and ok rests on something."""

from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES
from busbw.facts.rules import rules
from busbw.judge import Judgement, judge
from busbw.judge.usable import is_usable
from busbw.model import codec
from busbw.model.record import Attribution
from busbw.model.run import CopyRate, Rates, StreamRate
from busbw.model.visit import Culprit

from .factories import (
    make_counters,
    make_hello,
    make_measurement,
    make_outcome,
    make_plan,
    make_sweep,
    make_views,
    make_wrong,
)

seconds = st.floats(0, 1e3)
small = st.integers(0, 50)
sizes = st.integers(1, 2**26)
collectives = st.sampled_from(sorted(COLLECTIVES))


@st.composite
def measurements(draw):
    ranks = draw(st.integers(1, 8))
    low, median, high = sorted(draw(st.tuples(seconds, st.floats(1e-9, 1e3), seconds)))
    slow = draw(small)
    halves = tuple(
        Attribution(
            bit=bit,
            group=group,
            ranks=tuple(rank for rank in range(ranks) if (rank >> bit) & 1 == group),
            calls=400,
            slow_calls=draw(st.integers(0, 400)),
        )
        for bit in range((ranks - 1).bit_length())
        for group in range(2)
    )
    return make_measurement(
        draw(collectives),
        draw(sizes),
        max(median, 1e-9),
        ranks=ranks,
        point=draw(st.integers(0, 5)),
        dtype=draw(st.sampled_from(sorted(DTYPE_BYTES))),
        op=draw(st.sampled_from(("sum", "max"))),
        root=draw(st.integers(0, ranks - 1)),
        in_place=draw(st.booleans()),
        mode=draw(st.sampled_from(("stream", "isolated"))),
        samples=draw(st.sampled_from((0, 1, 5, 6, 29, 30, 1000))),
        missed=draw(small),
        low_s=low,
        high_s=high,
        confidence=draw(st.floats(0, 1)),
        clock_error_s=draw(st.none() | seconds),
        warmup_stable=draw(st.booleans()),
        autocorrelation=draw(st.none() | st.floats(-1, 1)),
        drift=draw(st.none() | st.floats(-1, 10)),
        slow_samples=slow,
        slow_excess_s=draw(st.none() | seconds) if slow else None,
        wrong=draw(st.none() | st.none() | st.just(make_wrong())),
        verified=draw(st.booleans()),
        ended=draw(st.sampled_from(("interval", "samples", "time", "stopped", "wrong"))),
        tcp_share=draw(st.sampled_from(((), (("lo", 0.4),), (("lo", 1.1),), (("eth0", 1.0), ("lo", 0.1))))),
        per_rank=draw(
            st.just(())
            | st.builds(lambda rank, losses: make_views(ranks, {rank: slow}, losses), st.integers(0, 7), small)
        ),
        attribution=draw(st.just(()) | st.just(halves)),
        percentiles=draw(st.just(()) | st.just(((50.0, median), (99.0, high)))),
    )


rates = st.builds(
    Rates,
    copies=st.lists(
        st.builds(CopyRate, size_bytes=sizes, rate_Bps=st.floats(0, 1e12), kernel=st.sampled_from(("loop", "memcpy"))),
        max_size=5,
    ).map(tuple),
    streams=st.lists(
        st.builds(StreamRate, pattern=st.sampled_from(("ring", "pairs")), rate_Bps=st.floats(0, 1e11)), max_size=2
    ).map(tuple),
)
counters = st.builds(
    make_counters,
    stolen_s=st.none() | seconds,
    cpu_s=seconds,
    quota_stops=st.none() | small,
    throttle_events=st.none() | small,
    memory_kills=st.none() | small,
    load_average=st.floats(0, 100),
)
culprits = st.builds(
    Culprit, rank=st.integers(0, 7), host=st.text(), process_id=st.integers(0), what=st.text(), step=st.text()
)
outcomes = st.none() | st.builds(
    make_outcome,
    counters,
    counters,
    ended=st.sampled_from(("complete", "time", "stopped", "failed")),
    cause=st.none() | st.text(),
    culprit=st.none() | culprits,
    exit_code=st.none() | st.integers(-128, 255),
    wall_s=seconds,
)
hellos = st.lists(
    st.builds(
        make_hello,
        st.integers(0, 7),
        cpus=st.lists(st.integers(0, 300), max_size=5).map(tuple),
        interposed=st.just(()) | st.just(("MPI_Send from /x",)),
        thread_level=st.sampled_from(("single", "multiple")),
        small_float_reductions=st.sampled_from(("mpi", "busbw")),
    ),
    max_size=8,
).map(tuple)
plans = st.builds(
    lambda sweeps, **other: make_plan(*sweeps, **other),
    st.lists(
        st.builds(make_sweep, collectives, st.lists(sizes, max_size=3, unique=True).map(sorted).map(tuple)), max_size=2
    ),
    ranks=st.integers(1, 8),
    family=st.sampled_from(("Open MPI", "MPICH", "unknown")),
    oversubscribed=st.booleans(),
    cores=st.integers(0, 8),
    governor=st.none() | st.just("powersave"),
    cpu_quota=st.none() | st.floats(0.1, 8),
)


@settings(max_examples=150, deadline=None)
@given(plans, outcomes, hellos, rates, st.lists(measurements(), max_size=6).map(tuple))
def test_any_values_give_a_judgement_that_keeps_its_promises(plan, outcome, ranks, measured, points):
    found = judge(plan, outcome, ranks, measured, points)

    assert codec.decode(codec.encode(found), Judgement, where="test") == found
    assert {one.code for one in found.findings} <= set(rules())
    assert set(found.verdict.because) <= set(rules())
    assert found.verdict.sentence.endswith(".")
    if found.verdict.outcome == "ok":
        assert any(is_usable(point) and point.low_s <= point.median_s <= point.high_s for point in points)
        assert all(one.severity != "error" for one in found.findings)
    if any(point.wrong is not None for point in points):
        assert found.verdict.outcome == "wrong"
