"""The verb `platform detect`."""

import shlex
import sys
from pathlib import Path
from typing import NoReturn

from busbw.api import machine
from busbw.base.errors import ExitCode
from busbw.model import codec
from busbw.model.host import Detection


def detect_platform(host: Path | None, *, explain: bool, ask_metadata: bool, as_json: bool) -> NoReturn:
    """Print which platform this host, or a captured one, is; exit with 0 when it is known, else with 4."""
    found = _detect(host, ask_metadata=ask_metadata)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    elif explain:
        from busbw.show.text.host import detection_text

        detection_text(found)
    else:
        from busbw.show.text.host import detection_line, warnings

        print(detection_line(found))
        for warning in warnings(found):
            print(warning, file=sys.stderr)
        if found.platform is None:
            again = shlex.join(["busbw", "platform", "detect", *([str(host)] if host is not None else []), "--explain"])
            print(f"hint: {again}", file=sys.stderr)
    sys.stdout.flush()
    sys.exit(ExitCode.OK if found.platform is not None else ExitCode.CANNOT_TELL)


def _detect(host: Path | None, *, ask_metadata: bool) -> Detection:
    if host is not None:
        return machine.detect_captured(host) if ask_metadata else machine.detect_captured_without_answers(host)
    return machine.detect_here() if ask_metadata else machine.detect_here_without_asking()
