"""What `busbw scaling` prints, and the exit code that goes with it."""

import sys
from collections.abc import Mapping
from typing import Any

from busbw.api.scaling import Form, ScalingRequest, scaling
from busbw.base.errors import ExitCode
from busbw.judge.scaling.conclusion import can_tell
from busbw.model import codec
from busbw.model.scaling import ScalingReport

_FORMS: dict[str | None, Form] = {"in": "in place", "out": "out of place"}


def print_scaling(options: Mapping[str, Any], *, as_json: bool, as_csv: bool) -> None:
    """Print the figures of what is asked for; exit with 1 for findings, 4 where nothing can be told."""
    report = scaling(_request(options))
    if as_json:
        sys.stdout.write(codec.encode_pretty(report).decode())
    elif as_csv:
        from busbw.show.exports.tables import scaling_csv

        sys.stdout.write(scaling_csv(report))
    else:
        from busbw.show.text.scaling import scaling_text

        scaling_text(report)
    sys.exit(_exit_code(report))


def _request(options: Mapping[str, Any]) -> ScalingRequest:
    """Return the options as a request."""
    same = {
        name: options[name]
        for name in (
            "sources",
            "published",
            "platform",
            "algorithm",
            "collective",
            "sizes_bytes",
            "dtype",
            "op",
            "axis",
            "against",
            "ranks_per_node",
            "patterns",
            "application",
            "name_pattern",
            "last",
            "result",
            "base",
            "beyond",
            "ignored",
        )
    }
    return ScalingRequest(
        **same,
        form=_FORMS.get(options["form"]),
        series=options["series"] or None,
        kind="weak" if options["weak"] else "strong",
    )


def _exit_code(report: ScalingReport) -> ExitCode:
    if any(finding.severity != "note" for finding in report.findings):
        return ExitCode.FINDINGS
    return ExitCode.OK if any(can_tell(view) for view in report.views) else ExitCode.CANNOT_TELL
