"""Lines, streams, documents and limits of one source."""

import resource

import pytest
from tests.cost import check_cost

from busbw.formats.lines import driver, stream
from busbw.formats.lines.prefix import split

from .reading import read, sample

LOG = "vm:1827:1830 [0] NCCL INFO Channel 00/24 :    0   1   2   3\n"


@pytest.mark.parametrize(
    ("line", "tag", "rest"),
    [
        ("0: # Using", "0:", "# Using"),
        ("[1,0]<stdout>:      8", "[1,0]<stdout>:", "      8"),
        ("Thu Jul 18 15:41:05 2024[1,3]<stderr>:x", "[1,3]<stderr>:", "x"),
        ("  1048576  262144", "", "  1048576  262144"),
        ("node01: #  size", "node01:", "#  size"),
        ("node01: words", "", "node01: words"),
        ("[2026-07-09 16:03:21] vm:1:2 [0] init.cc:5 NCCL WARN x", "", "vm:1:2 [0] init.cc:5 NCCL WARN x"),
        ("0: 0: deep", "0:0:", "deep"),
        ("", "", ""),
    ],
)
def test_a_prefix_is_a_tag_and_dates(line, tag, rest):
    assert split(line + "\r\n") == (tag, rest)


def test_log_lines_of_every_form_are_known():
    found = read(
        LOG
        + "\n[2026-07-09 16:03:21] vm:1827:1830 [0] transport/net_ib.cc:1234 NCCL WARN Got completion\n"
        + "[2026-07-09 16:03:21] vm:1827:1830 [0] init.cc:12 (ncclInit) NCCL WARN bad\n"
        + "vm:1827:1830 NCCL INFO no device\n1: " + LOG + "[1,0]<stdout>:" + LOG
        + "NCCL version 2.28.9+cuda13.0\n[1700000000.123456] [vm:77   :0]  ucp_worker.c:1888 UCX  INFO ucp\n"
        + "srun: job 12 queued and waiting for resources\nlibfabric:54799:1701770603::cxi:mr:x():90<warn> nid\n"
    )  # fmt: skip
    assert found.unread == ()
    assert found.known_lines == found.lines == 11


def test_what_nobody_knows_is_listed_with_its_number_and_beginning():
    found = read(LOG * 3 + "ERROR " + "x" * 500 + "\n" + LOG)

    (line,) = found.unread
    assert (line.line, line.text, line.why) == (4, "ERROR " + "x" * 194, "no reader knows this line")


def test_unread_lines_are_listed_without_secrets():
    assert read("export HF_TOKEN=hf_abcdef\n").unread[0].text == "export HF_TOKEN=<withheld>"


def test_a_copy_is_the_source_but_for_what_is_withheld():
    content = sample("nccl-tests-2.19.6-torn.log")
    assert read(content + b"HF_TOKEN=x\r\n" + content).copy == content + b"HF_TOKEN=<withheld>\n" + content


def test_a_document_may_be_spread_over_lines_and_log_lines_between_them():
    report = sample("nccl-tests-json-3.json").decode().replace(",", ",\n").replace(',\n"-', ',\n"-')

    found = read(report.replace('"results"', LOG + '"results"'))

    assert len(found.readings) == 4
    assert found.unread == ()
    assert found.adds_up


def test_a_document_that_was_cut_off_does_not_take_the_next_one_along():
    report = sample("nccl-tests-json-3.json")

    found = read(report[:700] + b"\n" + report + sample("nccl-tests-2.17.3.log"))

    assert [len(found.tables), len(found.readings), len(found.unread)] == [2, 10, 1]
    assert found.adds_up


def test_a_document_cut_off_between_its_values_does_not_take_the_next_one_along():
    report = sample("nccl-tests-json-3.json").strip()
    cut = report[: report.index(b'"results":[') + 11]

    found = read(cut + b"\n" + report + b"\n" + sample("nccl-tests-2.17.3.log"))

    assert [len(found.tables), len(found.readings), len(found.unread)] == [2, 10, 1]
    assert found.adds_up


@pytest.mark.parametrize("place", [b',"actual_iterations"', b'"float"', b'"redop":"sum"'])
@pytest.mark.parametrize("in_lines", [False, True])
def test_of_a_report_without_an_end_the_whole_results_are_read_and_its_failure_noted(place, in_lines):
    report = sample("nccl-tests-json-1.json")
    report = report[: report.rindex(place)]
    if in_lines:
        report = report.replace(b'{"size"', b'\n{"size"').replace(b'"in_place"', b'\n"in_place"')

    found = read(report + b"\n" + sample("nccl-tests-2.17.3.log"))

    salvaged, after = found.tables
    assert (salvaged.readings, salvaged.complete, after.readings) == (2, False, 6)
    assert [text for _, text in salvaged.failures] == [
        "its report has no end: possibly the program failed, or was ended"
    ]
    assert found.readings[0].size_bytes == 1048576
    assert [line.text[:8] for line in found.unread] == (
        ['{"size":', '"in_plac'][: 1 + (place[:2] == b',"')] if in_lines else []
    )
    assert found.adds_up


def test_a_report_without_any_whole_result_is_listed():
    report = sample("nccl-tests-json-1.json")
    assert len(read(report[: report.index(b'"size":1') + 20]).unread) == 1


def test_text_of_a_tool_that_looked_like_a_document_is_read_as_text():
    broken = sample("perftest_bw.json").replace(b'",', b'"', 1)

    found = read(broken)

    assert (found.table.tool, len(found.readings)) == ("perftest", 1)
    assert [line.text for line in found.unread] == ["{"]
    assert found.adds_up


def test_lines_that_only_divide_are_known_wherever_they_stand():
    dividers = b"".join(mark * 60 + b"\n" for mark in (b"#", b"-", b"=", b"*", b"# "))

    found = read(dividers + sample("perftest_gbits.txt") + dividers + sample("nccl-tests-2.17.3.log") + dividers)

    assert found.unread == ()


def test_a_bracket_in_a_log_does_not_swallow_what_follows():
    found = read(b'{\n  "step": [\n' + sample("nccl-tests-2.17.3.log"))

    assert len(found.readings) == 6
    assert [line.line for line in found.unread] == [1, 2]


@pytest.mark.parametrize(
    "content", [b"{" * 100_000, b"[" * 100_000, b'{"a":' * 50_000, b"[\n" * 50_000, b'{"a":1}' * 9]
)
def test_nested_and_glued_documents_are_refused_in_time(content):
    assert check_cost(lambda: read(content), most_s=10).adds_up


def test_a_line_that_is_too_long_is_one_unread_line(monkeypatch):
    monkeypatch.setattr(driver, "LONGEST_LINE_BYTES", 10_000)

    found = read(b"y" * 50_000 + b"\n" + sample("nccl-tests-2.17.3.log"), block_bytes=1000)

    assert [line.line for line in found.unread] == [1]
    assert (len(found.readings), found.adds_up) == (6, True)


def test_a_document_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(stream, "MOST_BYTES", 1000)
    assert "more than" in read(sample("nccl-tests-json-3.json")).unread[0].why


def test_many_streams_at_once_stay_bounded():
    lines = [f"[1,{rank}]<stdout>:# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n" for rank in range(6000)]

    found = read("".join(lines))

    assert len(found.tables) == 6000
    assert found.adds_up


def test_more_tables_than_can_be_kept_are_listed_as_unread():
    found = read("# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n#   size  count  type  time  algbw  busbw\n" * 20_100)

    assert len(found.tables) == 20_000
    assert {line.why for line in found.unread if "tables" in line.why} == {"more than 20000 tables"}
    assert found.adds_up


def test_memory_stays_bounded_while_readings_go_by():
    half = "  40838.9  210.34  368.09       0"
    block = (f"  8589934592    2147483648     float     sum      -1{half}{half}\n" + LOG * 3) * 3000
    reader = driver.Reader(_formats(), source=0, first_table=0)
    peaks = []
    for _ in range(12):
        assert len(reader.feed(block.encode())) == 6000
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    assert peaks[-1] - peaks[2] < 4096


def _formats():
    from busbw.formats.registry import FORMATS

    return FORMATS
