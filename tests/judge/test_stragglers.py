"""Ranks that delay the others."""

from busbw.judge.stragglers import straggler_findings, stragglers, tail_findings
from busbw.model.record import Attribution

from .factories import make_hello, make_measurement, make_views

HELLOS = tuple(make_hello(rank) for rank in range(4))


def delayed(rank: int | None = 2, *, slow: int = 40, excess_s: float = 2e-4, point: int = 0, **changes):
    """Return a measurement with slow calls that `rank` explains; None: nobody does."""
    blamed = {} if rank is None else {rank: slow - 1}
    return make_measurement(
        point=point, slow_samples=slow, slow_excess_s=excess_s, per_rank=make_views(blamed=blamed), **changes
    )


def test_a_rank_that_explains_the_slow_calls_is_named_with_host_cpu_and_delay():
    (found,) = straggler_findings(stragglers((delayed(),)), HELLOS)

    assert found.code == "PERF004"
    assert "rank 2 on node1" in found.title
    assert "4.0 % of the calls are slow, by 200.0 us" in found.evidence
    assert "39 of 40" in found.evidence
    assert "allowed CPUs: 2" in found.evidence
    assert "CPU 2 of node1" in (found.fix or "")


def test_one_rank_at_ten_points_is_one_finding():
    found = straggler_findings(stragglers(tuple(delayed(point=point) for point in range(10))), HELLOS)

    assert len(found) == 1
    assert "10 points" in found[0].title
    assert found[0].point is None


def test_slow_calls_that_several_ranks_explain_name_nobody_and_are_noted():
    shared = make_measurement(
        slow_samples=40, slow_excess_s=2e-4, per_rank=make_views(blamed=dict.fromkeys(range(4), 10))
    )

    assert stragglers((shared,)) == ()
    (found,) = tail_findings((shared,))
    assert found.code == "PERF005"
    assert found.severity == "note"


def test_a_named_rank_leaves_no_note_about_an_unexplained_tail():
    assert tail_findings((delayed(),)) == ()


def test_few_slow_calls_are_not_a_tail():
    assert tail_findings((delayed(None, slow=4),)) == ()


def test_halves_of_the_ranks_name_the_rank_in_stream_mode():
    halves = tuple(
        Attribution(
            bit=bit,
            group=group,
            ranks=tuple(rank for rank in range(4) if (rank >> bit) & 1 == group),
            calls=400,
            slow_calls=60 if (3 >> bit) & 1 == group else 0,
        )
        for bit in range(2)
        for group in range(2)
    )
    measurement = make_measurement(
        mode="stream", slow_samples=40, slow_excess_s=2e-4, attribution=halves, clock_error_s=None
    )

    (found,) = straggler_findings(stragglers((measurement,)), HELLOS)

    assert "rank 3" in found.title
    assert "120 of 800 slow calls, those without 0 of 800" in found.evidence


def test_a_delay_is_material_when_it_costs_a_tenth_or_doubles_one_call_in_a_hundred():
    rare = delayed(slow=9, excess_s=2e-4)  # 0.9 % of the calls, 1.8 % of the time
    doubled = delayed(slow=10, excess_s=1e-4)  # 1 % of the calls take twice the median
    frequent = delayed(slow=250, excess_s=5e-5)  # 12.5 % of the time
    mild = delayed(slow=150, excess_s=5e-5)  # 7.5 % of the time

    assert [stragglers((one,))[0].is_material for one in (rare, doubled, frequent, mild)] == [False, True, True, False]
