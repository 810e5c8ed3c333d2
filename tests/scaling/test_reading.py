"""Tables and templates: what is read, in which unit, and what is refused where."""

import pytest

from busbw.base.errors import InputError
from busbw.facts.logs import applications
from busbw.formats.application_log import LogLines, read_log
from busbw.formats.scaling_table import column, is_table, match, read_table, template


@pytest.mark.parametrize(
    ("name", "kind", "factor", "unit"),
    [
        ("time_s", "time", 1.0, None),
        ("wall time_min", "time", 60.0, None),
        ("Elapsed_ms", "time", 1e-3, None),
        ("s_per_step", "time", 1.0, None),
        ("days_per_ns", "time", 86400.0, None),
        ("tokens_per_s", "rate", 1.0, "tokens/s"),
        ("ns_per_day", "rate", 1.0, "ns/day"),
        ("busbw_GBps", "busbw", 1e9, None),
        ("busbw_Gbps", "busbw", 1e9 / 8, None),
        ("layers", "setting", 1.0, None),
        # Capitals tell bits from bytes, so another spelling is no bandwidth.
        ("busbw_gbps", "setting", 1.0, None),
    ],
)
def test_a_name_says_what_a_number_is(name: str, kind: str, factor: float, unit: str | None) -> None:
    found = column(name)
    assert (found.kind, found.factor, found.unit) == (kind, pytest.approx(factor), unit)


@pytest.mark.parametrize("name", ["VMs", "nodes", "GPUs", "cpus", "ranks", "processes"])
def test_usual_words_for_counts_are_known(name: str) -> None:
    assert column(name).kind == "count"


def test_a_table_is_read_with_what_its_digits_stand_for() -> None:
    text = "\ufeff# HBv3 and HBv4\nnodes; time_min; series\n1; 13.5; HBv3\n2; 6.9; HBv3\n"
    first, second = read_table(text, "t.csv")
    assert (first.nodes, first.source, first.settings) == (1, "t.csv:3", (("series", "HBv3"),))
    assert first.time_s is not None
    assert (first.time_s.value, first.time_s.low, first.time_s.high) == pytest.approx((810, 807, 813))
    assert second.time_s is not None
    assert second.time_s.basis == "digits"


def test_conditions_and_size_of_a_collective_are_columns() -> None:
    (row,) = read_table("gpus,busbw_GBps,collective,size,dtype\n64,366.12,all_reduce,16G,float\n", "t.csv")
    assert (row.ranks, row.gpus, row.size_bytes) == (64, 64, 16 * 2**30)
    assert dict(row.conditions) == {"collective": "all_reduce", "type": "float"}


@pytest.mark.parametrize(
    ("text", "cause", "where"),
    [
        ("nodes,time_s\n1,812\n2,n/a\n", "'n/a' in time_s is not a number above zero", "t.csv:3"),
        ("nodes,time_s\n1,0\n", "not a number above zero", "t.csv:2"),
        ("nodes,time_s\n0,8\n", "'0' is not a number of nodes", "t.csv:2"),
        ("nodes,time_s\n1.5,8\n", "'1.5' is not a number", "t.csv:2"),
        ("nodes,time_s\n1,8,9\n", "3 cells under 2 names", "t.csv:2"),
        ("nodes,vms,time_s\n1,1,8\n", "two columns mean the same", "t.csv:1"),
        ("nodes,time_s,tokens_per_s\n1,8,9\n", "2 columns hold a result", "t.csv:1"),
        ("nodes,layers\n1,8\n", "no column holds a result", "t.csv:1"),
        ("time_s,layers\n1,8\n", "no column says on how much", "t.csv:1"),
        ("nodes,time_s\n", "a table without rows", "t.csv"),
        ('nodes,time_s\n1,"8\n', "not a line of a table", "t.csv:2"),
        ("nodes,time_s\n1,1e400\n", "not a number above zero", "t.csv:2"),
        (f"nodes,time_s\n1,{'8' * 5000}\n", "a line of 5002 characters", "t.csv:2"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_its_line(text: str, cause: str, where: str) -> None:
    with pytest.raises(InputError, match=cause) as caught:
        read_table(text, "t.csv")
    assert caught.value.where == where


@pytest.mark.parametrize(
    "text",
    [
        "nodes;time_s\n1;812,4\n2;409,9\n",
        'nodes,time_s\r\n1,"812.4"\r\n2,"409.9"\r\n',
        "nodes,Time (s),Speedup,Efficiency (%)\n1,812.4,1,100\n2,409.9,1.98,99\n",
        "Number of nodes,Wall clock [s]\n1,812.4\n2,409.9\n",
        "| # of nodes | Elapsed Time (seconds) | Speed-up |\n|---|---:|---|\n| 1 | 812.4 | 1 |\n| 2 | 409.9 | 2.0 |\n",
    ],
    ids=["decimal comma", "quoted", "derived columns", "words", "markdown"],
)
def test_tables_are_read_as_people_write_them(text: str) -> None:
    assert is_table(text)
    rows = read_table(text, "t.csv")
    assert [(row.nodes, row.time_s.value if row.time_s else None) for row in rows] == [(1, 812.4), (2, 409.9)]
    assert all(not row.settings for row in rows)


def test_marks_of_thousands_and_units_in_brackets_are_taken_for_what_they_are() -> None:
    (row,) = read_table('cores,Time (min),cells\n"1,024","1,020.5",17\n', "t.csv")
    assert (row.cores, row.time_s.value if row.time_s else None) == (1024, 61230.0)
    (row,) = read_table("node count,busbw (GB/s),collective,size\n4,361.1,all_reduce,16G\n", "t.csv")
    assert (row.nodes, row.busbw_Bps.value if row.busbw_Bps else None) == (4, 361.1e9)


def test_logs_are_no_tables() -> None:
    assert not is_table("#       size         count      type   redop\n  8  2  float  sum\n")
    assert not is_table("Info: Benchmark time: 1 CPUs 0.5 s/step\n")
    assert is_table("# comment\n\nnodes,time_s\n")


def test_a_template_takes_numbers_out_of_a_line_wherever_it_begins() -> None:
    pattern = template("Benchmark time: {cores} CPUs {s_per_step} s/step")
    found = match(pattern, "Info:\tBenchmark   time: 64 CPUs 1.2e-2 s/step 0.13 days/ns")
    assert found is not None
    assert {field.name: text for field, text in found} == {"cores": "64", "s_per_step": "1.2e-2"}
    assert match(pattern, "Benchmark time: many CPUs 0.1 s/step") is None
    # The first place does not fit, the second does.
    assert match(template("time: {time_s} s"), "time: unknown, time: 4 s") is not None
    assert match(template("{time_s} seconds"), "12.5 seconds") is not None
    assert match(template("{time_s} s"), "12. s") is not None
    assert match(template("run-{nodes}.log"), "run-4.log") == ((column("nodes"), "4"),)
    assert match(template("{*} took {time_s} s"), "step 12 took 3 s") is not None


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("wall time", "without a field"),
        ("{time_s}{nodes}", "two fields without a text between"),
        ("{*}{*} {time_s}", "two fields without a text between"),
        ("{layers} layers", "neither a count nor a result"),
        ("{time_s", "a brace that is not a field"),
        ("{(a+)+}", "is not a name of a column"),
        ("x" * 600, "600 characters"),
        ("{time_s}", "two fields without a text between"),
    ],
)
def test_a_template_that_could_match_anything_is_refused(text: str, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        template(text)


def test_the_performance_timer_of_fluent_is_read_from_two_lines() -> None:
    patterns = tuple(template(text) for text in applications()["fluent"].templates)
    log = [
        "Performance Timer for 472 iterations on 4 compute nodes",
        "  Average wall-clock time per iteration:                0.823 sec",
        "  Global reductions per iteration:                        147 ops",
    ]
    (found,) = read_log(log, "fluent.log", LogLines(templates=patterns, known=(("nodes", 1),)))
    assert found.time_s is not None
    assert (found.nodes, found.ranks, found.time_s.value, found.source) == (1, 4, 0.823, "fluent.log:2")


def test_results_of_one_file_and_place_are_samples_of_one_launch() -> None:
    log = [f"Benchmark time: 8 CPUs {time_s} s/step" for time_s in (9.0, 1.0, 1.1, 1.2)]
    pattern = template("Benchmark time: {cores} CPUs {s_per_step} s/step")
    (found,) = read_log(log, "n.log", LogLines(templates=(pattern,), last=3))
    assert found.time_s is not None
    assert (found.time_s.value, found.time_s.low, found.time_s.high, found.time_s.basis) == (1.1, 1.0, 1.2, "samples")
    assert found.source == "n.log:2-4"


def test_a_log_without_results_or_counts_is_refused() -> None:
    with pytest.raises(InputError, match="no line fits"):
        read_log(["nothing"], "x.log", LogLines(templates=(template("time: {time_s} s"),)))
    with pytest.raises(InputError, match="on how much of the machine") as caught:
        read_log(["time: 3 s"], "x.log", LogLines(templates=(template("time: {time_s} s"),)))
    assert "--name" in (caught.value.hint or "")


def test_a_line_made_to_cost_time_costs_little() -> None:
    pattern = template("a {*} a {*} a {*} a {*} a {time_s} b")
    # Without going back this is a few thousand steps for each of 64 places; with it, some 10**13.
    assert match(pattern, "a " * 2000) is None


@pytest.mark.parametrize("before", ["", "# of my cluster, in seconds\n"])
def test_the_line_of_names_may_be_a_comment(before: str):
    text = f"{before}# nodes, time_s\n1, 100\n# twice as many\n2, 51\n"

    assert is_table(text)
    assert [(row.nodes, row.time_s.value if row.time_s else None) for row in read_table(text, "t")] == [
        (1, 100.0),
        (2, 51.0),
    ]
