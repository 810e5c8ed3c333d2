"""`busbw run --launcher sbatch`: submit a run as a job, follow it, and print what it left."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from busbw.api import batch
from busbw.api.loading import load
from busbw.base.errors import ExitCode, InputError, RunError
from busbw.base.text import printable
from busbw.cli.request import NOT_OF_JOBS
from busbw.cli.results import exit_code, print_run
from busbw.measure.launchers.command_line import command_line
from busbw.model.launch import BatchJob
from busbw.model.request import Request, words_of
from busbw.store import directory as directories


def run_batch(
    request: Request, directory: Path | None, given: Mapping[str, Any], *, plan_only: bool, as_json: bool
) -> None:
    """Submit a run as a job, follow it, print its results and exit with the worst of their codes."""
    if given["go_on"] or given["split_part"] is not None:
        raise InputError("--continue and --split-part are for inside of a job")
    where = (directory if directory is not None else batch.new_place(request, directories.root())).absolute()
    # Behind `--` nothing is taken for an option.
    names = ("--", *request.collectives) if request.collectives else ()
    made = batch.planned(
        request,
        (*(word for words in words_of(request, NOT_OF_JOBS) for word in words), *names),
        where,
        python=sys.executable,
        options=given["batch_options"],
        split=given["split"],
    )
    if plan_only:
        for file in made.job.files:
            sys.stdout.write(printable(f"# {made.folder / file.path}") + "\n" + file.text + "\n")
        sys.stdout.write(command_line(made.job) + "\n")
        return
    job_id = batch.submit(made)
    _say(f"job {job_id}: {made.folder}")
    if given["no_follow"]:
        sys.stdout.write(job_id + "\n")
        return
    tasks, _cancelled = batch.follow(made, job_id, _say)
    _present(made, tasks, job_id, as_json=as_json)


def _present(made: batch.BatchRun, tasks: tuple[BatchJob, ...], job_id: str, *, as_json: bool) -> None:
    found = [place for run in made.runs for place in batch.results(run)]
    if not found:
        states = ", ".join(sorted({task.state.lower() for task in tasks})) or "gone"
        raise RunError(
            f"job {job_id} left no result: {states}",
            where=str(made.folder),
            hint="what it said is in its slurm-*.err there",
        )
    codes = []
    for place in found:
        run = load(place)
        print_run(run, place, as_json=as_json)
        codes.append(exit_code(run))
    if len(found) < len(made.runs):
        _say(f"{len(made.runs) - len(found)} of {len(made.runs)} parts left no result")
        codes.append(ExitCode.RUN_FAILED)
    sys.exit(_worst(codes))


def _worst(codes: list[ExitCode]) -> ExitCode:
    order = (ExitCode.RUN_FAILED, ExitCode.FINDINGS, ExitCode.CANNOT_TELL)
    return next((code for code in order if code in codes), ExitCode.OK)


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
