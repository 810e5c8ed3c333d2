"""The verb `env explain`."""

import sys
from typing import NoReturn

from busbw.api import settings
from busbw.base.errors import ExitCode, InputError
from busbw.model import codec
from busbw.model.envvar import Explanation


def explain_variable(name: str, *, run_name: str | None, here: bool, nccl: str | None, as_json: bool) -> NoReturn:
    """Print what is known of a variable; exit with 0, with 1 where nothing reads it, with 4 where that is not known."""
    told = _explained(name, run_name=run_name, here=here, nccl=nccl)
    if as_json:
        sys.stdout.write(codec.encode_pretty(told).decode())
    else:
        from busbw.show.text.envvar import explanation_text

        explanation_text(told)
    sys.stdout.flush()
    sys.exit(_exit_code(told))


def _explained(name: str, *, run_name: str | None, here: bool, nccl: str | None) -> Explanation:
    if here and run_name is not None:
        raise InputError("--here and --run name two places", hint="ask for one after the other")
    if run_name is not None:
        return settings.explained_in_run(name, run_name, nccl=nccl)
    return settings.explained_here(name, nccl=nccl) if here else settings.explained(name, nccl=nccl)


def _exit_code(told: Explanation) -> ExitCode:
    if told.variable is None:
        return ExitCode.CANNOT_TELL if told.read.verdict == "open" else ExitCode.FINDINGS
    return ExitCode.OK if told.standing in (None, "yes") else ExitCode.FINDINGS
