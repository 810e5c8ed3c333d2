"""The verb `run`."""

import sys
from pathlib import Path
from typing import Any

from busbw import codec
from busbw.api.planning import plan as make_plan
from busbw.api.request import Request
from busbw.api.running import resume, start
from busbw.cli.present import present_run
from busbw.cli.progress import progress
from busbw.model.plan import Plan
from busbw.report.terminal import plan_text
from busbw.store import directory as directories


def run_request(asked: dict[str, Any], directory: Path | None, *, plan_only: bool, as_json: bool) -> None:
    """Plan what was asked for; print the plan, or carry it out and print the result."""
    smallest, largest, step = asked.pop("smallest"), asked.pop("largest"), asked.pop("step")
    stall_s, time_limit_s = asked.pop("stall_timeout"), asked.pop("time_limit")
    request = Request(
        smallest_bytes=smallest,
        largest_bytes=largest,
        step_bytes=step,
        stall_s=stall_s,
        time_limit_s=time_limit_s,
        **asked,
    )
    plan, where = make_plan(request, directory, directories.root())
    if plan_only:
        _print_plan(plan, as_json=as_json)
        return
    with progress(plan, where) as listener:
        run = start(plan, where, listener)
    present_run(run, where, as_json=as_json)


def run_resume(name: str, *, plan_only: bool, as_json: bool) -> None:
    """Go on with an earlier run."""
    where = directories.find(name, directories.root()).absolute()
    plan = directories.read_plan(where)
    if plan_only:
        _print_plan(plan, as_json=as_json)
        return
    with progress(plan, where) as listener:
        run = resume(where, listener)
    present_run(run, where, as_json=as_json)


def _print_plan(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(codec.encode_pretty(plan).decode())
    else:
        plan_text(plan)
