"""From a verdict to the exit code a script can rely on."""

from busbw.errors import ExitCode
from busbw.model.run import Run


def exit_code(run: Run) -> ExitCode:
    """Return 0 for ok (notes allowed), 1 for findings, 3 for a failed run, 4 for cannot tell."""
    if run.verdict.outcome == "failed":
        return ExitCode.RUN_FAILED
    if run.verdict.outcome in ("slow", "wrong"):
        return ExitCode.FINDINGS
    if run.verdict.outcome == "cannot_tell":
        return ExitCode.CANNOT_TELL
    return ExitCode.FINDINGS if any(finding.severity != "note" for finding in run.findings) else ExitCode.OK
