"""What a log lacks can be stated: it is used where the log is silent, and recorded as stated."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.api.importing import import_files, stated_figures
from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.model.imported import Imported
from busbw.store import imports

from .reading import sample

ROWS = (
    "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
    "           0             0   float     sum    34.27    0.00    0.00    N/A    33.57    0.00    0.00    N/A\n"
    "     1048576        262144   float     sum    374.0    2.80    2.80  2e-07    374.3    2.80    2.80  2e-07\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 1.4 \n"
)


def imported(folder: Path, text: str, **stated: object) -> Imported:
    (folder / "job.log").write_text(text)
    figures = stated_figures(**{"collective": None, "ranks": None, "nodes": None, "platform_name": None, **stated})
    return import_files([str(folder / "job.log")], folder / "import", folder, stated=figures).imported


def codes(found: Imported) -> set[str]:
    return {finding.code for finding in found.findings}


def test_what_the_log_lacks_is_filled_in_and_recorded(tmp_path: Path):
    found = imported(tmp_path, ROWS, collective="sendrecv", ranks=16, nodes=2, platform_name="azure-nd-h100-v5")

    (table,) = found.tables
    assert dict(table.stated) == {
        "collective": "sendrecv",
        "ranks": "16",
        "nodes": "2",
        "platform": "azure-nd-h100-v5",
    }
    assert table.ranks == 16
    assert {(reading.what, reading.ranks) for reading in imports.readings(tmp_path / "import")} == {("sendrecv", 16)}
    assert (found.stated.ranks, found.stated.platform) == (16, "azure-nd-h100-v5")
    assert "IMP012" not in codes(found)


def test_without_a_statement_nothing_is_recorded(tmp_path: Path):
    found = imported(tmp_path, ROWS)

    assert found.tables[0].stated == ()
    assert found.tables[0].ranks is None


def test_what_the_log_says_itself_goes_first_and_the_difference_is_told(tmp_path: Path):
    text = sample("nccl-tests-2.17.9.log").decode()

    found = imported(tmp_path, text, collective="all_gather", ranks=16)

    assert {reading.what for reading in imports.readings(tmp_path / "import")} == {"all_reduce"}
    assert (found.tables[0].ranks, found.tables[0].stated) == (8, ())
    assert "IMP012" in codes(found)


def test_a_statement_that_agrees_with_the_log_is_no_finding(tmp_path: Path):
    text = sample("nccl-tests-2.17.9.log").decode()

    assert "IMP012" not in codes(imported(tmp_path, text, collective="all_reduce", ranks=8, nodes=1))


def test_rows_that_show_another_collective_than_was_stated_are_told(tmp_path: Path):
    text = sample("nccl-tests-2.4-reduce_scatter-zeros.log").decode()

    assert "IMP012" in codes(imported(tmp_path, text, collective="all_reduce"))


def test_rows_that_fit_two_collectives_are_as_stated(tmp_path: Path):
    text = sample("nccl-tests-2.9-alltoall.log").decode()

    found = imported(tmp_path, text, collective="alltoall")

    assert {reading.what for reading in imports.readings(tmp_path / "import")} == {"alltoall"}
    assert "IMP012" not in codes(found)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"collective": "allreduce"}, "is not a collective"),
        ({"ranks": 0}, "--ranks is 0"),
        ({"nodes": -1}, "--nodes is -1"),
        ({"ranks": 2, "nodes": 4}, "4 nodes have 2 ranks"),
        ({"platform_name": "nowhere"}, "nowhere"),
    ],
)
def test_a_statement_that_cannot_be_is_refused(wrong: dict[str, object], why: str):
    with pytest.raises(InputError, match=why):
        stated_figures(**{"collective": None, "ranks": None, "nodes": None, "platform_name": None, **wrong})


def test_the_command_takes_all_four_and_says_what_was_stated(tmp_path: Path):
    (tmp_path / "job.log").write_text(ROWS)
    options = ["--collective", "sendrecv", "--ranks", "16", "--nodes", "2", "--platform", "azure-nd-h100-v5"]

    done = CliRunner().invoke(busbw, ["import", str(tmp_path / "job.log"), "-o", str(tmp_path / "i"), *options])

    assert done.exit_code == 0
    assert "stated: ranks 16, for 1 of 1 table" in done.stdout
    assert "2.80 GB/s" in done.stdout
