"""Findings: a declared rule, filled with what was seen."""

from busbw.facts.rules import rule
from busbw.model.finding import Confidence, Finding


def finding(
    code: str,
    *,
    evidence: str,
    fix: str | None = None,
    point: int | None = None,
    where: str | None = None,
    confidence: Confidence | None = None,
    effect: str | None = None,
    **names: str | int,
) -> Finding:
    """Return a finding of the rule `code`; `names` fill the title, the others are the finding's own fields."""
    declared = rule(code)
    return Finding(
        code=code,
        severity=declared.severity,
        title=declared.title.format_map(names),
        evidence=evidence,
        fix=fix,
        source=declared.source,
        point=point,
        where=where,
        confidence=confidence,
        effect=effect,
    )
