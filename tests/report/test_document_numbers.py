"""Numbers of JSON documents that cannot be are refused by their place, and whatever is let through can be drawn."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.warm import warm_busbw

from busbw.api import reports
from busbw.api.predictions import PredictRequest, predict
from busbw.base.errors import InputError
from busbw.model import codec
from busbw.show.page.panels import comparison_svg, prediction_svg, scaling_svg

from .valued import make_comparison, make_scaling

STEP_PLAN = Path(__file__).parents[2] / "docs" / "data" / "step-plan.json"
SIZES = (2**20, 2**30)
ASKED = PredictRequest(collective="all_reduce", platform="azure-nd-h100-v5", nodes=(4, 64), sizes_bytes=SIZES)
TEXTS = {
    "prediction": codec.encode(predict(ASKED)).decode(),
    "comparison": codec.encode(make_comparison()).decode(),
    "scaling": codec.encode(make_scaling()).decode(),
    "step": STEP_PLAN.read_text(),
}
READERS = {name: getattr(reports, name) for name in TEXTS}


def read(tmp_path: Path, name: str, text: str) -> Any:
    (tmp_path / "file.json").write_text(text)
    return READERS[name](tmp_path / "file.json")


def changed(name: str, place: tuple[str | int, ...], value: object) -> str:
    """Return a document with another value at a place."""
    document = json.loads(TEXTS[name])
    inner = document
    for each in place[:-1]:
        inner = inner[each]
    inner[place[-1]] = value
    return json.dumps(document)


EXPECTED = ("rows", 0, "expected")
POINT = ("versus", 0, "points", 0)
PLACED = ("views", 0, "series", 0, "points", 0, "busbw_Bps")


@pytest.mark.parametrize("name", TEXTS)
def test_what_the_commands_write_is_read(tmp_path: Path, name: str) -> None:
    read(tmp_path, name, TEXTS[name])


@pytest.mark.parametrize(
    ("name", "place", "value", "said"),
    [
        ("prediction", (*EXPECTED, "time_s"), -1, r"rows\[0\].expected.time_s is -1, and must be more than 0"),
        ("prediction", (*EXPECTED, "time_s"), 0, "must be more than 0"),
        ("prediction", (*EXPECTED, "wire_s"), -1e-9, "wire_s is -1e-09, and must not be less than 0"),
        ("prediction", (*EXPECTED, "nodes"), 0, "nodes is 0"),
        ("prediction", (*EXPECTED, "size_bytes"), -8, "size_bytes is -8"),
        ("prediction", (*EXPECTED, "low_Bps"), 1e15, r"rows\[0\].expected.low_Bps is 1e\+15, above busbw_Bps"),
        ("prediction", (*EXPECTED, "high_Bps"), 1, "high_Bps is 1, below busbw_Bps"),
        ("prediction", (*EXPECTED, "bound_Bps"), -1, "bound_Bps is -1"),
        ("comparison", (*POINT, "first_s"), -1, r"versus\[0\].points\[0\].first_s is -1"),
        ("comparison", (*POINT, "estimate", "ratio"), 0, "ratio is 0, and must be more than 0"),
        ("comparison", (*POINT, "estimate", "low"), 9, "estimate.low is 9, above ratio"),
        ("comparison", (*POINT, "estimate", "confidence"), 95, "confidence is 95, and must be from 0 to 1"),
        ("comparison", ("false_claims",), -0.05, "false_claims is -0.05"),
        ("scaling", (*PLACED, "value"), -1, r"busbw_Bps.value is -1, and must not be less than 0"),
        ("scaling", (*PLACED, "high"), 1, "busbw_Bps.high is 1, below value"),
        ("scaling", (*PLACED[:-1], "nodes"), -2, "nodes is -2"),
        ("step", ("step_flops",), -1, "step_flops is -1"),
        ("step", ("memory", 0, "size_bytes"), -1, r"memory\[0\].size_bytes is -1"),
    ],
)
def test_a_number_that_cannot_be_is_refused_by_its_place(
    tmp_path: Path, name: str, place: tuple[str | int, ...], value: float, said: str
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read(tmp_path, name, changed(name, place, value))

    assert caught.value.where == str(tmp_path / "file.json")
    assert caught.value.hint is not None


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e400"])
def test_what_is_no_number_of_json_is_refused(tmp_path: Path, text: str) -> None:
    whole = changed("prediction", (*EXPECTED, "time_s"), "here").replace('"here"', text)
    with pytest.raises(InputError, match=r"(malformed|out of range)"):
        read(tmp_path, "prediction", whole)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        # What a fit leaves open may reach below nothing, and a change is signed.
        ("scaling", (*PLACED, "low"), -1.0),
        ("scaling", ("views", 0, "differences", 0, "change"), {"value": -0.03, "low": -0.04, "high": None}),
        ("comparison", (*POINT, "estimate", "low"), None),
        ("prediction", (*EXPECTED, "filling_s"), 0.0),
        # OSU's least size.
        ("comparison", (*POINT, "size_bytes"), 0),
    ],
)
def test_what_may_be_is_read(tmp_path: Path, name: str, place: tuple[str | int, ...], value: object) -> None:
    read(tmp_path, name, changed(name, place, value))


def test_the_verb_names_the_field_and_draws_nothing(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(changed("prediction", (*EXPECTED, "time_s"), -1))

    done = warm_busbw("plot", "--prediction", "p.json", "-o", "p.svg", cwd=tmp_path)

    assert done.returncode == 2
    assert "rows[0].expected.time_s is -1" in done.stderr
    assert len(done.stderr.splitlines()) == 3
    assert not (tmp_path / "p.svg").exists()


def _numbers(inner: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the places of all numbers of a document."""
    if isinstance(inner, dict | list):
        for key, each in inner.items() if isinstance(inner, dict) else enumerate(inner):
            yield from _numbers(each, (*place, key))
    elif isinstance(inner, int | float) and not isinstance(inner, bool):
        yield place


DRAWN = {
    "prediction": lambda found: prediction_svg(found, "light"),
    "comparison": lambda found: comparison_svg(found, "light"),
    "scaling": lambda found: scaling_svg(found.views, "light"),
}
ODD = st.sampled_from([-1, 0, 1, -1e-300, 1e-300, 1e300, -1e300, 2**63 - 1, -(2**63), 0.5, 95])


@pytest.mark.parametrize("name", DRAWN)
def test_any_numbers_are_refused_or_drawn(tmp_path: Path, name: str) -> None:
    places = tuple(_numbers(json.loads(TEXTS[name])))

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(places), ODD)
    def one(place: tuple[str | int, ...], value: float) -> None:
        with suppress(InputError):
            svg = DRAWN[name](read(tmp_path, name, changed(name, place, value)))
            assert svg is None or ET.fromstring(svg) is not None

    one()
