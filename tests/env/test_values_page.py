"""The table of docs/env-values.md says what the code says."""

import re
from pathlib import Path

import pytest

from busbw.env.values import read_value
from busbw.env.versions import parse_version
from busbw.facts.envvars import variable

PAGE = Path(__file__).parents[2] / "docs" / "env-values.md"
ROW = re.compile(r'^\| `(NCCL_\w+)="([^"]*)"` \| (\S+) \| ([^|]+) \|', re.MULTILINE)
FAILS = "it fails"


def rows() -> list[tuple[str, str, str, str]]:
    return [(name, text, version, taken.strip()) for name, text, version, taken in ROW.findall(PAGE.read_text("utf-8"))]


def test_the_table_is_found() -> None:
    assert len(rows()) > 25


@pytest.mark.parametrize(("name", "text", "version", "taken"), rows())
def test_a_row_is_what_lint_says(name: str, text: str, version: str, taken: str) -> None:
    asked = [(2, 18, 3), None] if version == "any" else [parse_version(version)]
    if variable(name).since is not None and version == "any":
        asked = [None]
    for each in asked:
        found = read_value(variable(name), text, each)
        if taken == FAILS:
            assert found.kind == "fails"
        elif name == "NCCL_ALGO":
            assert found.value is not None
            assert found.value.startswith((f"AllReduce: {taken};", taken))
        else:
            assert found.value == taken
