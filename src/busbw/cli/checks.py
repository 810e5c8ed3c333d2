"""What the verbs that check print, and the exit code that findings give."""

import sys
from collections.abc import Iterable
from typing import NoReturn

from busbw.base.errors import ExitCode
from busbw.model import codec
from busbw.model.finding import Checked, Finding


def present(checked: Checked, *, as_json: bool) -> NoReturn:
    """Print what a check found, and exit: 1 where more than notes was found, 4 where nothing could be checked, or 0."""
    if as_json:
        sys.stdout.write(codec.encode_pretty(checked).decode())
    else:
        from busbw.show.text.findings import checked_text

        checked_text(checked)
        sys.stdout.flush()
        for hint in checked.hints:
            print(f"hint: {hint}", file=sys.stderr)
    found = code_of(checked.findings)
    sys.exit(ExitCode.CANNOT_TELL if found is ExitCode.OK and checked.tells_nothing else found)


def code_of(findings: Iterable[Finding]) -> ExitCode:
    """Return 1 where a finding is more than a note, else 0."""
    return ExitCode.FINDINGS if any(each.is_serious for each in findings) else ExitCode.OK
