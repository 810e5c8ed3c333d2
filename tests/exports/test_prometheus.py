"""What is written is Prometheus' text format by its grammar, and every gauge is what the run holds."""

import re
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.show.exports.prometheus import prometheus_text
from busbw.show.exports.rows import export_of_run

from .factories import HOSTILE, make_run

# https://prometheus.io/docs/instrumenting/exposition_formats/, text format 0.0.4.
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
HELP = re.compile(rf"# HELP ({NAME}) (?:[^\\\n]|\\\\|\\n)*")
TYPE = re.compile(rf"# TYPE ({NAME}) gauge")
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL})(?:,{LABEL})*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)")
BASE_UNITS = ("_seconds", "_bytes_per_second", "_per_second", "_samples", "_elements", "_info", "_verdict", "_points")


@dataclass
class Gauge:
    """One family as a strict reader takes it: labels, then value."""

    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)


def parse(text: str) -> dict[str, Gauge]:
    """Return the families of a document; fails where it is not of the format, or not what node_exporter takes."""
    assert text.endswith("\n")
    families: dict[str, Gauge] = {}
    current, typed = "", False
    for line in text[:-1].split("\n"):
        if found := HELP.fullmatch(line):
            assert found[1] not in families, f"{found[1]} comes twice"
            current, typed = found[1], False
            families[current] = Gauge()
        elif found := TYPE.fullmatch(line):
            assert found[1] == current, line
            assert not typed, line
            typed = True
        else:
            found = SAMPLE.fullmatch(line)
            assert found is not None, f"not a sample, or with a timestamp: {line!r}"
            assert typed, line
            assert found[1] == current, line
            labels = tuple((label[1], unescaped(label[2])) for label in re.finditer(LABEL, found[2] or ""))
            assert len(dict(labels)) == len(labels), f"a label twice: {line}"
            key = tuple(sorted(labels))
            assert key not in families[current].samples, f"the same series twice: {line}"
            families[current].samples[key] = float(found[7])
    return families


def unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], value)


def test_the_grammar_of_this_test_refuses_what_is_wrong():
    good = '# HELP a b\n# TYPE a gauge\na{x="1"} 2\n'
    assert parse(good)["a"].samples == {(("x", "1"),): 2.0}

    for bad in (
        good.removesuffix("\n"),
        good + 'a{x="1"} 3\n',
        good.replace(" 2\n", " 2 1700000000000\n"),
        good.replace('"1"', '"1"2"'),
        good.replace('"1"', '"\\t"'),
        good.replace("# TYPE a gauge\n", ""),
        good + good,
    ):
        with pytest.raises(AssertionError):
            parse(bad)


def test_every_family_is_documented_in_base_units():
    families = parse(prometheus_text(export_of_run(make_run())))

    assert len(families) > 12
    for name, family in families.items():
        assert name.startswith("busbw_")
        assert name.endswith(BASE_UNITS), name
        assert family.samples, name


def test_gauges_hold_what_the_run_holds():
    run = make_run()

    families = parse(prometheus_text(export_of_run(run)))

    times_s = {dict(labels)["collective"] + dict(labels)["size_bytes"] + dict(labels)["in_place"]: value
               for labels, value in families["busbw_time_seconds"].samples.items()}  # fmt: skip
    for item in run.measurements:
        key = f"{item.collective}{item.size_bytes}{str(item.in_place).lower()}"
        assert times_s.get(key) == (item.median_s if item.wrong is None else None)
    rates = families["busbw_bus_bandwidth_bytes_per_second"].samples.values()
    assert sorted(rates) == sorted(item.busbw_Bps for item in run.measurements if item.wrong is None)


def test_wrong_and_missing_points_are_counted_and_have_no_time():
    families = parse(prometheus_text(export_of_run(make_run())))

    assert {dict(labels)["state"]: value for labels, value in families["busbw_run_points"].samples.items()} == {
        "right": 6,
        "unverified": 1,
        "wrong": 1,
        "missing": 1,
    }
    assert sorted(families["busbw_wrong_elements"].samples.values()) == [0] * 6 + [1]
    assert len(families["busbw_time_seconds"].samples) == 7


def test_exactly_one_verdict_is_1():
    verdicts = parse(prometheus_text(export_of_run(make_run(outcome="slow"))))["busbw_run_verdict"].samples

    assert len(verdicts) == 5
    assert [dict(labels)["verdict"] for labels, value in verdicts.items() if value == 1] == ["slow"]


def test_the_age_of_a_run_can_be_told():
    samples = parse(prometheus_text(export_of_run(make_run())))["busbw_run_created_timestamp_seconds"].samples

    assert list(samples.values()) == [1767225600.0]


def test_hostile_words_stay_in_their_label():
    families = parse(prometheus_text(export_of_run(make_run(tag=HOSTILE))))

    (labels,) = families["busbw_run_info"].samples
    assert dict(labels)["tag"] == HOSTILE.replace("\t", "\\t").replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")


@given(st.text(st.characters(exclude_categories=("C", "Zl", "Zp"), include_characters="\n"), min_size=1))
def test_every_tag_that_can_be_shown_comes_back(tag: str):
    (labels,) = parse(prometheus_text(export_of_run(make_run(tag=tag))))["busbw_run_info"].samples

    assert dict(labels)["tag"] == tag
