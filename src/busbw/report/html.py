"""Runs as one HTML file that needs nothing else: no network, no other file.

What is large is packed (gzip, base64) and unpacked by the page when it is looked at: the program that draws, the
figures, and, where there are several runs, what the page says of each.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from busbw import __version__, codec
from busbw.model.comparison import Comparison
from busbw.model.scaling import Scaling
from busbw.report import assets, words
from busbw.report.columns import us
from busbw.report.comparison_figures import CLAIM_WORDS, versus_figures
from busbw.report.figures import BASIS_WORDS, Figure
from busbw.report.overview import overview_of, overview_sentence
from busbw.report.palette import style_sheet
from busbw.report.scaling_figures import scaling_figures
from busbw.report.section import section_of
from busbw.report.spread import rank_numbers
from busbw.report.subject import Subject
from busbw.units import format_rate, format_size, format_time

# A ticket system takes attachments of this size. Raw data that would go beyond stay in the folders of the runs.
_LARGEST_BYTES = 6_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """The JSON of one run; None where it is left out."""

    place: int
    run_id: str
    size_bytes: int
    json: Markup | None


def report_html(
    subjects: Sequence[Subject], comparison: Comparison | None = None, scaling: Sequence[Scaling] = ()
) -> str:
    """Return the report of one run or of several, of a comparison, of scaling, or of all of them; of something."""
    environment = _environment()
    values: dict[str, Any] = {
        "section": None,
        "overview": None,
        "comparison": comparison,
        "versus": versus_figures(comparison) if comparison is not None else (),
        "claim_words": CLAIM_WORDS,
        "scaling": scaling_figures(scaling),
    }
    figures = {each.key: each.figure for each in values["versus"]}
    for view in values["scaling"]:
        figures[f"{view.key}-reached"] = view.reached
        figures |= {f"{view.key}-share": view.share} if view.share is not None else {}
    if len(subjects) == 1:
        section = section_of(subjects[0], prefix="", level=2)
        values |= {
            "section": section.values,
            "body": Markup(environment.get_template("run.html.j2").render(section.values)),  # noqa: S704  by Jinja
        }
        payloads = [_payload("payload", figures | section.figures, section.ranks)]
    elif subjects:
        overview = overview_of(subjects)
        values |= {"overview": overview}
        for joint in overview.joints:
            figures |= {f"{joint.key}-time": joint.time, f"{joint.key}-busbw": joint.busbw}
        payloads = [_payload("payload", figures, []), *_each_run(environment, subjects)]
    else:
        payloads = [_payload("payload", figures, [])]
    return _page(environment, subjects, values | {"payloads": payloads, "title": _title(subjects, comparison)})


def _title(subjects: Sequence[Subject], comparison: Comparison | None) -> str:
    if len(subjects) == 1:
        run = subjects[0].run
        return f"{words.OUTCOMES[run.verdict.outcome].word}: busbw {run.plan.run_id} on {run.plan.host.name}"
    if subjects:
        return f"busbw: {overview_sentence(subjects)}"
    return "busbw compare" if comparison is not None else "busbw scaling"


def _each_run(environment: Environment, subjects: Sequence[Subject]) -> Iterator[tuple[str, Markup]]:
    """Yield what the page says of each run, as a payload that it unpacks when the run is opened."""
    for place, subject in enumerate(subjects, start=1):
        section = section_of(subject, prefix=f"run-{place}-", level=3)
        html = environment.get_template("run.html.j2").render(section.values)
        yield _payload(f"run-{place}-payload", section.figures, section.ranks, html)


def _payload(
    name: str, figures: dict[str, Figure], ranks: list[dict[str, Any]], html: str | None = None
) -> tuple[str, Markup]:
    return name, assets.packed(msgspec.json.encode({"figures": figures, "ranks": ranks, "html": html}))


def _page(environment: Environment, subjects: Sequence[Subject], values: dict[str, Any]) -> str:
    """Return the page with as much raw data as fits beside everything else."""
    values |= {
        "version": __version__,
        "plotly": assets.plotly(),
        "style": Markup(style_sheet()) + assets.inlined("report.css"),  # noqa: S704  no more than colours
        "script": assets.inlined(assets.SCRIPT),
        "script_policy": assets.script_policy(),
    }
    template = environment.get_template("report.html.j2")
    room_bytes = _LARGEST_BYTES - len(template.render(values | {"raws": ()}).encode())
    return template.render(values | {"raws": _raws(subjects, room_bytes)})


def _raws(subjects: Sequence[Subject], room_bytes: int) -> tuple[Raw, ...]:
    raws: list[Raw] = []
    for place, subject in enumerate(subjects, start=1):
        json = assets.embedded(codec.encode(subject.run))
        fits = len(json) <= room_bytes
        room_bytes -= len(json) if fits else 0
        raws.append(Raw(place=place, run_id=subject.run.plan.run_id, size_bytes=len(json), json=json if fits else None))
    return tuple(raws)


def _environment() -> Environment:
    made = assets.environment()
    made.filters |= {
        "size": format_size,
        "duration": format_time,
        "rate": format_rate,
        "us": us,
        "numbers": words.numbers_words,
        "shell": shlex.join,
        "quoted": shlex.quote,
        "point": words.point_name,
        "tail": words.tail_words,
        "rest": words.verdict_rest,
    }
    made.globals |= {
        "ended_words": words.ENDED_WORDS,
        "basis_words": BASIS_WORDS,
        "rank_numbers": rank_numbers,
        "outcome_table": words.OUTCOMES,
    }
    return made
