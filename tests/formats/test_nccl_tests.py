"""nccl-tests' tables and reports of every version say what they said."""

import json

import pytest

from .reading import read, sample, shared


def last(name):
    return read(sample(name)).readings[-1]


# What was printed in the last row: collective, ranks by the rates, size, in-place time in microseconds, busbw in GB/s.
PRINTED = {
    "nccl-tests-1.0.log": ("all_reduce", 4, 4194304, 268.0, 23.48),
    "nccl-tests-2.9-all_gather.log": ("all_gather", 4, 1073741824, 6013.9, 133.91),
    "nccl-tests-2.9-broadcast.log": ("broadcast", None, 268435456, 1201.2, 223.47),
    "nccl-tests-2.9-reduce.log": ("reduce", None, 268435456, 1201.2, 223.47),
    "nccl-tests-2.9-all_reduce-c0.log": ("all_reduce", 8, 8589934592, 63959.0, 235.03),
    "nccl-tests-2.9-alltoall.log": ("alltoall", 8, 8589934592, 33234.0, 226.16),
    "nccl-tests-2.10-reduce_scatter.log": ("reduce_scatter", 8, 1073741824, 8001.7, 117.42),
    "nccl-tests-2.13-srun-l.log": ("all_reduce", 16, 17179869184, 410088.0, 78.55),
    "nccl-tests-2.13-mpirun-tags.log": ("all_reduce", 16, 17179869184, 66109.0, 487.26),
    "nccl-tests-2.14.1.log": ("all_reduce", 8, 10737418240, 80948.0, 232.13),
    "nccl-tests-2.16.7-wrong.log": ("all_reduce", 8, 10737418240, 80948.0, 232.13),
    "nccl-tests-2.17.3.log": ("all_reduce", 4, 16777216, 95.33, 263.98),
    "nccl-tests-2.17.6-timestamps.log": ("all_reduce", 4, 17179869184, 1.2e8, 0.21),
    "nccl-tests-2.17.9.log": ("all_reduce", 8, 8589934592, 40780.5, 368.62),
    "nccl-tests-2.17.9-cputime.log": ("all_reduce", 4, 4194304, 5.07, 1240.9),
    "nccl-tests-2.18-three-runs.log": ("hypercube", 4, 1073741824, 2999.1, 268.52),
    "nccl-tests-2.19.2-per-iteration.log": ("all_reduce", 4, 4194304, 41.08, 153.16),
    "nccl-tests-2.19.6-per-iteration.log": ("all_reduce", 4, 67108864, 326.0, 308.78),
    "nccl-tests-2.19.6-torn.log": ("all_reduce", 4, 4194304, 41.08, 153.16),
    "nccl-tests-json-1.json": ("all_reduce", 4, 4194304, 41.07795, 153.158958),
    "nccl-tests-json-2.json": ("all_reduce", 4, 4194304, 41.07795, 153.158958),
    "nccl-tests-json-3.json": ("all_reduce", 4, 4194304, 41.07795, 153.158958),
    "rccl-tests.log": ("all_reduce", 8, 1073741824, 6095.0, 308.29),
    "rccl-tests.jsonl": ("all_reduce", 4, 1048576, 40.92, 38.4375),
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_last_row_is_read_as_it_was_printed(name):
    what, ranks, size_bytes, time_us, busbw = PRINTED[name]

    found = read(sample(name))

    reading = found.readings[-1]
    assert (reading.what, reading.size_bytes, reading.in_place) == (what, size_bytes, True)
    assert reading.time_s == pytest.approx(time_us * 1e-6, rel=1e-12)
    assert reading.busbw_Bps == pytest.approx(busbw * 1e9, rel=1e-12)
    assert found.tables[-1].ranks_from_rates == ranks
    assert found.tables[-1].complete
    assert not any(table.doubts for table in found.tables)
    assert found.unread == ()
    assert found.adds_up


@pytest.mark.parametrize("name", PRINTED)
def test_blocks_of_any_size_give_the_same(name):
    whole = read(sample(name))

    for block_bytes in (1, 7, 100):
        assert read(sample(name), block_bytes=block_bytes) == whole


def test_a_row_without_its_operation_is_told_from_one_without_its_time():
    found = read(sample("nccl-tests-2.9-alltoall.log"))

    out_of_place, in_place = found.readings
    assert (out_of_place.op, out_of_place.count) == (None, 268435456)
    assert (out_of_place.time_s, in_place.time_s) == (0.033508, 0.033234)

    lost = sample("nccl-tests-2.9-alltoall.log").replace(b"33234  258.47", b"       258.47")
    assert [line.why for line in read(lost).unread] == ["the in-place half is not complete"]


def test_not_available_is_not_checked_although_the_footer_says_ok():
    found = read(sample("nccl-tests-2.9-all_reduce-c0.log"))

    assert [reading.wrong for reading in found.readings] == [None] * 4
    assert found.table.unchecked == 4
    assert ("Out of bounds values", "0 OK") in found.table.footer
    # Size 0 has no rates, and its row stands.
    assert (found.readings[0].size_bytes, found.readings[0].time_s, found.readings[0].busbw_Bps) == (0, 35.2e-6, 0.0)


def test_wrong_elements_are_counted_and_the_footer_kept():
    found = read(sample("nccl-tests-2.16.7-wrong.log"))

    assert [reading.wrong for reading in found.readings] == [12, 0]
    assert (found.table.wrong, found.table.footer[0]) == (1, ("Out of bounds values", "1 FAILED"))


def test_the_difference_that_old_versions_print_is_no_count():
    reading = last("nccl-tests-1.0.log")
    assert (reading.wrong, reading.more) == (0, (("largest_difference", 2e-07),))

    far_off = sample("nccl-tests-1.0.log").replace(b"2e-07", b"3e-01")
    assert {reading.wrong for reading in read(far_off).readings} == {1}


def test_statistics_per_iteration_go_with_their_half():
    found = read(sample("nccl-tests-2.19.2-per-iteration.log"))

    out_of_place, in_place = found.readings[:2]
    assert dict(out_of_place.more) == {"min_s": 17.92e-6, "max_s": 23.89e-6, "p99_s": 23.7e-6, "cv": 0.0321}
    assert dict(in_place.more)["cv"] == 0.021


def test_the_head_of_a_run_is_kept():
    table = read(sample("nccl-tests-2.17.9.log")).table

    assert (table.tool_version, table.program, table.versions[1]) == ("2.17.9", "all_reduce_perf", ("NCCL", "2.26.2"))
    assert dict(table.parameters)["step"] == "4(factor)"
    assert (table.ranks, table.devices[7].bus_id, table.devices[7].model) == (8, "0000:00:0d", "NVIDIA H100 80GB HBM3")


def test_several_runs_of_one_file_are_several_tables():
    tables = read(sample("nccl-tests-2.18-three-runs.log")).tables

    assert [(table.program, table.first_line) for table in tables] == [
        ("alltoall_perf", 1), ("sendrecv_perf", 21), ("hypercube_perf", 41),
    ]  # fmt: skip
    assert tables[0].last_line < tables[1].first_line


def test_streams_of_several_jobs_are_told_apart_by_their_tags():
    one = sample("nccl-tests-2.17.9.log").splitlines(keepends=True)
    other = sample("nccl-tests-2.14.1.log").splitlines(keepends=True)
    mixed = b""
    for index in range(max(len(one), len(other))):
        mixed += b"".join(
            b"[%d,0]<stdout>:" % job + text[index] for job, text in ((1, one), (2, other)) if index < len(text)
        )

    found = read(mixed)

    assert sorted((table.ranks, table.readings) for table in found.tables) == [(8, 2), (8, 2)]
    assert {reading.busbw_Bps for reading in found.readings} == {368.09e9, 368.62e9, 232.2e9, 232.13e9}
    assert found.unread == ()


@pytest.mark.parametrize(
    "prefix",
    [
        "[1,0]<stdout>:", "[prterun-n0-77@1,0]<stdout>:", "0: ", " 12: ", "[0] ", "[rank3]:", "<stdout>:",
        "Thu Jul 18 15:41:05 2024<stdout>:", "Thu Jul 18 15:41:05 2024[1,0]<stdout>:", "2024-07-18T15:41:05.123456Z ",
        "2024-07-18 15:41:05 ", "15:41:05 ", "Jul 18 15:41:05 ", "[pod/job-launcher/main] ", "launcher-1  | ",
        "2024-07-18T15:41:05Z [1,0]<stdout>:", "\x1b[32m[1,0]<stdout>:\x1b[0m",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["nccl-tests-2.19.6-torn.log", "nccl-tests-2.9-alltoall.log"])
def test_what_a_launcher_writes_before_a_line_changes_nothing(name, prefix):
    plain = read(sample(name))
    tagged = b"".join(prefix.encode() + line for line in sample(name).splitlines(keepends=True) if line.strip())

    found = read(tagged)

    assert found.readings
    assert found.adds_up
    assert [reading.busbw_Bps for reading in found.readings] == [reading.busbw_Bps for reading in plain.readings]
    assert found.unread == ()


def test_runs_that_were_never_joined_are_one_table_of_one_rank():
    found = read(sample("nccl-tests-2.13-one-rank-runs.log"))

    assert (found.table.ranks, found.table.ranks_from_rates) == (1, 1)
    assert dict(found.table.parameters)["runs printed into one another"] == "2"
    assert found.unread == ()


def test_a_row_broken_by_a_launcher_is_put_together():
    text = (
        sample("nccl-tests-2.17.9.log").decode().replace("  40838.9", "\n  40838.9").replace("  40780.5", "\n  40780.5")
    )

    found = read(text)

    assert [reading.busbw_Bps for reading in found.readings] == [368.09e9, 368.62e9]
    assert found.unread == ()
    assert found.adds_up


def test_a_torn_row_without_its_rest_is_listed_piece_by_piece():
    lines = sample("nccl-tests-2.19.6-torn.log").decode().splitlines(keepends=True)
    without = [line for line in lines if not line.startswith("    17.90")]

    found = read("".join(without))

    assert len(found.unread) == 2
    assert {line.why for line in found.unread} == {"torn off by a log line, and its rest did not come"}
    assert len(found.readings) == 2
    assert found.adds_up


def test_a_row_behind_a_log_line_that_lost_its_newline_is_read():
    text = sample("nccl-tests-2.17.9.log").decode()
    glued = text.replace("  8589934592 ", "vm:2806:2806 [0] NCCL INFO 24 coll channels  8589934592 ")

    assert [reading.busbw_Bps for reading in read(glued).readings] == [368.09e9, 368.62e9]
    assert read(glued).unread == ()


def test_rows_without_a_header_are_read_as_since_2_13():
    text = sample("nccl-tests-2.17.9.log").decode()
    row = next(line for line in text.splitlines() if line.startswith("  8589934592"))

    found = read(row)

    assert [reading.busbw_Bps for reading in found.readings] == [368.09e9, 368.62e9]
    assert dict(found.table.parameters) == {"header": "missing; columns as since 2.13"}
    assert not found.table.complete


def test_a_longer_row_than_its_header_is_not_guessed_at():
    text = sample("nccl-tests-2.17.9.log").decode().replace("368.62       0", "368.62       0  1.0")

    found = read(text)

    assert [line.why for line in found.unread] == ["14 values where the header names 13 columns"]


def test_a_new_column_is_read_by_its_name():
    text = sample("nccl-tests-2.17.9.log").decode()
    text = text.replace("busbw  #wrong ", "busbw  #wrong  joules ", 2).replace(
        "       0  40780", "       0    12.5  40780"
    )
    text = text.replace("368.62       0", "368.62       0    13.5")
    lines = [line for line in text.splitlines() if "(elements)" not in line]
    header = next(index for index, line in enumerate(lines) if "busbw" in line)
    lines[header] = "# size count type redop root time algbw busbw #wrong joules time algbw busbw #wrong joules"

    found = read("\n".join(lines))

    assert [dict(reading.more) for reading in found.readings] == [{"joules": 12.5}, {"joules": 13.5}]


def test_a_failure_of_the_tool_is_kept_with_its_line():
    found = read(sample("nccl-tests-failure.log"))

    assert [line for line, _ in found.table.failures] == [3, 4]
    assert "unhandled system error" in found.table.failures[0][1]
    assert not found.table.complete


def test_a_report_names_one_device_per_process_and_all_ranks_count():
    table = read(sample("nccl-tests-json-3.json")).table

    assert (len(table.devices), table.ranks, table.ranks_from_rates) == (1, 4, 4)
    assert table.statistic == "mean over iterations, largest of all ranks"
    assert table.versions == (("NCCL", "2.28.9"),)
    assert table.failures == ()


def test_a_report_keeps_only_allowed_variables():
    found = read(sample("nccl-tests-json-1.json"))

    assert found.table.environment == (("NCCL_ALGO", "Ring"), ("OMPI_MCA_plm", "isolated"))
    assert found.table.environment_withheld == 2
    assert b"hf_secret" not in found.copy
    assert json.loads(found.copy)["env"][0] == "HF_TOKEN=<withheld>"


def test_misspelt_and_right_keys_of_the_average_are_the_same():
    old, new = read(sample("nccl-tests-json-1.json")).table, read(sample("nccl-tests-json-3.json")).table
    assert old.footer == new.footer


def test_samples_of_iterations_are_kept_in_order():
    reading = last("nccl-tests-json-2.json")
    assert reading.samples_s == (36.970155e-6, 45.185745e-6)
    assert dict(reading.more)["p99_s"] == 45.185745e-6


@pytest.mark.parametrize(("wrong", "checked"), [("null", None), ("0.000000", 0), ("3.000000", 3), ('"nan"', None)])
def test_no_count_of_wrong_elements_means_not_checked(wrong, checked):
    text = sample("nccl-tests-json-3.json").decode().replace('"nwrong":0.000000', f'"nwrong":{wrong}')
    assert {reading.wrong for reading in read(text).readings} == {checked}


def test_a_time_that_is_no_number_is_doubted():
    text = sample("nccl-tests-json-3.json").decode().replace('"time":19.911963', '"time":"nan"')

    found = read(text)

    assert found.readings[0].time_s is None
    assert any("not a number" in why for _, why in found.table.doubts)


def test_the_real_output_with_log_lines_in_its_rows_is_read_whole():
    found = read(shared("allreduce_default_info.log"))

    assert (len(found.readings), found.unread, found.table.doubts) == (62, (), ())
    assert (found.table.ranks, found.table.ranks_from_rates) == (4, 4)
    assert found.readings[-1].busbw_Bps == 365.17e9
    assert found.adds_up


def test_the_real_output_of_six_programs_is_read_whole():
    found = read(shared("six_default.log"))

    assert [(table.program, table.readings, table.doubts) for table in found.tables] == [
        (f"{name}_perf", 62, ())
        for name in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv")
    ]
    assert [table.ranks_from_rates for table in found.tables] == [4, 4, 4, None, 4, None]
    assert [line.text for line in found.unread] == [f"== {table.program[:-5]} default" for table in found.tables]


def test_the_real_report_is_read_and_its_environment_stripped():
    found = read(shared("ar.json"))

    assert (found.table.readings, found.table.ranks, found.table.doubts) == (6, 4, ())
    assert "NCCL_NVLS_ENABLE" in dict(found.table.environment)
    assert found.table.environment_withheld == 80
    assert b"/etc/ssl" not in found.copy.replace(b"\\/", b"/")


HEAD_OF_FOUR = (
    "# nThread 1 nGpus 4 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1\n"
    + "".join(f"#  Rank  {rank} Group  0 Pid 1 on node1 device  {rank} [0x0{rank}] GPU\n" for rank in range(4))
    + "#       size         count      type   redop    root"
    + 2 * "     time   algbw   busbw #wrong"
    + "\n"
)


@pytest.mark.parametrize(
    ("count", "redop", "root", "busbw", "in_place_wrong", "what"),
    [
        (2147483648, "sum", -1, "549.00", "0", "all_reduce"),
        (2147483648, "sum", -1, "366.00", "N/A", "sendrecv"),
        (2147483648, "sum", -1, "366.00", "0", "sendrecv"),
        (536870912, "sum", -1, "274.50", "0", "reduce_scatter"),
        (536870912, "none", -1, "274.50", "0", "all_gather or alltoall"),
        (536870912, "none", -1, "274.50", "N/A", "alltoall"),
        (2147483648, "none", 0, "366.00", "0", "broadcast"),
        (536870912, "none", 0, "274.50", "0", "gather or scatter"),
        (2147483648, "sum", 0, "366.00", "0", "reduce"),
    ],
)
def test_the_collective_follows_from_the_row_where_no_program_is_named(count, redop, root, busbw, in_place_wrong, what):
    row = f"8589934592 {count} float {redop} {root} 23469.8 366.00 {busbw} 0 23469.8 366.00 {busbw} {in_place_wrong}\n"

    found = read(HEAD_OF_FOUR + row)

    assert {reading.what for reading in found.readings} == {what}
    assert found.table.doubts == ()


def test_sizes_that_come_again_in_a_second_cycle_are_rows_as_well():
    lines = sample("nccl-tests-2.17.3.log").decode().splitlines(keepends=True)
    rows = [line for line in lines if line.lstrip()[:1].isdigit()]
    first = lines.index(rows[0])

    found = read("".join([*lines[:first], *rows, "# Testing 2 cycle.\n", *rows, *lines[first + len(rows) :]]))

    assert [reading.size_bytes for reading in found.readings[::2]] == 2 * [1048576, 4194304, 16777216]
    assert found.table.doubts == ()
    assert found.unread == ()


def test_a_first_half_that_is_left_blank_is_no_measurement():
    text = sample("nccl-tests-2.17.9.log").decode().replace("  40838.9  210.34  368.09       0", " " * 33)

    found = read(text)

    assert [(reading.in_place, reading.busbw_Bps) for reading in found.readings] == [(True, 368.62e9)]


def test_rccl_tests_may_leave_the_first_half_out():
    half = "     time   algbw   busbw #wrong\n"
    row = "  8589934592    2147483648     float     sum      -1  40780.5  210.64  368.62      0\n"
    found = read(
        "# nThread 1 nGpus 8 minBytes 8 maxBytes 8\n#\nrccl-tests: Version abc\n#           in-place          \n"
        "#       size         count      type   redop    root" + half + row
    )

    assert found.table.tool == "rccl-tests"
    assert [(reading.in_place, reading.busbw_Bps) for reading in found.readings] == [(True, 368.62e9)]


def test_an_asterisk_of_rccl_tests_marks_what_is_counted():
    text = sample("rccl-tests.log").decode().replace("308.29      0", "308.29     7*")
    assert [reading.wrong for reading in read(text).readings] == [0, 0, 0, 7]


def test_rccl_tests_says_its_version_as_nccl_tests_does():
    text = sample("nccl-tests-2.19.6-torn.log").decode()
    text = text.replace("# nccl-tests version", "# rccl-tests version").replace("nccl-headers", "rccl-headers")

    table = read(text.replace("nccl-library", "rccl-library")).table

    assert (table.tool, table.tool_version) == ("rccl-tests", "2.19.6")
    assert [name for name, _ in table.versions] == ["RCCL headers", "RCCL"]


def test_runs_that_were_not_joined_may_print_their_beginnings_one_after_the_other():
    text = sample("nccl-tests-2.13-one-rank-runs.log").decode()
    head = dict.fromkeys(line for line in text.splitlines() if line.startswith(("# nThread", "# Using")))
    rest = [line for line in text.splitlines() if not line.startswith(("# nThread", "# Using"))]
    found = read("\n".join([*head, "#", *head, "#", *rest]) + "\n")

    assert dict(found.table.parameters)["runs printed into one another"] == "2"
    assert (found.table.ranks, found.table.complete, found.unread) == (1, True, ())


def test_a_table_may_begin_with_the_line_that_names_its_halves():
    text = sample("nccl-tests-2.17.3.log").decode()
    assert read(text[text.index("#   ", text.index("Rank  3") + 60) :]).unread == ()
