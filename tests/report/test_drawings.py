"""Figures as SVG and PNG: well-formed, the same every time, told apart without colour, and deaf to markup."""

import struct
from xml.etree import ElementTree as ET

import pytest
from msgspec import structs

from busbw.show.figures.axes import COLOURS, STYLES
from busbw.show.figures.drawing import marker_element, png
from busbw.show.page.panels import FIGURE_NAMES, comparison_svg, runs_svg, scaling_svg
from busbw.show.page.pictures import placement_svg

from .factories import HOSTILE, make_empty_run, make_hostile_run, make_plan_of, make_run, subjects
from .valued import make_comparison, make_scaling

_SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{_SVG}text")]


# How each is drawn: nothing is, before a test asks.
DRAWINGS = {
    "one": lambda: runs_svg(subjects(make_run()), FIGURE_NAMES, "light"),
    "dark": lambda: runs_svg(subjects(make_run()), ("time",), "dark"),
    "several": lambda: runs_svg(subjects(*(make_run() for _ in range(12))), ("time", "busbw"), "light"),
    "hostile": lambda: runs_svg(subjects(make_hostile_run()), FIGURE_NAMES, "light"),
    "comparison": lambda: comparison_svg(make_comparison(HOSTILE), "light"),
    "scaling": lambda: scaling_svg(make_scaling(HOSTILE).views, "light"),
    "placement": lambda: placement_svg(make_hostile_run()),
}


@pytest.mark.parametrize("name", sorted(DRAWINGS))
def test_a_drawing_is_well_formed_and_has_nothing_that_runs_or_loads(name: str):
    svg = DRAWINGS[name]()
    assert svg is not None

    kinds = {element.tag.removeprefix(_SVG) for element in ET.fromstring(svg).iter()}

    assert kinds <= {"svg", "title", "style", "rect", "text", "path", "circle"}
    assert not any(character in svg for character in "\x1b\x9b\u202e")
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_the_same_run_is_drawn_the_same():
    assert DRAWINGS["one"]() == DRAWINGS["one"]()


def test_each_run_keeps_its_dash_and_marker_in_every_panel():
    first, second = make_run(make_plan_of("all_reduce", "alltoall")), make_run(make_plan_of("alltoall"))
    second = structs.replace(second, plan=structs.replace(second.plan, run_id="second"))

    svg = runs_svg(subjects(first, second), ("time",), "light")

    assert svg is not None
    colour = COLOURS["light"][STYLES[1][0]]
    # In its one panel the second run has its own colour and dash: its line, and its piece of the legend.
    assert svg.count(f'stroke="{colour}" stroke-width="2" stroke-dasharray="7 4"') == 2


def test_no_two_lines_share_dash_and_marker():
    assert len({(dash, marker) for _, dash, marker in STYLES}) == len(STYLES)
    assert len({colour for colour, _, _ in STYLES}) == len(STYLES)


def test_what_is_drawn_has_its_names_and_numbers_beside_it():
    svg = DRAWINGS["scaling"]()
    assert svg is not None

    assert {"SHARP off", "theoretical limit", "nodes", "busbw (GB/s)", "share of the limit (%)"} <= set(texts(svg))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_and_words_are_told_from_the_ground(theme: str):
    def luminance(colour: str) -> float:
        parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    colours = COLOURS[theme]  # type: ignore[index]
    ground = luminance(colours["--fig-paper"])
    lines = [colour for colour, _, _ in STYLES] + ["--fig-median", "--fig-busbw", "--fig-tail", "--fig-ceiling"]
    for name, least in [("--fig-text", 7.0), *((name, 3.0) for name in lines)]:
        high, low = sorted((luminance(colours[name]), ground), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= least, name


def test_nothing_measured_is_nothing_drawn():
    assert runs_svg(subjects(make_empty_run()), ("time",), "light") is None


def test_every_marker_has_a_shape():
    assert all(marker_element(marker, 0, 0, 7, "#000").startswith("<") for _, _, marker in STYLES)


def test_a_png_is_twice_as_large_as_its_drawing_counts():
    pytest.importorskip("resvg_py")
    svg = runs_svg(subjects(make_run(make_plan_of("all_reduce"))), ("time",), "light")
    assert svg is not None

    image = png(svg)

    assert image.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", image[16:24])
    drawn = ET.fromstring(svg)
    assert (width, height) == (2 * int(drawn.attrib["width"]), 2 * int(drawn.attrib["height"]))
