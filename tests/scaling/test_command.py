"""`busbw scaling` as a user meets it: text, JSON, CSV, exit codes."""

import csv
import io
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from busbw.api.scaling_reports import ScalingRequest, scaling
from busbw.cli.command import busbw
from busbw.model import codec
from busbw.model.scaling import ScalingReport

SAMPLES = Path(__file__).parent / "samples"
FORMATS = Path(__file__).parents[1] / "formats" / "samples"
TOGETHER = str(SAMPLES / "together-b200.csv")
NAMD = str(SAMPLES / "namd-apoa1.log")


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(busbw, ["scaling", *arguments], input=given)


def refused(*arguments: str, given: str | None = None) -> str:
    done = run(*arguments, given=given)
    assert done.exception is not None
    return str(done.exception)


def test_text_names_lines_points_answers_and_findings() -> None:
    done = run(TOGETHER)
    assert done.exit_code == 1
    assert "all_reduce 32 GiB over nodes" in done.stdout
    assert "o ring" in done.stdout
    assert "388.0 GB/s" in done.stdout
    assert "o bus bandwidth is level:" in done.stdout
    assert "warn SCAL002 all_reduce 32 GiB (collnet) falls with the number of nodes" in done.stdout


def test_json_is_the_value_and_csv_has_a_line_a_point() -> None:
    report = scaling(ScalingRequest(sources=(TOGETHER,)))
    assert codec.decode(run(TOGETHER, "--json").stdout.encode(), ScalingReport, where="output") == report
    rows = list(csv.DictReader(io.StringIO(run(TOGETHER, "--csv").stdout)))
    assert len(rows) == sum(len(series.points) for series in report.views[0].series)
    assert {row["series"] for row in rows} == {"ring", "tree", "nvlstree", "collnet"}
    assert (rows[0]["nodes"], float(rows[0]["busbw_Bps"]), rows[0]["in_trend"]) == ("1", 698e9, "false")


def test_exit_codes_are_told_found_bad_and_cannot_tell() -> None:
    assert run(NAMD, "--app", "namd").exit_code == 0
    assert run("--published", "azure-nd-h100-v5").exit_code == 0
    assert run(TOGETHER).exit_code == 1
    assert run("-", given="nodes,time_s\n1,8\n2,5\n").exit_code == 4
    assert "nothing to draw" in refused()
    assert run(TOGETHER, "--json", "--csv").exit_code == 2


def test_namd_scales_as_its_own_lines_say() -> None:
    view = scaling(ScalingRequest(sources=(NAMD,), application="namd", beyond=(128, 1024))).views[0]
    (line,) = view.series
    last = line.points[-1]
    assert last.speedup is not None
    # The means of the two lines of each run: 0.5263385 and 0.01155945 s a step.
    assert last.speedup.value == pytest.approx(0.5263385 / 0.01155945)
    assert last.serial_share == pytest.approx((1 / last.speedup.value - 1 / 64) / (1 - 1 / 64))
    near, far = line.beyond
    assert near.speedup is not None
    assert far.speedup is None
    assert "not measured" in near.words


def test_a_table_on_standard_input_and_options_of_the_other_kind() -> None:
    table = "gpus,tokens_per_s\n8,1000\n16,1960\n32,3842\n"
    done = run("-", "--weak", given=table)
    assert done.exit_code == 0
    assert "96.0 %" in done.stdout
    assert "--platform is for collectives" in refused("-", "--platform", "azure-ndv4", given=table)
    assert "--base is for applications" in refused(TOGETHER, "--base", "4")


def test_logs_of_other_tools_are_read_where_they_lie_and_ranks_become_nodes() -> None:
    log = str(FORMATS / "nccl-tests-2.17.9.log")
    view = scaling(ScalingRequest(sources=(log,), platform="azure-nd-h100-v5")).views[0]
    (point,) = view.series[0].points
    assert (point.nodes, point.ranks) == (1, 8)
    assert point.limit_Bps is not None
    assert "out of place only; in place with --form in" in view.notes


def test_ranks_that_are_no_whole_nodes_are_refused() -> None:
    table = "ranks,busbw_GBps,collective\n8,300,all_reduce\n20,300,all_reduce\n"
    assert "20 ranks are no whole number of nodes with 8" in refused("-", "--ranks-per-node", "8", given=table)
    done = run("-", "--ranks-per-node", "8", given=table.replace("20,", "16,"))
    assert "1" in done.stdout


def test_a_collective_that_a_table_does_not_tell_can_be_said() -> None:
    table = "nodes,gpus,busbw_GBps\n4,32,361.06\n8,64,366.12\n16,128,367.39\n"
    untold = run("-", "--platform", "azure-nd-h100-v5", given=table)
    assert "no limit: which collective" in untold.stdout
    told = run("-", "--platform", "azure-nd-h100-v5", "--collective", "all_reduce", given=table)
    assert "400.0 GB/s" in told.stdout


def test_a_collective_is_found_however_it_is_written() -> None:
    assert run(TOGETHER, "--collective", "AllReduce", "--json").stdout == run(TOGETHER, "--json").stdout
    assert "nothing here was measured with collective all_gather" in refused(TOGETHER, "--collective", "allgather")


def test_counts_come_from_the_names_of_files(tmp_path: Path) -> None:
    for nodes, time_s in ((1, 80), (2, 42), (4, 23)):
        (tmp_path / f"star-{nodes}n.log").write_text(f"iteration 100\nTotal wall time: {time_s} s\n")
    logs = [str(tmp_path / f"star-{nodes}n.log") for nodes in (1, 2, 4)]
    done = run(*logs, "--pattern", "wall time: {time_s} s", "--name", "star-{nodes}n", "--json")
    points = msgspec.json.decode(done.stdout.encode(), type=ScalingReport).views[0].series[0].points
    assert [(point.at, point.time_s.value) for point in points if point.time_s is not None] == [
        (1, 80),
        (2, 42),
        (4, 23),
    ]
    assert "its name does not fit" in refused(*logs, "--pattern", "wall time: {time_s} s", "--name", "run-{nodes}n")


def test_hostile_names_reach_neither_the_terminal_nor_a_spreadsheet_as_they_are() -> None:
    table = "nodes,busbw_GBps,series\n" + "".join(
        f"{nodes},10,{name}\n" for name in ("\x1b[31mred", "=1+1", "[bold]", "\u202eright") for nodes in (2, 4, 8)
    )
    text = run("-", given=table).stdout
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in text
    assert "'=1+1" in run("-", "--csv", given=table).stdout


def test_a_line_is_drawn_without_anything_cut_off_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in ((NAMD, "--app", "namd"), (TOGETHER, "--platform", "azure-nd-h100-v5")):
        assert "…" not in run(*arguments).stdout


def test_an_axis_that_is_not_known_is_refused_with_those_that_are() -> None:
    told = refused("-", "--by", "gpus", given="cores,ranks,time_s\n1,1,8\n2,2,4\n")
    assert "draw over what is known: --by ranks or --by cores" in told
    told = refused("-", "--by", "nodes", given="ranks,time_s\n1,8\n2,4\n")
    assert "say it with --ranks-per-node, or draw over what is known: --by ranks" in told


def test_times_of_a_tool_that_tells_no_ranks_take_them_from_the_names_of_the_files(tmp_path: Path) -> None:
    for nodes, ranks, time_us in ((1, 4, 100.0), (2, 8, 130.0), (4, 16, 160.0)):
        rows = f"# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n1048576       {time_us}\n"
        (tmp_path / f"osu-{nodes}n-{ranks}.log").write_text(rows)
    logs = tuple(sorted(str(each) for each in tmp_path.iterdir()))

    assert "--name 'osu-{ranks}'" in refused(*logs)
    view = scaling(ScalingRequest(sources=logs, name_pattern="osu-{nodes}n-{ranks}.log")).views[0]

    points = view.series[0].points
    assert [(point.nodes, point.ranks) for point in points] == [(1, 4), (2, 8), (4, 16)]
    # 2 (n-1)/n of the size over the time.
    assert points[1].busbw_Bps is not None
    assert points[1].busbw_Bps.value == pytest.approx(1.75 * 2**20 / 130e-6)
