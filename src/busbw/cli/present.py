"""A result on standard output, and the exit code that goes with it."""

import sys
from pathlib import Path
from typing import NoReturn

from busbw.cli.exits import exit_code
from busbw.model import codec
from busbw.model.run import Run
from busbw.show.text.terminal import run_text


def present_run(run: Run, where: Path, *, as_json: bool) -> NoReturn:
    """Print a run as `print_run` does, and exit with its code."""
    print_run(run, where, as_json=as_json)
    sys.exit(exit_code(run))


def print_run(run: Run, where: Path, *, as_json: bool) -> None:
    """Print a run as a table with its verdict, or as the JSON of run.json."""
    if as_json:
        sys.stdout.write(codec.encode_pretty(run).decode())
    else:
        run_text(run, where)
    sys.stdout.flush()
