"""The rules, their pages and the code that emits them belong together."""

import re
from pathlib import Path

import pytest

import busbw
from busbw.facts.rules import rule, rules

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "findings"
PACKAGE = Path(busbw.__file__).parent
# The packages whose modules emit findings.
EMITTERS = ("check", "env", "fabric", "formats", "judge", "logs", "machine", "recipes", "store", "topo", "train")
SOURCES = "\n".join(path.read_text() for name in EMITTERS for path in sorted((PACKAGE / name).rglob("*.py")))


@pytest.mark.parametrize("code", list(rules()))
def test_a_page_says_something_under_each_of_the_four_headings(code):
    sections = re.split(r"^## (.+)$", (PAGES / f"{code}.md").read_text(), flags=re.MULTILINE)

    assert sections[1::2] == ["What it finds", "Why it matters", "Example", "Source"]
    assert all(body.strip() for body in sections[2::2])


@pytest.mark.parametrize("code", list(rules()))
def test_every_rule_is_emitted(code):
    assert f'"{code}"' in SOURCES


def test_only_declared_codes_are_emitted():
    assert set(re.findall(r'"((?:RUN|PERF|IMP|TOP|ENV|LOG|HOST|CMP|STACK|FAB|CHK|TRN)\d{3})"', SOURCES)) <= set(rules())


@pytest.mark.parametrize("code", list(rules()))
def test_a_title_holds_names_and_no_expressions(code):
    fields = re.findall(r"\{([^}]*)\}", rule(code).title)

    assert all(field.isidentifier() for field in fields)
    assert rule(code).why.endswith(".")


def test_an_unknown_code_is_refused():
    with pytest.raises(KeyError):
        rule("RUN999")
