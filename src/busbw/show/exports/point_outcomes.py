"""What is said of single points: the verdict of the run, broken down by what its findings and results say of each."""

from dataclasses import dataclass

from busbw.model.finding import Finding, Outcome, Verdict
from busbw.model.point_row import PointRow, is_missing, is_wrong
from busbw.show.exports.rows import Export


@dataclass(frozen=True, kw_only=True, slots=True)
class PointOutcome:
    """The outcome of a point, and why it is not ok; "" where it is."""

    outcome: Outcome
    reason: str = ""


def point_outcomes(export: Export) -> tuple[PointOutcome, ...]:
    """Return the outcome of each row. ok takes a verified result, a judgement of this very point, and no finding.

    Where points were not judged by themselves the verdict of the run holds for those that no finding is about.
    """
    about: dict[int, list[Finding]] = {}
    for finding in export.findings:
        if finding.point is not None and finding.severity != "note":
            about.setdefault(finding.point, []).append(finding)
    judged = dict(export.judged)
    return tuple(
        _outcome(export, row, about.get(number, []), judged.get(number)) for number, row in enumerate(export.rows)
    )


def _outcome(export: Export, row: PointRow, findings: list[Finding], judged: Verdict | None) -> PointOutcome:
    if is_wrong(row):
        return PointOutcome(outcome="wrong", reason=f"wrong elements in the result: {row.wrong}")
    if is_missing(row):
        outcome: Outcome = "failed" if export.verdict == "failed" else "cannot_tell"
        return PointOutcome(outcome=outcome, reason=f"not measured: {export.sentence or 'the run did not get to it'}")
    slow = [each for each in findings if each.code in export.because and export.verdict == "slow"]
    if slow and row.verified:
        return PointOutcome(outcome="slow", reason=_words(slow[0]))
    if judged is not None and row.verified and not findings:
        return PointOutcome(outcome=judged.outcome, reason="" if judged.outcome == "ok" else _reason(judged))
    doubt = _doubt(export, row, findings)
    return PointOutcome(outcome="ok") if doubt is None else PointOutcome(outcome="cannot_tell", reason=doubt)


def _doubt(export: Export, row: PointRow, findings: list[Finding]) -> str | None:
    """Return why a point that was measured cannot be told to be right and quick."""
    if not row.verified:
        return "nobody verified the result"
    if findings:
        return _words(findings[0])
    if export.verdict is None:
        return "imports are not judged"
    return export.sentence or export.verdict if export.verdict in {"cannot_tell", "failed"} else None


def _reason(judged: Verdict) -> str:
    """Return the sentence without the outcome in front, which stands beside it."""
    return judged.sentence.removeprefix(f"{judged.outcome.replace('_', ' ')}: ")


def _words(finding: Finding) -> str:
    return f"{finding.code} {finding.title}: {finding.evidence}"
