"""The verb `run`."""

import sys
from pathlib import Path
from typing import Any

from busbw.api.runs import resume, start
from busbw.base.errors import InputError
from busbw.cli.asked import request_of
from busbw.cli.progress import progress
from busbw.measure.plan.planning import plan as make_plan
from busbw.model import codec
from busbw.model.plan import Plan
from busbw.model.run import Run
from busbw.store import directory as directories


def run_request(asked: dict[str, Any], *, plan_only: bool, as_json: bool) -> None:
    """Plan what was asked for; print the plan, or carry it out and print the result."""
    request, directory = request_of(asked)
    if request.launcher == "sbatch":
        from busbw.cli.batch import run_batch

        run_batch(request, directory, asked, plan_only=plan_only, as_json=as_json)
        return
    _check_of_batch(asked)
    if asked["split_part"] is not None:
        from busbw.cli.split import part_of

        request, directory = part_of(request, directory, asked["split_part"])
    if asked["go_on"] and directory is not None:
        from busbw.api.runs import place_of

        earlier, directory = place_of(directory)
        if earlier:
            run_resume(str(directory), plan_only=plan_only, as_json=as_json)
            return
    plan, where = make_plan(request, directory, directories.root())
    if plan_only:
        _print_plan(plan, as_json=as_json)
        return
    with progress(plan, where) as listener:
        run = start(plan, where, listener)
    _present(run, where, as_json=as_json)


def _check_of_batch(asked: dict[str, Any]) -> None:
    given = [option for option in ("batch_options", "split", "no_follow") if asked[option]]
    if given:
        names = ", ".join(f"--{option.rstrip('s').replace('_', '-')}" for option in given)
        raise InputError(f"only for jobs of a batch system: {names}", hint="--launcher sbatch")
    if (asked["go_on"] or asked["split_part"] is not None) and asked["directory"] is None and asked["letter_o"] is None:
        raise InputError("it has to be known where the run is", hint="name its folder: --out DIR")


def run_resume(name: str, *, plan_only: bool, as_json: bool) -> None:
    """Go on with an earlier run."""
    where = directories.find(name, directories.root()).absolute()
    plan = directories.read_plan(where)
    if plan_only:
        _print_plan(plan, as_json=as_json)
        return
    with progress(plan, where) as listener:
        run = resume(where, listener)
    _present(run, where, as_json=as_json)


def _present(run: Run, where: Path, *, as_json: bool) -> None:
    from busbw.cli.present import present_run

    present_run(run, where, as_json=as_json)


def _print_plan(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(codec.encode_pretty(plan).decode())
    else:
        from busbw.show.text.terminal import plan_text

        plan_text(plan)
