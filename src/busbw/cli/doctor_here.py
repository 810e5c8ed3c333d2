"""`busbw doctor --here`: what is wrong with this host, or with a captured one."""

import sys
from pathlib import Path
from typing import NoReturn

from busbw.api.doctor import examine_captured, examine_here
from busbw.base.errors import ExitCode
from busbw.model import codec
from busbw.model.finding import HostDiagnosis


def doctor_here(host: Path | None, *, platform: str | None, as_json: bool) -> NoReturn:
    """Print what the checks say; exit with 1 for warnings and errors, with 4 where no check could tell anything."""
    found = examine_captured(host, platform=platform) if host is not None else examine_here(platform=platform)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        from busbw.show.text.findings import host_checks_text

        host_checks_text(found)
        sys.stdout.flush()
        if not found.root and any(check.outcome == "cannot_tell" for check in found.checks):
            print("hint: root is shown more: sudo busbw doctor --here", file=sys.stderr)
    sys.exit(_exit_code(found))


def _exit_code(found: HostDiagnosis) -> ExitCode:
    if found.errors or found.warnings:
        return ExitCode.FINDINGS
    can_tell = any(check.outcome in ("ok", "found") for check in found.checks)
    return ExitCode.OK if can_tell else ExitCode.CANNOT_TELL
