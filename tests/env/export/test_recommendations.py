"""What is recommended anywhere can be written in every form, is read back as it is, and lint has nothing against it."""

import re
from functools import cache

import pytest

from busbw.env.export import FORMS, export, export_text
from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.recommend import recommend
from busbw.env.rules.subject import CheckContext
from busbw.env.versions import parse_version
from busbw.facts.platforms import all_platforms
from busbw.model.platform import Platform
from busbw.model.recommendation import Recommendation
from busbw.model.request import Goal

from .test_forms import LANGUAGES

# With the nodes that each is for.
GOALS: dict[Goal, int] = {
    "bandwidth": 4,
    "latency": 2,
    "nvlink-check": 1,
    "nic-check": 1,
    "sharp": 2,
    "training": 16,
}
# Of settings for these, a check of one kind of link, lint says that the other is off: that is what they are for.
MEANT = {"nic-check": {"ENV088"}}


@cache
def platforms() -> tuple[Platform, ...]:
    return all_platforms()


@cache
def all_recommended(goal: Goal) -> tuple[tuple[Platform, Recommendation], ...]:
    """Return what is recommended on each platform: all forms are written from the same."""
    return tuple(
        (
            platform,
            recommend(
                platform,
                nodes=GOALS[goal],
                collective=None,
                size_bytes=None,
                goal=goal,
                follow=None,
                nccl=None,
                siblings=platforms(),
            ),
        )
        for platform in platforms()
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("goal", GOALS)
def test_every_recommendation_is_read_back_and_linted_clean(goal: Goal, form: str) -> None:
    written = 0
    for platform, made in all_recommended(goal):
        result = export(form, made)
        reading = read(result.text, f"settings for {platform.id}", LANGUAGES[form])
        found = {each.name: each.value for each in reading.assignments if not each.unsets}
        left_out = {name for name in made.env() if name not in found}
        assert found == {name: value for name, value in made.env().items() if name not in left_out}
        assert all(any(name in note for note in result.notes) for name in left_out), left_out
        assert (reading.unread, reading.slips) == ((), ())
        context = CheckContext(platform=platform, nccl=parse_version(made.nccl), nodes=made.nodes)
        unexpected = [each for each in lint(reading, context) if each.code not in MEANT.get(goal, set())]
        assert unexpected == []
        written += len(found)
    assert written > 10


def test_only_forms_that_are_read_too_early_or_by_another_mpi_leave_something_out() -> None:
    left_out = {}
    for _platform, made in all_recommended("bandwidth"):
        for form in FORMS:
            reading = read(export_text(form, made), "settings", LANGUAGES[form])
            missing = set(made.env()) - {each.name for each in reading.assignments}
            left_out.setdefault(form, set()).update(missing)
    assert {form for form, names in left_out.items() if names} == {"nccl.conf", "mpirun", "mpiexec"}
    assert not any(name.startswith("NCCL_") for names in left_out.values() for name in names)


@pytest.mark.parametrize("form", FORMS)
def test_comments_say_for_what_it_is_why_and_by_whom(form: str) -> None:
    made = next(made for platform, made in all_recommended("bandwidth") if platform.id == "azure-nd-h100-v5")
    text = " ".join(re.sub(r"^\s*(?:#|--) ?", "", line) for line in export_text(form, made).split("\n"))
    assert "Settings for azure-nd-h100-v5: 4 nodes, bandwidth, NCCL" in text
    assert f"busbw env export --format {form} --platform azure-nd-h100-v5 --nodes 4" in text
    first = made.settings[0]
    assert first.reason.split(",")[0] in text
    assert first.source[0] in text
    assert export_text(form, made) == export_text(form, made)
