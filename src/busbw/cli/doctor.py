"""The verb `doctor`: what the logs of a job say, or what one node says without a job."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from busbw.base.errors import ExitCode, InputError
from busbw.cli.checks import code_of
from busbw.cli.options import JSON
from busbw.model import codec
from busbw.model.finding import Diagnosis, HostDiagnosis


@click.command()
@click.argument("logs", metavar="[LOG|-]...", nargs=-1)
@click.option("--here", is_flag=True, help="Check this host instead, or one captured in HOST.tar.")
@click.option("--platform", metavar="ID", help="The machine that the job ran on.")
@click.option(
    "--log",
    "job_logs",
    multiple=True,
    metavar="LOG",
    help="With --here: a job's log, which tells what it used of the network.",
)
@JSON
def doctor(
    logs: tuple[str, ...], *, here: bool, platform: str | None, job_logs: tuple[str, ...], as_json: bool
) -> None:
    """Say what the logs of a job tell: networks, transports, ranks that differ, the first error.

    Give what its ranks wrote with NCCL_DEBUG=INFO or WARN: files, folders, or - for standard input; with a launcher's
    prefixes or without, compressed or not. Files are taken for one job; of several launches in one file the last that
    failed is told of. Exit code 0: nothing is wrong; 1: findings; 2: no log of NCCL; 4: the log does not tell.
    """
    if here and len(logs) > 1:
        raise InputError("--here takes one host", hint="busbw doctor --here HOST.tar")
    if job_logs and not here:
        raise InputError("--log goes with --here", hint=f"busbw doctor {' '.join(job_logs)}")
    if here:
        _here(Path(logs[0]) if logs else None, platform=platform, job_logs=job_logs, as_json=as_json)
    elif not logs:
        raise InputError("there is no log", hint="busbw doctor job.log, or busbw doctor --here")
    else:
        _logs(logs, platform, as_json=as_json)


def _logs(logs: tuple[str, ...], platform: str | None, *, as_json: bool) -> NoReturn:
    from busbw.api.diagnoses import doctor_logs

    diagnosis = doctor_logs(logs, platform=platform)
    if as_json:
        sys.stdout.write(codec.encode_pretty(diagnosis).decode())
    else:
        from busbw.show.text.diagnosis import diagnosis_text

        diagnosis_text(diagnosis)
    sys.stdout.flush()
    sys.exit(_exit_code(diagnosis))


def _exit_code(diagnosis: Diagnosis) -> ExitCode:
    is_open = diagnosis.verdict.outcome == "cannot_tell"
    return code_of(diagnosis.findings) or (ExitCode.CANNOT_TELL if is_open else ExitCode.OK)


def _here(host: Path | None, *, platform: str | None, job_logs: tuple[str, ...], as_json: bool) -> NoReturn:
    """Print what the checks of a host say, and exit with their code."""
    from busbw.api.diagnoses import examine_captured, examine_here

    if host is not None:
        found = examine_captured(host, platform=platform, logs=job_logs)
    else:
        found = examine_here(platform=platform, logs=job_logs)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        from busbw.show.text.findings import host_checks_text

        host_checks_text(found)
        sys.stdout.flush()
        if not found.root and any(check.outcome == "cannot_tell" for check in found.checks):
            print("hint: root is shown more: sudo busbw doctor --here", file=sys.stderr)
    sys.exit(_exit_code_of_host(found))


def _exit_code_of_host(found: HostDiagnosis) -> ExitCode:
    can_tell = any(check.outcome in ("ok", "found") for check in found.checks)
    findings = (each for check in found.checks for each in check.findings)
    return code_of(findings) or (ExitCode.OK if can_tell else ExitCode.CANNOT_TELL)
