"""Findings as a page shows them, with why their rules matter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from busbw.facts.rules import rules
from busbw.model.finding import Finding


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """A finding, why its rule matters (None: a rule this busbw does not know), and the measurement it is about."""

    finding: Finding
    why: str | None
    about: str | None
    # Whether it is the first of its code: where links to the code lead.
    first: bool


def explained_findings(findings: Sequence[Finding], points: Mapping[int, str]) -> tuple[Explained, ...]:
    """Return the findings in their order, each with why its rule matters and what it is about.

    `points`: what each measurement is called.
    """
    known = rules()
    return tuple(
        Explained(
            finding=finding,
            why=known[finding.code].why if finding.code in known else None,
            about=points.get(finding.point) if finding.point is not None else None,
            first=finding.code not in {earlier.code for earlier in findings[:number]},
        )
        for number, finding in enumerate(findings)
    )
