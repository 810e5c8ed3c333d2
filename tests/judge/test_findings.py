"""Findings as values: their places, their order, how they are counted, and those that are stored."""

import pytest

from busbw.facts.rules import finding
from busbw.model import codec
from busbw.model.finding import FilePlace, Finding, by_place, counts_of, quoted_lines
from busbw.store.outcome import read_run

from .explaining.tables import SAMPLES

SLIP = FilePlace(file="a:b.sh", line=12, column=5)


def at(place: FilePlace | None, code: str = "ENV001") -> Finding:
    return finding(code, evidence="seen", place=place, reason="it is long")


@pytest.mark.parametrize(
    ("place", "spelled"), [(SLIP, "a:b.sh:12:5"), (FilePlace(file="job.log", line=3), "job.log:3")]
)
def test_a_place_is_spelled_as_editors_read_it(place: FilePlace, spelled: str) -> None:
    assert str(place) == spelled


def test_findings_are_in_the_order_of_the_file_by_numbers() -> None:
    places = (None, FilePlace(file="a", line=2), FilePlace(file="a", line=2, column=9), FilePlace(file="a", line=10))

    assert [each.place for each in sorted(map(at, reversed(places)), key=by_place)] == list(places)


def test_a_place_is_a_value_in_json() -> None:
    stored = codec.encode(at(SLIP))

    assert b'"where":{"file":"a:b.sh","line":12,"column":5}' in stored
    assert codec.decode(stored, Finding, where="test") == at(SLIP)


@pytest.mark.parametrize("name", ["four-h200", "four-h200-p2p-off"])
def test_findings_of_runs_that_were_stored_before_places_were_values_are_read(name: str) -> None:
    assert b'"where": null' in (SAMPLES / name / "run.json").read_bytes()

    run = read_run(SAMPLES / name)

    assert run is not None
    assert run.findings
    assert {each.place for each in run.findings} == {None}


def test_lines_are_quoted_once_and_only_where_they_are() -> None:
    found = [at(FilePlace(file=file, line=line)) for file, line in (("f", 2), ("f", 2), ("f", 9), ("f", 0), ("g", 1))]

    assert [(each.number, each.text) for each in quoted_lines(found, {"f": ["one", "two\r"]})] == [(2, "two")]


def test_findings_are_counted_by_severity() -> None:
    counts = counts_of(each for each in (at(None), at(SLIP)))

    assert counts.errors + counts.warnings + counts.notes == 2
