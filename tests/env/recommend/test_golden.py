"""What is recommended for each job, and what must hold of every recommendation.

After a wanted change: `GOLDEN=write python -m pytest tests/env/recommend`, then read the difference and commit it.
"""

import os
from functools import cache
from pathlib import Path

import pytest

from busbw.api.recommendations import GOALS
from busbw.env.lint import lint
from busbw.env.recommend import recommend
from busbw.env.rules.subject import CheckContext
from busbw.env.versions import default_in, known_in, parse_version
from busbw.facts.envvars import variables
from busbw.machine.named import platforms
from busbw.model.platform import Platform
from busbw.model.recommendation import Recommendation
from busbw.model.settings import Assignment, SettingsReading

from .jobs import JOBS, recommended

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = ("2.16.2", "2.18.3", "2.23.4", "2.28.9", "2.30.3", "2.32.3")
# Its default is smaller in releases that clusters still have.
NOT_BY_DEFAULT_EVERYWHERE = "FI_CXI_DEFAULT_CQ_SIZE"


def in_short(found: Recommendation) -> str:
    lines = []
    for each in found.settings:
        lines.append(f"{each.need:<11} {each.name}={each.value}")
        lines += [f"{'':<13}or {other.value} ({', '.join(other.source)})" for other in each.alternatives]
    lines += [f"with        {each.option}" for each in found.launch]
    lines += [f"{each.kind:<11} {each.name}={each.value}" for each in found.left_out]
    lines += [f"cannot tell {words}" for words in found.cannot_tell]
    return "\n".join(lines) + "\n"


def assert_sound(found: Recommendation, platform: Platform) -> None:
    """Check what must hold of any recommendation: its names are read, change something, and have a reason."""
    version = parse_version(found.nccl)
    names = [each.name for each in found.settings]
    assert len(set(names)) == len(names)
    assert not set(names) & {each.name for each in found.left_out}
    for each in found.settings:
        variable = variables()[each.name]
        assert each.reason
        assert each.source
        if variable.owner == "NCCL":
            assert known_in(variable, version) == "yes", each
            assert default_in(variable, version) != each.value, each
        elif variable.checked != "recipe" and each.name != NOT_BY_DEFAULT_EVERYWHERE:
            assert variable.default != each.value, each
        assert each.name != "NCCL_TOPO_FILE" or any("topo check" in check for check in each.checks)
        assert all(other.value != each.value for other in each.alternatives)
    assert all(each.reason and each.source for each in found.left_out)
    cited = {source for each in (*found.settings, *found.left_out) for source in each.source}
    assert cited <= {source.id for source in found.sources}
    assert_lints(found, platform)


def assert_lints(found: Recommendation, platform: Platform) -> None:
    settings = found.env()
    reading = SettingsReading(
        file="environment",
        language="environment",
        assignments=tuple(
            Assignment(
                name=name, value=value, written=value, form="environment", file="environment", line=line, column=1
            )
            for line, (name, value) in enumerate(settings.items(), start=1)
        ),
        lines=tuple(f"{name}={value}" for name, value in settings.items()),
    )
    context = CheckContext(platform=platform, nccl=parse_version(found.nccl), nodes=found.nodes)
    assert not [each for each in lint(reading, context) if each.severity != "note"]


@cache
def everything() -> tuple[Platform, ...]:
    return tuple(each.platform for each in platforms())


@pytest.mark.parametrize("job", JOBS)
def test_the_recommendation_is_as_it_was(job: str):
    found = recommended(job)
    text = in_short(found)
    file = GOLDEN / f"{job}.txt"
    if os.environ.get("GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")

    assert text == file.read_text(encoding="utf-8")
    assert_sound(found, next(each for each in everything() if each.id == found.platform))


@pytest.mark.parametrize("platform", everything(), ids=lambda each: each.id)
def test_every_recommendation_is_sound(platform: Platform):
    for goal in GOALS:
        for nccl in VERSIONS:
            for nodes in (2,) if goal == "sharp" else (1, 2):
                found = recommend(platform, nodes=nodes, goal=goal, nccl=nccl, siblings=everything())

                assert_sound(found, platform)


@pytest.mark.parametrize("platform", everything(), ids=lambda each: each.id)
def test_whoever_is_followed_the_recommendation_is_read_and_changes_something(platform: Platform):
    known = recommend(platform, siblings=everything()).followable

    for source in known:
        found = recommend(platform, follow=source, siblings=everything())
        version = parse_version(found.nccl)
        assert found.follow == source
        for each in found.settings:
            variable = variables()[each.name]
            assert variable.owner != "NCCL" or known_in(variable, version) == "yes"
            assert variable.owner != "NCCL" or default_in(variable, version) != each.value
