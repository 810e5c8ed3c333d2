"""Prefixes that no launcher here writes: told from the first line of a table and one that begins alike."""

import json
import re

import pytest

from busbw.formats.lines.driver import Prefixes, may_teach
from busbw.formats.registry import FORMATS

from .reading import SAMPLES, read, sample

TABLE = sample("nccl-tests-2.17.3.log").decode()
LATENCY = sample("osu-5.6-latency.log").decode()
WRITE = sample("perftest_gbits.txt").decode()


def numbers(found):
    return [(each.what, each.size_bytes, each.in_place, each.time_s, each.bandwidth_Bps) for each in found.readings]


def prefixed(text, before, after=""):
    return "".join(f"{before}{line}{after}\n" for line in text.splitlines())


@pytest.mark.parametrize("text", [TABLE, LATENCY, WRITE], ids=["nccl-tests", "osu", "perftest"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("> ", ""), (">", ""), ("> > ", ""), ("    ", ""), ("\ufeff", ""), ("\u00a0", ""),
        ("INFO:bench:", ""), ("2031-02-03 04:05:06,789 - INFO - ", ""), ("INFO     sweep:sweep.py:57 ", ""),
        ("2031-02-03 04:05:06.789 | INFO     | sweep:go:12 - ", ""), ("(Worker pid=312, ip=10.9.8.7) ", ""),
        ("Feb 03 04:05:06 gpu-17 slurmstepd[312]: ", ""), ("2031-02-03T04:05:06.789012345Z stdout F ", ""),
        ("2031-02-03T04:05:06.789012Z 01O ", ""), ("1927861506.789012 ", ""), ("[gpu-17] 04:05:06 | ", ""),
        ("[prterun-gpu-17-9@1,0][gpu-17:312]<stdout>: ", ""), ("[PE_0]: ", ""), ("gpu-17: ", ""),
        ('        "', '",'), ("b'", "\\n'"), ("\x1b(B\x1b[32m", "\x1b[m"),
    ],
)  # fmt: skip
def test_what_stands_before_every_line_changes_no_number(text, before, after):
    plain, found = read(text), read(prefixed(text, before, after))

    assert numbers(found) == numbers(plain)
    assert [(table.ranks, table.complete) for table in found.tables] == [
        (table.ranks, table.complete) for table in plain.tables
    ]
    # What stands before the first line of a table is not known to be a prefix yet.
    assert all(set(line.text.rstrip("\",'n\\")[-60:]) == {"-"} for line in found.unread)
    assert found.adds_up


def test_the_time_before_a_line_may_be_anywhere_in_its_prefix():
    lines = LATENCY.splitlines()
    found = read("".join(f"<run 7 03:04:{second:02}.5> {line}\n" for second, line in enumerate(lines)))

    assert numbers(found) == numbers(read(LATENCY))
    assert found.unread == ()


def test_two_writers_with_prefixes_of_their_own_are_two_streams():
    lines = zip(TABLE.splitlines(), LATENCY.splitlines() + [""] * 30, strict=False)
    found = read("".join(f"(A pid=1) {one}\n(B pid=2) {other}\n" for one, other in lines))

    assert sorted(table.tool for table in found.tables) == ["nccl-tests", "osu"]
    assert sorted(numbers(found)) == sorted(numbers(read(TABLE)) + numbers(read(LATENCY)))


def test_words_that_mention_a_table_are_no_prefix_and_begin_none():
    found = read("the first line is: # OSU MPI Latency Test v5.6\n" + "something else\n" * 30 + TABLE)

    assert [table.tool for table in found.tables] == ["nccl-tests"]
    assert sorted(line.line for line in found.unread) == list(range(1, 32))
    assert found.adds_up


def test_a_comment_sign_before_the_beginning_of_a_table_is_no_prefix():
    assert numbers(read("# " + TABLE)) == numbers(read(TABLE))


@pytest.mark.parametrize("size", [1024, 2048, 4096, 8192])
def test_a_size_after_the_time_of_day_is_no_year(size):
    found = read(f"Feb 03 04:05:06 # OSU MPI Latency Test v5.6\nFeb 03 04:05:06 # Size  Latency (us)\n"
                 f"Feb 03 04:05:06 {size}  2.5\n")  # fmt: skip
    assert [each.size_bytes for each in found.readings] == [size]


def test_a_table_in_a_document_is_left_to_the_document():
    found = read('{\n "command": "# OSU MPI Latency Test",\n "other": 1\n}\n')

    assert len(found.unread) == 4
    assert found.adds_up


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir() if path.suffix in {".txt", ".log"}))
def test_every_beginning_of_a_table_may_teach_a_prefix(name):
    for line in sample(name).decode().splitlines():
        # A row without a header and a line of JSON teach no prefix, nor does a failure.
        if line.lstrip()[:1] in "#*RON" and any(reader.starts.match(line) for reader in FORMATS.text):
            assert may_teach(line), line


def test_fences_around_a_table_only_divide():
    assert read("```text\n" + TABLE + "```\n").unread == ()


def test_a_failure_loses_its_first_blank_to_a_tag():
    failure = sample("nccl-tests-failure.log").decode()
    assert len(read(prefixed(failure, "[rank0]:")).table.failures) == len(read(failure).table.failures)


@pytest.mark.parametrize(
    "record",
    [
        lambda line: {"log": line + "\n", "stream": "stdout", "time": "2031-02-03T04:05:06.789Z"},
        lambda line: {"labels": {"app": "sweep"}, "line": line, "timestamp": "2031-02-03T04:05:06Z"},
        lambda line: {"MESSAGE": line, "_PID": "312"},
    ],
    ids=["docker", "loki", "journal"],
)
@pytest.mark.parametrize("text", [TABLE, LATENCY, WRITE], ids=["nccl-tests", "osu", "perftest"])
def test_records_of_a_collector_are_the_lines_that_the_program_wrote(record, text):
    found = read("".join(json.dumps(record(line)) + "\n" for line in text.splitlines()))

    assert numbers(found) == numbers(read(text))
    assert found.unread == ()


def test_a_record_in_a_document_stays_part_of_it():
    document = '{\n"nvbandwidth": {"testcases": [\n{"name": "a", "status": "Passed", "line": "x"}\n]}\n}\n'
    assert [table.program for table in read(document).tables] == ["a"]


def test_the_first_line_of_rccl_tests_teaches_its_prefix_too():
    text = sample("nccl-tests-2.19.6-torn.log").decode().replace("# nccl-tests version", "# rccl-tests version")
    found = read(prefixed(text, "INFO:bench:"))

    assert (found.table.tool, found.table.tool_version, found.unread) == ("rccl-tests", "2.19.6", ())


def test_a_form_of_line_that_began_no_table_is_asked_once():
    prefixes = Prefixes(FORMATS.text)
    line = "step 17: busbw so far 310.5, Running on"

    assert prefixes.may_learn(line)
    assert not prefixes.hold(1, line, line)
    assert not prefixes.may_learn("step 98: busbw so far 288.1, Running on")
    assert prefixes.may_learn("step 98: busbw of all so far 288.1, Running on")


def test_a_table_is_read_after_many_lines_that_only_speak_of_one():
    chatter = "".join(f"log {number}: busbw {number}, Running case {number}.\n" for number in range(5000))

    assert numbers(read(chatter + prefixed(TABLE, "log 5001: "))) == numbers(read(TABLE))


def test_a_tag_that_mpirun_repeats_within_a_row_is_left_out():
    """As in KeitaW/p5-nccl-test-2024-07-19: nccl-tests writes a row in three pieces."""
    text = sample("nccl-tests-2.13-mpirun-tags.log").decode()
    tag = "[1,0]<stdout>:"
    torn = re.sub(r"(?m)( sum +-1)( +[\d.]+)", rf"\1{re.escape(tag)}\2", text).replace("\\", "")
    found, whole = read(torn), read(text)

    assert f"-1{tag} " in torn
    assert found.readings == whole.readings


@pytest.mark.parametrize(
    "line",
    ['[[ -x "$X" ]] || exit 1', "[](){#ref-communication-nccl}", "[[Home]]", '["NCCL"](https://example.org/nccl)'],
)
def test_a_link_of_a_page_begins_no_document(line):
    (unread,) = read(f"{line}\n").unread
    assert unread.why == "no reader knows this line"


@pytest.mark.parametrize("text", ["[]", "[[1, 2], [3]]", '["a", "b"]', "[\n]"])
def test_a_list_of_json_is_still_taken_for_one(text):
    assert {line.why for line in read(f"{text}\n").unread} != {"no reader knows this line"}
