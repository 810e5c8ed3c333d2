"""The verb `doctor`: what the logs of a job say, or what one node says without a job."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from busbw.base.errors import ExitCode, InputError
from busbw.model import codec
from busbw.model.finding import Diagnosis


@click.command()
@click.argument("logs", metavar="[LOG|-]...", nargs=-1)
@click.option("--here", is_flag=True, help="Check this host instead, or one captured in HOST.tar.")
@click.option("--platform", metavar="ID", help="The machine that the job ran on.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(logs: tuple[str, ...], *, here: bool, platform: str | None, as_json: bool) -> None:
    """Say what the logs of a job tell: networks, transports, ranks that differ, the first error.

    Give what its ranks wrote with NCCL_DEBUG=INFO or WARN: files, folders, or - for standard input; with a launcher's
    prefixes or without, compressed or not. Files are taken for one job; of several launches in one file the last that
    failed is told of. Exit code 0: nothing is wrong; 1: findings; 2: no log of NCCL; 4: the log does not tell.
    """
    if here and len(logs) > 1:
        raise InputError("--here takes one host", hint="busbw doctor --here HOST.tar")
    if here:
        from busbw.cli.doctor_here import doctor_here

        doctor_here(Path(logs[0]) if logs else None, platform=platform, as_json=as_json)
    elif not logs:
        raise InputError("there is no log", hint="busbw doctor job.log, or busbw doctor --here")
    else:
        _logs(logs, platform, as_json=as_json)


def _logs(logs: tuple[str, ...], platform: str | None, *, as_json: bool) -> NoReturn:
    from busbw.api.doctor import doctor_logs

    diagnosis = doctor_logs(logs, platform=platform)
    if as_json:
        sys.stdout.write(codec.encode_pretty(diagnosis).decode())
    else:
        from busbw.show.text.diagnosis import diagnosis_text

        diagnosis_text(diagnosis)
    sys.stdout.flush()
    sys.exit(_exit_code(diagnosis))


def _exit_code(diagnosis: Diagnosis) -> ExitCode:
    if any(each.severity != "note" for each in diagnosis.findings):
        return ExitCode.FINDINGS
    return ExitCode.CANNOT_TELL if diagnosis.verdict.outcome == "cannot_tell" else ExitCode.OK
