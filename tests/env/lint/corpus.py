"""The corpus: texts and the findings on them."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from busbw.env.lint import lint
from busbw.env.reading import read
from busbw.env.rules.subject import CheckContext
from busbw.env.versions import parse_version
from busbw.facts.platforms import find_platform
from busbw.model.finding import Finding

FOLDER = Path(__file__).parent / "corpus"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A text with the line and code of every finding on it, in order."""

    name: str
    text: str
    findings: list[str]
    is_: str | None = None
    platform: str | None = None
    nccl: str | None = None
    nodes: int | None = None
    absent: list[str] | None = None


def context_of(
    *, platform: str | None = None, nccl: str | None = None, nodes: int | None = None, absent: list[str] | None = None
) -> CheckContext:
    """Return what a case is held against."""
    return CheckContext(
        platform=find_platform(platform).platform if platform is not None else None,
        nccl=parse_version(nccl) if nccl is not None else None,
        nodes=nodes,
        absent=frozenset(absent) if absent is not None else None,
    )


def found_in(case: Case) -> tuple[Finding, ...]:
    """Return the findings on the text of a case."""
    context = context_of(platform=case.platform, nccl=case.nccl, nodes=case.nodes, absent=case.absent)
    return lint(read(case.text, "text", case.is_), context)


def short(finding: Finding) -> str:
    """Return line and code of a finding."""
    assert finding.place is not None
    return f"{finding.place.line} {finding.code}"


def cases() -> list[Case]:
    """Return the corpus, file after file."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for raw in tomllib.loads(path.read_text(encoding="utf-8"))["case"]:
            text = raw.pop("text")
            found.append(Case(text=text, is_=raw.pop("is", None), **raw))
    return found
