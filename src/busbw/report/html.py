"""Runs as one HTML file that needs nothing else: no network, no other file.

What is large is packed (gzip, base64) and unpacked by the page when it is looked at: the program that draws, the
figures, and, where there are several runs, what the page says of each.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from busbw import codec
from busbw.report import assets, words
from busbw.report.columns import us
from busbw.report.figures import BASIS_WORDS
from busbw.report.overview import overview_of
from busbw.report.palette import style_sheet
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


def report_html(subjects: Sequence[Subject]) -> str:
    """Return the report of one run or of several; at least one."""
    environment = _environment()
    return _single(environment, subjects[0]) if len(subjects) == 1 else _several(environment, subjects)


def _single(environment: Environment, subject: Subject) -> str:
    section = section_of(subject, prefix="", level=2)
    plan = subject.run.plan
    payload = assets.packed(msgspec.json.encode({"figures": section.figures, "ranks": section.ranks}))
    return _page(
        environment,
        (subject,),
        {
            "title": f"{section.values['outcome_words'].word}: busbw {plan.run_id} on {plan.host.name}",
            "section": section.values,
            "body": Markup(environment.get_template("run.html.j2").render(section.values)),  # noqa: S704  by Jinja
            "payloads": (("payload", payload),),
        },
    )


def _several(environment: Environment, subjects: Sequence[Subject]) -> str:
    overview = overview_of(subjects)
    joint = {
        f"{each.key}-{kind}": figure
        for each in overview.joints
        for kind, figure in (("time", each.time), ("busbw", each.busbw))
    }
    payloads = [("payload", assets.packed(msgspec.json.encode({"figures": joint, "ranks": []})))]
    for row, subject in zip(overview.rows, subjects, strict=True):
        section = section_of(subject, prefix=f"run-{row.place}-", level=3)
        html = environment.get_template("run.html.j2").render(section.values)
        inside = {"figures": section.figures, "ranks": section.ranks, "html": html}
        payloads.append((f"run-{row.place}-payload", assets.packed(msgspec.json.encode(inside))))
    return _page(
        environment,
        subjects,
        {
            "title": f"busbw: {overview.sentence}",
            "section": None,
            "overview": overview,
            "payloads": tuple(payloads),
        },
    )


def _page(environment: Environment, subjects: Sequence[Subject], values: dict[str, Any]) -> str:
    """Return the page with as much raw data as fits beside everything else."""
    values |= {
        "version": subjects[0].run.plan.busbw_version,
        "plotly": assets.packed(assets.plotly()),
        "style": Markup(style_sheet()) + assets.inlined("report.css"),  # noqa: S704  no more than colours
        "script": assets.inlined("report.js"),
    }
    template = environment.get_template("report.html.j2")
    room = _LARGEST_BYTES - len(template.render(values | {"raws": ()}).encode())
    return template.render(values | {"raws": _raws(subjects, room)})


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
    }
    made.globals |= {"ended_words": words.ENDED_WORDS, "basis_words": BASIS_WORDS, "rank_numbers": rank_numbers}
    return made
