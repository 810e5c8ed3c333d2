"""From a verdict to the exit code a script can rely on."""

from busbw.base.errors import ExitCode
from busbw.model.finding import Finding, Verdict
from busbw.model.gates import GateOutcome
from busbw.model.run import Run
from busbw.model.verdict import ExplainedVerdict

_OF_GATES: dict[GateOutcome, ExitCode] = {
    "pass": ExitCode.OK,
    "fail": ExitCode.FINDINGS,
    "cannot_tell": ExitCode.CANNOT_TELL,
}


def exit_code(run: Run) -> ExitCode:
    """Return 0 for ok (notes allowed), 1 for findings, 3 for a failed run, 4 for cannot tell."""
    return _code(run.verdict, run.findings)


def exit_code_of(explained: ExplainedVerdict) -> ExitCode:
    """Return the same for results that were explained; with gates 0 where all pass, 1 where one fails, else 4."""
    if explained.gates is not None:
        return _OF_GATES[explained.gates.outcome]
    return _code(explained.verdict, explained.findings)


def _code(verdict: Verdict, findings: tuple[Finding, ...]) -> ExitCode:
    if verdict.outcome == "failed":
        return ExitCode.RUN_FAILED
    if verdict.outcome in ("slow", "wrong"):
        return ExitCode.FINDINGS
    if verdict.outcome == "cannot_tell":
        return ExitCode.CANNOT_TELL
    return ExitCode.FINDINGS if any(finding.severity != "note" for finding in findings) else ExitCode.OK
