"""Stored results and files of other tools as they are compared."""

import contextlib
import csv
import io
import re
import shutil
from pathlib import Path

import pytest

from busbw.api.comparisons import compare_stored
from busbw.base.errors import ExitCode, InputError
from busbw.cli.compare import exit_code
from busbw.show.exports.tables import comparison_csv
from busbw.show.page.html import report_html
from busbw.show.page.panels import comparison_svg
from busbw.show.text.comparison import comparison_text

SAMPLES = Path(__file__).parents[1] / "formats" / "samples"


def copies(folder, name, count):
    suffix = Path(name).suffix
    return [str(shutil.copy(SAMPLES / name, folder / f"{folder.name}-{number}{suffix}")) for number in range(count)]


def compared(*names, anyway=False):
    return compare_stored(names, anyway=anyway, geometric_mean=False)


def test_two_logs_of_one_launch_each_cannot_tell(tmp_path):
    one, other = copies(tmp_path, "nccl-tests-json-3.json", 2)

    found = compared(one, other)

    assert found.verdict.outcome == "cannot_tell"
    assert [side.kind for side in found.sides] == ["import", "import"]
    assert [finding.code for finding in found.findings] == ["CMP014", "CMP017"]
    assert all(point.estimate.ratio == 1 for point in found.versus[0].points)


def test_several_launches_of_a_side_are_separated_by_commas(tmp_path):
    names = copies(tmp_path, "nccl-tests-json-3.json", 24)

    found = compared(",".join(names[:12]), ",".join(names[12:]))

    assert [len(side.launches) for side in found.sides] == [12, 12]
    assert (found.design, found.blocks, found.verdict.outcome) == ("descriptive", 0, "cannot_tell")
    assert [finding.code for finding in found.findings] == ["CMP014"]


def slower(path, factor):
    """Write all times of a log that tells times only, times `factor`."""
    path.write_text(OSU.format(time=f"{120.5 * factor:.2f}"))
    return str(path)


def test_stored_results_that_are_surely_slower_are_described_and_claimed_to_be_nothing(tmp_path):
    sides = [
        ",".join(slower(tmp_path / f"{name}{number}.log", factor * (1 + 0.001 * number)) for number in range(12))
        for name, factor in (("before", 1.0), ("after", 1.25))
    ]

    found = compared(*sides)

    estimate = found.versus[0].points[2].estimate
    assert (estimate.ratio, estimate.claim) == (pytest.approx(0.8, rel=0.001), "cannot_tell")
    assert (estimate.low, estimate.high) == (pytest.approx(0.793, abs=0.001), pytest.approx(0.807, abs=0.001))
    assert exit_code(found) == ExitCode.CANNOT_TELL
    # What is printed, drawn and exported says it too.
    with contextlib.redirect_stdout(io.StringIO()) as text:
        comparison_text(found)
    page, rows = report_html((), found), list(csv.DictReader(io.StringIO(comparison_csv(found))))
    assert "nothing is claimed of stored results" in text.getvalue()
    assert "nothing is claimed of stored results" in page
    assert '<td class="text">as measured</td>' in page
    assert not re.search(r"\b(faster|slower|false claims|tables)\b", text.getvalue())
    assert "false claims" not in page
    assert {(row["design"], row["claim"], row["confidence"]) for row in rows} == {("descriptive", "cannot_tell", "")}


def test_logs_over_other_ranks_are_refused():
    one, other = (str(SAMPLES / f"nccl-tests-2.17.{patch}.log") for patch in (3, 9))

    with pytest.raises(InputError, match="A: 4 ranks; B: 8 ranks"):
        compared(one, other)
    with pytest.raises(InputError, match="have no point in common"):
        compared(one, other, anyway=True)


def test_a_result_is_not_compared_with_itself(tmp_path):
    (one,) = copies(tmp_path, "nccl-tests-json-3.json", 1)

    with pytest.raises(InputError, match="named twice"):
        compared(one, f"{tmp_path}/../{tmp_path.name}/{Path(one).name}")


@pytest.mark.parametrize("name", ["", ",", "nowhere", "\0", "a" * 5000])
def test_a_name_that_means_nothing_is_refused(name):
    with pytest.raises(InputError):
        compared(name, str(SAMPLES / "nccl-tests-json-3.json"))


def test_a_file_that_nobody_reads_is_refused():
    with pytest.raises(InputError, match="nothing in it"):
        compared(str(SAMPLES / "SOURCES.md"), str(SAMPLES / "nccl-tests-json-3.json"))


OSU = """# OSU MPI Allreduce Latency Test v7.3
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
8                       2.11              1.90              2.40        1000
2048                    4.05              3.71              4.52        1000
262144                {time}            110.00            140.00         100
"""
BANDWIDTH = """# OSU MPI Bandwidth Test v7.3
# Size      Bandwidth (MB/s)
4096                 5120.00
1048576              {rate}
"""


def test_logs_that_tell_times_only_are_compared_by_time_and_say_what_they_do_not_tell(tmp_path):
    for name, time_us in (("before", "120.50"), ("after", "96.40")):
        (tmp_path / f"{name}.log").write_text(OSU.format(time=time_us))

    found = compared(str(tmp_path / "before.log"), str(tmp_path / "after.log"))

    points, bands = found.versus[0].points, found.versus[0].bands
    assert [point.size_bytes for point in points] == [8, 2048, 262144]
    assert {(point.first_busbw_Bps, point.other_busbw_Bps) for point in points} == {(None, None)}
    assert points[2].estimate.ratio == pytest.approx(1.25)
    assert [(band.band, band.measure) for band in bands] == [("small", "latency"), ("medium", "latency")]
    assert bands[1].first == pytest.approx(120.5e-6)
    assert found.notes == ("over how many ranks is not told of A and B: that it was the same is for you to know",)
    # As text, as a page and as a drawing: what is not known is not drawn.
    with contextlib.redirect_stdout(io.StringIO()) as text:
        comparison_text(found)
    assert "n/a" in text.getvalue()
    assert "120.50 us 96.40 us" in text.getvalue()
    assert "n/a" in report_html((), found)
    assert comparison_svg(found, "light") is not None


def test_logs_that_tell_bandwidths_only_are_compared_by_them(tmp_path):
    for name, rate in (("before", "24000.00"), ("after", "12000.00")):
        (tmp_path / f"{name}.log").write_text(BANDWIDTH.format(rate=rate))

    point = compared(str(tmp_path / "before.log"), str(tmp_path / "after.log")).versus[0].points[1]

    assert (point.first_busbw_Bps, point.other_busbw_Bps) == (24e9, 12e9)
    assert point.estimate.ratio == pytest.approx(0.5)


IMB = """#----------------------------------------------------------------
# Benchmarking Allreduce
# #processes = {ranks}
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.04         0.04         0.04
         4096         1000         {time}         {time}         {time}

"""


def test_of_several_numbers_of_ranks_in_a_log_the_largest_is_compared_and_that_is_said(tmp_path):
    for name, time_us in (("before", "6.50"), ("after", "5.20")):
        pairs = IMB.format(ranks=2, time="0.75").replace("Allreduce", "Exchange")
        tables = (IMB.format(ranks=2, time="1.50"), IMB.format(ranks=4, time=time_us), pairs)
        (tmp_path / f"{name}.log").write_text("".join(tables))

    found = compared(str(tmp_path / "before.log"), str(tmp_path / "after.log"))

    assert [(point.size_bytes, point.ranks, point.estimate.ratio) for point in found.versus[0].points] == [
        (0, 2, 1.0),
        (4096, 2, 1.0),
        (0, 4, 1.0),
        (4096, 4, pytest.approx(1.25)),
    ]
    assert (
        found.notes[0]
        == "before.log is over several numbers of ranks: compared is the largest of each exchange, at most 4"
    )

    (tmp_path / "few.log").write_text(IMB.format(ranks=2, time="1.50") + IMB.format(ranks=3, time="2.50"))
    with pytest.raises(InputError, match="A: 4 ranks; B: 3 ranks"):
        compared(str(tmp_path / "before.log"), str(tmp_path / "few.log"))
