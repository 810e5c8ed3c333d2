"""`busbw scaling --predict`: what is predicted stands beside what was measured, and changes nothing of it."""

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from busbw.api.predicting.lines import AskedBands, with_predictions
from busbw.api.predictions import PredictRequest, predict
from busbw.api.scaling_reports import ScalingRequest, scaling
from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.judge.scaling.collective import collective_view
from busbw.machine.named import platform
from busbw.model import codec
from busbw.model.scaling import Observation, PredictedPoint, ScalingReport
from busbw.show.figures.scaling import scaling_figures
from busbw.show.page.panels import scaling_svg
from busbw.show.scaling_words import prediction_words

from .observed import GiB, measured

ID = "azure-nd-h100-v5"
TABLE = """nodes,gpus,busbw_GBps,series,collective,size
32,256,350,NCCL,all_reduce,8G
64,512,200,NCCL,all_reduce,8G
396,3168,399,NCCL,all_reduce,8G
32,256,440,NCCL+SHARP,all_reduce,8G
64,512,460,NCCL+SHARP,all_reduce,8G
"""


def run(*arguments: str) -> str:
    return CliRunner().invoke(busbw, ["scaling", *arguments], catch_exceptions=False).stdout


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("predicted") / "table.csv"
    path.write_text(TABLE)
    return str(path)


@pytest.fixture(scope="module")
def report(table: str) -> ScalingReport:
    return scaling(ScalingRequest(sources=(table,), platform=ID, predict=True))


def at_one(nodes: int = 4, asked: AskedBands | None = None, **changes: object) -> PredictedPoint:
    """Return what is predicted for one result on nodes of a known platform."""
    here: tuple[Observation, ...] = (measured(nodes, 300.0, **({"platform": ID} | changes)),)
    view = collective_view(here, axis="nodes", size_bytes=GiB)
    (line,) = with_predictions(view, here, asked or AskedBands()).predictions
    return line.points[0]


def test_it_is_what_predict_says_and_the_verdict_is_as_without_it(table: str, report: ScalingReport) -> None:
    (view,) = report.views
    plain, sharp = view.predictions
    rows = predict(
        PredictRequest(collective="all_reduce", platform=ID, nodes=(32, 64, 396), sizes_bytes=(8 * GiB,))
    ).rows
    assert [point.call for point in plain.points] == [row.expected for row in rows]
    assert [point.is_inside for point in plain.points] == [True, False, True]
    assert all(point.call is None and "SHARP" in (point.cannot or "") for point in sharp.points)
    without = scaling(ScalingRequest(sources=(table,), platform=ID))
    assert (report.verdict, report.findings) == (without.verdict, without.findings)
    assert replace(view, predictions=()) == without.views[0]


def test_the_text_has_columns_beside_the_measured_ones_and_says_what_they_rest_on(table: str) -> None:
    shown = run(table, "--platform", ID, "--predict")
    lines = {line.split()[0]: line for line in reversed(shown.splitlines()) if line.strip()[:2] in ("32", "64", "39")}
    assert "predicted" in shown
    assert lines["32"].endswith("inside")
    assert lines["64"].endswith("below")
    assert "cannot tell" in shown.split("+ NCCL+SHARP\n")[1]
    words = " ".join(shown.split())
    assert f"NCCL: predicted for {ID}, not measured, and no verdict rests on it: 2 of 3 measured points inside" in words
    assert "NCCL: predicted in family: nvlstree" in words
    assert "NCCL: predicted at 396: extrapolated: 396 nodes" in words
    assert "NCCL+SHARP: predicted: cannot tell: SHARP" in words
    assert "predicted" not in run(table, "--platform", ID)


def test_json_keeps_it_apart_and_csv_has_columns_of_its_own(table: str, report: ScalingReport) -> None:
    printed = run(table, "--platform", ID, "--predict", "--json")
    assert codec.decode(printed.encode(), ScalingReport, where="output") == report
    rows = list(csv.DictReader(io.StringIO(run(table, "--platform", ID, "--predict", "--csv"))))
    assert [row["is_inside"] for row in rows] == ["true", "false", "true", "", ""]
    assert float(rows[0]["busbw_Bps"]) == 350e9
    assert float(rows[0]["predicted_low_Bps"]) < float(rows[0]["predicted_Bps"]) < float(rows[0]["predicted_high_Bps"])


def test_the_figure_lays_the_interval_under_the_line_and_leaves_a_gap(report: ScalingReport) -> None:
    (view,) = report.views
    plain, _ = view.predictions
    (figure,) = scaling_figures(report.views)
    traces = figure.reached["data"]
    names = [trace["name"] for trace in traces]
    assert names.index("NCCL: predicted, 90 %") < names.index("NCCL")
    band = next(trace for trace in traces if trace["name"] == "NCCL: predicted, 90 %")
    calls = [point.call for point in plain.points if point.call is not None]
    assert band["y"][:3] == pytest.approx([call.high_Bps / 1e9 for call in calls], rel=1e-5)
    assert band["y"][:2:-1] == pytest.approx([call.low_Bps / 1e9 for call in calls], rel=1e-5)
    assert not any(name.startswith("NCCL+SHARP: predicted") for name in names)
    assert figure.headings[-3:] == ("predicted (GB/s)", "90 %", "measured")
    assert set(prediction_words(view)) <= set(figure.notes)

    gap = replace(plain, points=(plain.points[0], replace(plain.points[1], call=None), plain.points[2]))
    (broken,) = scaling_figures((replace(view, predictions=(gap,)),))
    bands = [trace for trace in broken.reached["data"] if trace.get("fill") == "toself"]
    # One point alone is a short column.
    assert [len(trace["x"]) for trace in bands] == [4, 4]
    assert [trace["showlegend"] for trace in bands] == [True, False]
    assert "predicted, 90 %" in (scaling_svg(report.views, "dark") or "")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"platform": None}, "which platform it was measured on is not told: --platform ID"),
        ({"platform": "nowhere"}, "nowhere"),
        ({"settings": {"tool": "osu"}}, "it was measured over MPI (osu)"),
        ({"settings": {"tool": "nvshmem-perftest"}}, "it was measured over NVSHMEM"),
        ({"settings": {"NCCL_IB_DISABLE": "1"}}, "data went over sockets"),
        ({"settings": {"NCCL_P2P_DISABLE": "1"}}, "data went through the memory of the host"),
        ({"settings": {"NCCL_COLLNET_ENABLE": "1"}}, "(SHARP)"),
        ({"settings": {"NCCL_NVLS_ENABLE": "0"}}, "which algorithm ran is not told"),
        ({"settings": {"algorithm": "Ring,Tree"}}, "several algorithms ran: Ring,Tree"),
        ({"settings": {"algorithm": "SYMK_LL"}}, "it ran by SYMK_LL"),
        ({"conditions": {"pair": "two ranks"}}, "two ranks alone"),
        ({"conditions": {"collective": "alltoallv"}}, "alltoallv"),
        ({"ranks": 33}, "33 ranks are no whole number"),
        ({"ranks": 4 * 9}, "GPUs"),
    ],
)
def test_where_it_cannot_tell_it_says_why(changes: dict[str, object], why: str) -> None:
    point = at_one(**changes)
    assert point.call is None
    assert point.is_inside is None
    assert why in (point.cannot or "")


def test_of_an_alltoall_between_nodes_it_says_that_no_document_has_one(tmp_path: Path) -> None:
    path = tmp_path / "experts.csv"
    path.write_text(TABLE.splitlines()[0] + "\n2,16,80,NCCL,alltoall,1G\n8,64,20,NCCL,alltoall,1G\n")
    found = scaling(ScalingRequest(sources=(str(path),), platform=ID, predict=True))
    words = " ".join(prediction_words(found.views[0]))
    assert "predicted across: linear, no document has alltoall between nodes" in words
    assert "1 of 2 measured points inside the 90 % interval, not at 8" in words
    (line,) = found.views[0].predictions
    assert [point.call.widened for point in line.points] == [1.5 * 1.5, 1.5 * 2.5]


def test_the_algorithm_that_ran_is_predicted_and_that_asked_for_goes_before() -> None:
    ran = at_one(settings={"algorithm": "Ring", "NCCL_NVLS_ENABLE": "0"})
    assert ran.call is not None
    assert (ran.call.algorithm, ran.chosen_by) == ("ring", "as it ran")
    asked = at_one(asked=AskedBands(algorithm="tree"), settings={"algorithm": "Ring"})
    assert asked.call is not None
    assert (asked.call.algorithm, asked.chosen_by) == ("tree", "as asked for")


def test_what_ran_at_another_size_of_a_run_says_nothing_of_this_one() -> None:
    large = measured(4, 300.0, platform=ID, settings={"algorithm": "Ring"})
    small = measured(4, 3.0, platform=ID, settings={"algorithm": "Tree"}, size_bytes=2**20)
    view = collective_view((large, small), axis="nodes", size_bytes=GiB)
    (line,) = with_predictions(view, (large, small), AskedBands()).predictions
    (point,) = line.points
    assert point.call is not None
    assert point.call.algorithm == "ring"


def test_a_platform_that_is_asked_for_is_not_laid_beside_another() -> None:
    other = AskedBands(platform=platform("azure-ndv4").platform, name="azure-ndv4")
    assert at_one(asked=other).cannot == f"it was measured on {ID}, not on azure-ndv4"
    assert at_one(asked=other, platform=None).call is not None


def test_of_published_results_the_platform_is_known() -> None:
    (view,) = scaling(ScalingRequest(published="coreweave-h100", predict=True)).views
    (line,) = view.predictions
    assert line.platform == "coreweave-h100"
    assert [point.call is not None for point in line.points] == [True]


def test_it_is_for_collectives(tmp_path: Path) -> None:
    times = tmp_path / "times.csv"
    times.write_text("nodes,time_s\n1,8\n2,5\n")
    with pytest.raises(InputError, match="--predict is for collectives"):
        scaling(ScalingRequest(sources=(str(times),), predict=True))
