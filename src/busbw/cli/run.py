"""The verb `run`: plan what is asked for, measure it, and print the result."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from busbw.base.errors import InputError
from busbw.cli.options import GroupedCommand, GroupedOption, run_options
from busbw.cli.request import directory_of, letters, request_of
from busbw.model.plan import Plan
from busbw.model.request import Request

_HELP = """Measure collectives on this machine and judge the result.

COLLECTIVES are nccl-tests' names: all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall, gather,
scatter, sendrecv, alltoall_2dh; over NCCL also alltoallv, hypercube; over MPI also latency, bandwidth, bibw,
message_rate between pairs of ranks. AllReduce and ncclAllReduce are all_reduce. Without any, the suite `six`.

Options that nccl-tests has too have its letters: -b -e -f -i -w -c -d -r -g -G -R. -o takes an operation, as there, or
the folder for the run. -n is the number of ranks over MPI, as mpirun has it, and calls of one sample over NCCL, as
nccl-tests has it.

The result goes to standard output, progress to standard error. Exit code 0: ok; 1: findings; 2: bad input; 3: the
run failed; 4: cannot tell.
"""
# Options of the command that a request does not keep: where the result goes, and who carries it out.
_BATCH = (
    GroupedOption(
        ["--batch-option", "batch_options"],
        multiple=True,
        metavar="WORD",
        group="batch",
        help="sbatch: a directive more, such as --batch-option=--partition=gpu.",
    ),
    GroupedOption(["--split"], is_flag=True, group="batch", help="sbatch: a task of an array for each collective."),
    GroupedOption(
        ["--no-follow"], is_flag=True, group="batch", help="sbatch: submit, say the number of the job, and stop."
    ),
    GroupedOption(
        ["--continue", "go_on"],
        is_flag=True,
        group="batch",
        rare=True,
        help="Where --out holds a cut-off run on these hosts, go on with it; on other hosts start anew beside it.",
    ),
    GroupedOption(
        ["--split-part"],
        metavar="N|slurm",
        group="batch",
        rare=True,
        help="Measure one of the collectives, into a folder of --out: the N-th from 0, or SLURM_ARRAY_TASK_ID's.",
    ),
)
_RESULT = (
    GroupedOption(["--resume"], metavar="RUN", help="Measure what is missing in an earlier run."),
    GroupedOption(["--plan", "plan_only"], is_flag=True, help="Print what would be done, and stop."),
    GroupedOption(["--json", "as_json"], is_flag=True, help="Print JSON: the content of run.json or plan.json."),
)
_ARRAY_TASK = "SLURM_ARRAY_TASK_ID"


def _run(resume: str | None, *, plan_only: bool, as_json: bool, **given: object) -> None:
    """Measure and judge."""
    if resume is not None:
        _check_alone()
        run_resume(resume, plan_only=plan_only, as_json=as_json)
    else:
        run_request(given, plan_only=plan_only, as_json=as_json)


run = GroupedCommand(
    "run",
    callback=_run,
    help=_HELP,
    params=[click.Argument(["collectives"], nargs=-1), *run_options(), *letters(), *_BATCH, *_RESULT],
)


def _check_alone() -> None:
    """Raise UsageError when --resume comes with anything that the run's own plan has decided already."""
    context = click.get_current_context()
    given = [
        parameter.opts[0] if isinstance(parameter, click.Option) else "COLLECTIVES"
        for parameter in context.command.params
        if (name := parameter.name or "") not in ("resume", "plan_only", "as_json")
        and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        and context.params.get(name) != ()
    ]
    if given:
        raise click.UsageError(f"--resume goes by the plan of that run; leave out {', '.join(given)}")


def run_request(given: Mapping[str, Any], *, plan_only: bool, as_json: bool) -> None:
    """Plan what was asked for; print the plan, or carry it out and print the result."""
    from busbw.measure.plan.planning import plan as make_plan
    from busbw.measure.plan.request import with_matrix
    from busbw.store import directory as directories

    request, directory = with_matrix(request_of(given)), directory_of(given)
    if request.launcher == "sbatch":
        from busbw.cli.batch import run_batch

        run_batch(request, directory, given, plan_only=plan_only, as_json=as_json)
        return
    _check_of_batch(given, directory)
    if given["split_part"] is not None and directory is not None:
        request, directory = _part_of(request, directory, given["split_part"])
    if given["go_on"] and directory is not None:
        from busbw.api.runs import place_of

        earlier, directory = place_of(directory)
        if earlier:
            run_resume(str(directory), plan_only=plan_only, as_json=as_json)
            return
    plan, where = make_plan(request, directory, directories.root())
    if plan_only:
        _print_plan(plan, as_json=as_json)
        return
    from busbw.api.runs import start
    from busbw.cli.progress import progress
    from busbw.cli.results import present_run

    with progress(plan, where) as listener:
        done = start(plan, where, listener)
    present_run(done, where, as_json=as_json)


def _check_of_batch(given: Mapping[str, Any], directory: Path | None) -> None:
    only = [option for option in ("batch_options", "split", "no_follow") if given[option]]
    if only:
        names = ", ".join(f"--{option.rstrip('s').replace('_', '-')}" for option in only)
        raise InputError(f"only for jobs of a batch system: {names}", hint="--launcher sbatch")
    if (given["go_on"] or given["split_part"] is not None) and directory is None:
        raise InputError("it has to be known where the run is", hint="name its folder: --out DIR")


def _part_of(request: Request, directory: Path, part: str) -> tuple[Request, Path]:
    """Return the request for one of its collectives, and the folder for that. Raises InputError."""
    from busbw.api.batch import names_asked
    from busbw.machine.capture.environment import value_of

    text = value_of(_ARRAY_TASK) or "" if part == "slurm" else part
    names = names_asked(request)
    if not text.isdecimal() or len(text) > 9 or int(text) >= len(names):
        raise InputError(
            f"{text[:40]!r} is not one of the numbers 0 to {len(names) - 1}",
            where=_ARRAY_TASK if part == "slurm" else f"--split-part {part[:40]}",
            hint=f"they stand for {', '.join(names)}",
        )
    name = names[int(text)]
    return msgspec.structs.replace(request, collectives=(name,), suite=None), directory / name


def run_resume(name: str, *, plan_only: bool, as_json: bool) -> None:
    """Go on with an earlier run."""
    from busbw.store import directory as directories

    where = directories.find(name, directories.root()).absolute()
    plan = directories.read_plan(where)
    if plan_only:
        _print_plan(plan, as_json=as_json)
        return
    from busbw.api.runs import resume
    from busbw.cli.progress import progress
    from busbw.cli.results import present_run

    with progress(plan, where) as listener:
        done = resume(where, listener)
    present_run(done, where, as_json=as_json)


def _print_plan(plan: Plan, *, as_json: bool) -> None:
    from busbw.model import codec

    if as_json:
        sys.stdout.write(codec.encode_pretty(plan).decode())
    else:
        from busbw.show.text.terminal import plan_text

        plan_text(plan)
