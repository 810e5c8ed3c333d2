"""What a gate comes to: pass, fail, or cannot tell."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from busbw.base.errors import InputError
from busbw.judge.gates.deciding import answers
from busbw.judge.gates.expression import parse_gate
from busbw.model.gates import MISSING

from .rows import GiB, any_gate, make_held, make_row, make_sampled_row

BETTER = {"fail": 0, "cannot_tell": 1, "pass": 2}


def answer(text, *rows, requirement="at_least", baseline=None, **held):
    """Return what one gate comes to over these rows."""
    before = make_held(*baseline) if baseline is not None else None
    (found,) = answers([parse_gate(text, requirement)], make_held(*rows, **held), before).answers
    return found


def test_a_collective_is_found_however_it_is_written_and_by_the_result_s_own_word_first():
    assert answer("AllReduce@1G=380GB/s", make_row()).outcome == "pass"
    assert answer("Allreduce@1G=380GB/s", make_row(collective="Allreduce"), make_row(busbw_Bps=1e9)).outcome == "pass"
    with pytest.raises(InputError, match=r"'alreduce' is not a collective.*maybe: all_reduce"):
        answer("alreduce@1G=380GB/s", make_row())


@pytest.mark.parametrize(
    ("bound", "outcome"), [("380GB/s", "pass"), ("390GB/s", "pass"), ("3120Gb/s", "pass"), ("390.1GB/s", "fail")]
)
def test_a_number_without_an_interval_decides_as_it_is(bound, outcome):
    assert answer(f"all_reduce@1G={bound}", make_row()).outcome == outcome


@pytest.mark.parametrize(
    ("bound", "outcome"), [(380, "pass"), (387, "cannot_tell"), (392, "cannot_tell"), (400, "fail")]
)
def test_a_bound_within_the_interval_cannot_be_told(bound, outcome):
    found = answer(f"all_reduce@1G={bound}GB/s", make_sampled_row(390e9, half=0.01))
    assert found.outcome == outcome
    assert ("within the interval" in found.sentence) == (outcome == "cannot_tell")


def test_a_time_is_bounded_from_above_by_its_whole_interval():
    row = make_sampled_row(collective="latency", size_bytes=8, time_s=2e-6, low_s=1.9e-6, high_s=2.2e-6)
    outcomes = [answer(f"latency@8={bound}us", row, requirement="at_most").outcome for bound in (1.8, 2.1, 2.3)]
    assert outcomes == ["fail", "cannot_tell", "pass"]


def test_in_place_and_out_of_place_must_both_meet_it_unless_one_is_named():
    rows = (make_row(), make_row(in_place=True, busbw_Bps=370e9))
    found = answer("all_reduce@1G=380GB/s", *rows)
    assert (found.outcome, found.sentence) == ("fail", "1 of 2 points, the least 370.0 GB/s, in place")
    assert answer("all_reduce@1G,out-of-place=380GB/s", *rows).outcome == "pass"


def test_a_size_that_was_not_measured_cannot_be_told_and_its_neighbours_are_named():
    found = answer("all_reduce@4G=380GB/s", make_row(), make_row(size_bytes=8 * GiB))
    assert found.outcome == "cannot_tell"
    assert found.sentence == "4 GiB was not measured; the nearest are 1 GiB and 8 GiB"


def test_a_form_that_was_not_measured_cannot_be_told_and_those_measured_are_named():
    found = answer("all_reduce@1G,float16=380GB/s", make_row())
    assert (found.outcome, found.sentence) == (
        "cannot_tell",
        "measured, but not so: float32, sum, out of place, 8 ranks",
    )


def test_a_size_that_was_planned_and_not_measured_cannot_be_told():
    rows = (make_row(), make_row(size_bytes=2 * GiB, ended=MISSING, time_s=None, busbw_Bps=None, wrong=None))
    found = answer("all_reduce@1G..=380GB/s", *rows, why_missing="not measured: its time limit came first")
    assert (found.outcome, found.sentence) == (
        "cannot_tell",
        "1 of 2 points: 2 GiB: not measured: its time limit came first",
    )


def test_a_wrong_result_fails_however_fast_it_was():
    found = answer("all_reduce@1G=1GB/s", make_row(wrong=3))
    assert (found.outcome, found.sentence) == ("fail", "the result is wrong: 3 elements")


def test_a_result_that_nobody_checked_is_said_and_does_not_pass_where_a_check_is_asked_for():
    row = make_row(verified=False, wrong=None)
    assert answer("all_reduce@1G=380GB/s", row).sentence == "390.0 GB/s; the result was not checked"
    assert answer("all_reduce@1G,checked=380GB/s", row).outcome == "cannot_tell"


def test_a_split_collective_is_measured_at_the_next_size_that_has_equal_parts():
    found = answer("all_gather@1G=380GB/s", make_row(collective="all_gather", size_bytes=GiB - 64, ranks=6))
    assert found.outcome == "pass"
    assert found.sentence.startswith("390.0 GB/s at 1024.00 MiB")


def test_where_nothing_was_sent_no_gate_is_for_it():
    rows = (make_row(collective="alltoall", size_bytes=0, time_s=1e-7, busbw_Bps=0.0), make_row(collective="alltoall"))
    assert len(answer("alltoall@..8G=1GB/s", *rows).points) == 1
    assert answer(
        "latency@0=2us", make_row(collective="latency", size_bytes=0, time_s=1e-6), requirement="at_most"
    ).points


@pytest.mark.parametrize(
    ("sizes", "outcome"), [("1G..", "cannot_tell"), ("..1G", "pass"), ("1G", "pass"), ("..2G", "cannot_tell")]
)
def test_a_table_that_was_cut_off_may_lack_larger_sizes(sizes, outcome):
    assert answer(f"all_reduce@{sizes}=380GB/s", make_row(), cut_off=frozenset({0})).outcome == outcome


def test_a_table_with_a_line_that_could_not_be_read_may_lack_any_size():
    found = answer("all_reduce@..1G=380GB/s", make_row(), torn={0: 40})
    assert found.outcome == "cannot_tell"
    assert "line 40 of the table could not be read" in found.sentence


def test_a_row_that_cannot_be_right_is_not_held_against_anything():
    found = answer("all_reduce@1G=380GB/s", make_row(), doubts={"a.log:12": "rates that do not follow"})
    assert (found.outcome, found.sentence) == ("cannot_tell", "it cannot be right: rates that do not follow")


def test_too_few_samples_of_our_own_cannot_tell_and_one_mean_of_another_program_can():
    few = {"samples": 3, "low_s": 4.7e-3, "high_s": 4.9e-3}
    assert answer("all_reduce@1G=380GB/s", make_sampled_row(**few)).outcome == "cannot_tell"
    assert answer("all_reduce@1G=380GB/s", make_sampled_row(backend="nccl-tests", **few)).outcome == "pass"


def test_a_percentile_takes_samples_enough_for_it():
    row = make_sampled_row(collective="latency", size_bytes=8, time_s=2e-6, p99_s=3e-6, max_s=9e-6)
    bounds = {"p99=3us": "pass", "p99=2us": "fail", "slowest=8us": "fail", "p95=8us": "cannot_tell"}
    found = {words: answer("latency@8," + words, row, requirement="at_most").outcome for words in bounds}
    assert found == bounds


def test_a_tool_that_prints_no_bandwidth_cannot_meet_one():
    found = answer("reduce@1G=1GB/s", make_row(collective="reduce", backend="osu", busbw_Bps=None, algbw_Bps=None))
    assert found.outcome == "cannot_tell"
    assert "--at-most" in found.sentence


def test_a_small_bandwidth_is_what_was_rounded_to_the_printed_one():
    row = make_row(size_bytes=8, time_s=8.95e-6, busbw_Bps=0.0, algbw_Bps=0.0)
    assert "1.56 MB/s" in answer("all_reduce@8=1MB/s", row).sentence
    assert "0.894 MB/s" in answer("all_reduce@8,algbw=1MB/s", row).sentence
    before = replace(row, time_s=8.0e-6)
    assert answer("5%", row, requirement="within", baseline=[before]).outcome == "fail"


def test_a_small_bandwidth_that_does_not_follow_from_the_time_is_taken_as_printed():
    assert "5.00 GB/s" in answer("all_reduce@1G=4GB/s", make_row(busbw_Bps=5e9)).sentence


def test_numbers_have_as_many_decimals_as_tell_them_from_the_bound():
    assert "389.9996 GB/s" in answer("all_reduce@1G=390GB/s", make_row(busbw_Bps=389.9996e9)).sentence


def test_a_name_that_is_none_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="maybe: all_reduce"):
        answer("all_reduec@1G=1GB/s", make_row())


def test_tests_of_other_tools_are_named_as_in_the_result():
    row = make_row(collective="device_to_host_memcpy_ce", size_bytes=None, busbw_Bps=None, bandwidth_Bps=55e9)
    assert answer("device_to_host_memcpy_ce=50GB/s", row).outcome == "pass"


@pytest.mark.parametrize(
    ("outcomes", "together"),
    [
        (("390GB/s", "380GB/s"), "pass: all 2 gates"),
        (("390GB/s", "400GB/s"), "fail: 1 of 2 gates; 1 passes"),
        (("390GB/s",), "pass: 1 gate"),
    ],
)
def test_all_gates_come_to_one_answer(outcomes, together):
    gates = [parse_gate(f"all_reduce@1G={bound}", "at_least") for bound in outcomes]
    assert answers(gates, make_held(make_row())).sentence == together


def test_a_gate_that_cannot_be_told_does_not_hide_one_that_fails():
    gates = [parse_gate(text, "at_least") for text in ("all_reduce@2G=1GB/s", "all_reduce@1G=400GB/s")]
    found = answers(gates, make_held(make_row()))
    assert (found.outcome, found.sentence) == ("fail", "fail: 1 of 2 gates; 1 cannot be told")


@pytest.mark.parametrize(("now", "outcome"), [(390, "pass"), (371, "pass"), (370, "fail"), (500, "pass")])
def test_within_five_percent_is_no_more_than_five_percent_below(now, outcome):
    found = answer("5%", make_row(busbw_Bps=now * 1e9), requirement="within", baseline=[make_row()])
    assert found.outcome == outcome


def test_latency_is_held_against_the_time_of_the_baseline():
    before = make_row(collective="latency", size_bytes=8, time_s=2e-6)
    outcomes = [
        answer("5%", replace(before, time_s=time_s), requirement="within", baseline=[before]).outcome
        for time_s in (1e-6, 2.1e-6, 2.11e-6)
    ]
    assert outcomes == ["pass", "pass", "fail"]


def test_a_point_that_the_result_lacks_cannot_be_told_and_one_that_the_baseline_lacks_is_noted():
    gates = [parse_gate("5%", "within")]
    more = (make_row(), make_row(size_bytes=2 * GiB))
    assert answers(gates, make_held(make_row()), make_held(*more)).outcome == "cannot_tell"
    found = answers(gates, make_held(*more), make_held(make_row()))
    assert found.outcome == "pass"
    assert found.baseline.notes == (
        "it lacks 1 point of the result, not held against it: all_reduce 2 GiB, float32, sum, out of place, 8 ranks",
    )


def test_several_rows_of_the_baseline_are_one_by_their_median():
    before = [make_row(busbw_Bps=rate, repeat=number) for number, rate in enumerate((300e9, 400e9, 410e9))]
    assert answer("5%", make_row(busbw_Bps=379e9), requirement="within", baseline=before).outcome == "fail"
    assert answer("5%", make_row(busbw_Bps=381e9), requirement="within", baseline=before).outcome == "pass"


def test_a_wrong_result_of_the_baseline_cannot_be_held_against():
    found = answer("5%", make_row(), requirement="within", baseline=[make_row(wrong=1)])
    assert (found.outcome, found.sentence) == ("cannot_tell", "all_reduce 1 GiB: the baseline's result is wrong")


ROWS = st.builds(
    lambda sampled, size_bytes, rate, half, **changes: replace(
        make_sampled_row(half=half) if sampled else make_row(),
        size_bytes=size_bytes,
        **_at(rate, half, sampled=sampled),
        **changes,
    ),
    sampled=st.booleans(),
    size_bytes=st.sampled_from([0, 8, 2**20, GiB, 8 * GiB]),
    rate=st.floats(1e3, 1e13),
    half=st.floats(0, 0.5),
    collective=st.sampled_from(["all_reduce", "latency", "alltoall"]),
    in_place=st.booleans(),
    wrong=st.sampled_from([0, 0, 0, 2]),
    verified=st.booleans(),
    ended=st.sampled_from(["interval", "interval", MISSING]),
)


def _at(rate_Bps, half, *, sampled):
    time_s = GiB / rate_Bps
    ends = {"low_s": time_s * (1 - half), "high_s": time_s * (1 + half)} if sampled else {}
    return {"time_s": time_s, "busbw_Bps": rate_Bps, "algbw_Bps": rate_Bps / 2, "p99_s": 2 * time_s, **ends}


def _faster(row, factor):
    """Return a row as if everything had taken so many times less."""
    times = {
        name: value / factor
        for name in ("time_s", "low_s", "high_s", "p99_s")
        if (value := getattr(row, name)) is not None
    }
    return replace(row, busbw_Bps=row.busbw_Bps * factor, algbw_Bps=row.algbw_Bps * factor, **times)


def _aimed(gate, row, share):
    """Return a gate for all points of a row's collective, whose bound is `share` of what the row reached."""
    gate = replace(gate, collective=row.collective, from_bytes=None, to_bytes=None, dtype=None, op=None, ranks=None)
    if gate.requirement == "within":
        return gate
    reached = {"at_least": row.busbw_Bps / 1e9, "at_most": row.time_s * 1e6}[gate.requirement]
    unit = {"at_least": "GB/s", "at_most": "us"}[gate.requirement]
    return replace(gate, number=reached * share, unit=unit)


@given(
    gate=any_gate(),
    rows=st.lists(ROWS, min_size=1, max_size=4),
    share=st.floats(0.2, 5),
    factors=st.lists(st.floats(0.1, 10), min_size=2, max_size=5),
)
def test_a_faster_result_is_never_judged_worse(gate, rows, share, factors):
    gate, baseline = _aimed(gate, rows[0], share), make_held(*rows)
    outcomes = [
        answers([gate], make_held(_faster(rows[0], factor), *rows[1:]), baseline).outcome for factor in sorted(factors)
    ]
    assert all(BETTER[slower] <= BETTER[faster] for slower, faster in pairwise(outcomes))


def test_the_answers_that_are_held_against_each_other_do_change():
    """The property above would hold of a judge that always says the same."""
    row = make_sampled_row()
    outcomes = [
        answers(
            [_aimed(parse_gate(text, requirement), row, 1.0)], make_held(_faster(row, factor)), make_held(row)
        ).outcome
        for text, requirement in (("all_reduce=1GB/s", "at_least"), ("all_reduce=1us", "at_most"), ("5%", "within"))
        for factor in (0.5, 0.949, 0.97, 2)
    ]
    assert outcomes == [
        *("fail", "fail", "fail", "pass"),
        *("fail", "fail", "fail", "pass"),
        *("fail", "cannot_tell", "pass", "pass"),
    ]


@given(
    gate=any_gate(),
    rows=st.lists(ROWS, min_size=1, max_size=4),
    shares=st.lists(st.floats(0.2, 5), min_size=2, max_size=5),
)
def test_what_meets_a_gate_meets_a_weaker_one(gate, rows, shares):
    ordered = sorted(shares, reverse=gate.requirement == "at_least")
    gates = [_aimed(gate, rows[0], share) for share in ordered]
    if gate.requirement == "within":
        gates = [replace(gates[0], number=10 * share) for share in ordered]
    outcomes = [answers([each], make_held(*rows), make_held(*rows)).outcome for each in gates]
    assert all(BETTER[strong] <= BETTER[weak] for strong, weak in pairwise(outcomes))


@given(gate=any_gate(), rows=st.lists(ROWS, min_size=1, max_size=4), share=st.floats(0.2, 5))
def test_only_what_was_measured_right_and_meets_the_bound_passes(gate, rows, share):
    (found,) = answers([_aimed(gate, rows[0], share)], make_held(*rows), make_held(*rows)).answers
    for point in found.points:
        if point.outcome == "pass":
            ratio = point.value / point.bound
            assert ratio >= 0.999999 if point.unit == "B/s" else ratio <= 1.000001
    if found.outcome == "pass":
        assert {point.outcome for point in found.points} == {"pass"}
