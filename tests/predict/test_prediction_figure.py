"""A prediction drawn: its figures hold what its JSON says, measured points stand apart, other files are refused."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.warm import warm_busbw

from busbw.api.predictions import PredictRequest, predict
from busbw.model import codec
from busbw.model.predict.prediction import Prediction
from busbw.show.figures.prediction import MOST_CURVES, prediction_figures
from busbw.show.page.panels import prediction_svg


@pytest.fixture(scope="module")
def found() -> Prediction:
    sizes = (2**20, 2**28, 2**34)
    asked = PredictRequest(collective="all_reduce", platform="azure-nd-h100-v5", nodes=(4, 64), sizes_bytes=sizes)
    return predict(asked)


def test_curves_lie_in_their_band_under_their_bound_and_measured_points_are_no_part_of_them(found: Prediction) -> None:
    against_size, against_nodes, parts, worth = prediction_figures(found)
    band, bound, line = against_size.figure["data"][:3]
    elsewhere = against_size.figure["data"][-1]

    rows = [row.expected for row in found.rows if row.expected is not None and row.nodes == 4]
    assert line["y"] == pytest.approx([call.busbw_Bps / 1e9 for call in rows], rel=1e-5)
    high, low = band["y"][:3], band["y"][:2:-1]
    assert all(a < b < c <= d for a, b, c, d in zip(low, line["y"], high, bound["y"], strict=True))
    assert (elsewhere["name"], elsewhere["mode"]) == ("measured elsewhere", "markers")
    measured = {each.busbw_Bps / 1e9 for each in found.elsewhere if each.nodes in (4, 64)}
    assert {round(value, 3) for value in elsewhere["y"]} <= {round(value, 3) for value in measured}
    assert against_nodes.figure["data"][2]["x"] == [4, 64]
    # Areas lie on each other, up to all of the time.
    assert parts.figure["data"][-1]["y"][:3] == pytest.approx([100, 100, 100], rel=1e-4)
    assert worth.figure["data"][0]["name"].startswith("1 rate of a NIC: -10")


def test_without_measured_points_inputs_or_a_second_number_of_nodes_their_marks_are_left_out(found: Prediction) -> None:
    bare = replace(found, rows=found.rows[:1], elsewhere=(), sensitivity=None)

    first, parts = prediction_figures(bare)

    assert "measured elsewhere" not in [trace["name"] for trace in first.figure["data"]]
    assert parts.title == "where the time goes: 4 nodes, predicted"
    assert prediction_svg(bare, "dark")


def test_more_nodes_than_colours_are_said_to_be_left_out_against_size(found: Prediction) -> None:
    first = found.rows[0]
    assert first.expected is not None
    rows = tuple(
        replace(first, nodes=nodes, expected=replace(first.expected, nodes=nodes))
        for nodes in range(2, MOST_CURVES + 4)
    )

    against_size, against_nodes, *_ = prediction_figures(replace(found, rows=rows, elsewhere=()))

    assert against_size.title.endswith("of 2, 3, 4, 5, 6, 7, 8, 9 nodes")
    assert len(against_nodes.figure["data"][2]["x"]) == MOST_CURVES + 2


@pytest.mark.parametrize("dark", [(), ("--dark",)])
def test_the_verb_draws_it(found: Prediction, tmp_path: Path, dark: tuple[str, ...]) -> None:
    (tmp_path / "p.json").write_bytes(codec.encode_pretty(found))

    done = warm_busbw("plot", "--prediction", "p.json", *dark, "-o", "p.svg", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "wrote p.svg\n")
    assert "busbw predict: all_reduce on azure-nd-h100-v5" in (tmp_path / "p.svg").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"views": [], "verdict": null}', "it is what busbw scaling --json wrote"),
        ("", "this is not a prediction of sizes: Input data was truncated"),
    ],
)
def test_another_file_is_refused_and_named(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "p.json").write_text(content)

    done = warm_busbw("plot", "--prediction", "p.json", "-o", "p.svg", cwd=tmp_path)

    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 4
    assert not (tmp_path / "p.svg").exists()


def test_where_nothing_is_predicted_nothing_is_drawn(found: Prediction, tmp_path: Path) -> None:
    nothing = replace(found, rows=(replace(found.rows[0], expected=None, cannot="no data"),))
    (tmp_path / "p.json").write_bytes(codec.encode_pretty(nothing))

    done = warm_busbw("plot", "--prediction", "p.json", "-o", "p.svg", cwd=tmp_path)

    assert done.returncode == 2
    assert "nothing is predicted" in done.stderr
