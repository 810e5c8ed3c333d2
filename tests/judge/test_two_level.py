"""On one host the parts of a two-level alltoall stand for nodes: nothing may be called slow or fast by its time."""

from busbw.judge.ceiling import ceiling_of
from busbw.judge.expectation import expectation_of
from busbw.judge.guidelines import violations
from busbw.judge.verdict import judge

from .factories import MiB, make_hello, make_measurement, make_outcome, make_plan, make_rates, make_sweep

HELLOS = tuple(make_hello(rank) for rank in range(4))
LINEAR = make_measurement("alltoall", 4 * MiB, 1e-3, point=0)
TWO_LEVEL = make_measurement("alltoall_2dh", 4 * MiB, 1e-1, point=1, group=2)


def test_a_hundred_times_slower_than_linear_is_no_violation_either_way():
    swapped = (
        make_measurement("alltoall", 4 * MiB, 1e-1, point=0),
        make_measurement("alltoall_2dh", 4 * MiB, 1e-3, point=1, group=2),
    )

    assert violations((LINEAR, TWO_LEVEL)) == ()
    assert violations(swapped) == ()


def test_it_has_neither_ceiling_nor_expectation_where_the_linear_one_has_both():
    plan, rates = make_plan(), make_rates()

    assert ceiling_of(plan, rates, LINEAR) is not None
    assert expectation_of(plan, rates, LINEAR) is not None
    assert ceiling_of(plan, rates, TWO_LEVEL) is None
    assert expectation_of(plan, rates, TWO_LEVEL) is None


def test_the_verdict_says_that_it_was_not_judged():
    sweeps = (
        make_sweep("alltoall", (4 * MiB,)),
        make_sweep("alltoall_2dh", (4 * MiB,), group=2),
    )

    verdict = judge(make_plan(*sweeps), make_outcome(), HELLOS, make_rates(), (LINEAR, TWO_LEVEL)).verdict

    assert verdict.outcome == "ok"
    assert "not judged: alltoall_2dh" in verdict.sentence
