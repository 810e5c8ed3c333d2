"""The verb `train run`: replay the communication of a step."""

import sys
from pathlib import Path
from typing import Any, NoReturn

import click
from msgspec import structs

from busbw.cli.options import GroupedCommand, GroupedOption, run_options
from busbw.model.request import Request, options
from busbw.model.train.replay import StepAsked

_HELP = """Replay the communication of a step of WORKLOAD for real, with computing between, and say what it takes.

Every rank makes the calls that `busbw train plan` lists for the slowest stage, in groups as the parallelism says, all
groups at once. On GPUs computing is matrix products, on CPUs a wait by the clock. Each collective is checked and timed
alone first.

Exit code 0: ok; 1: a result was wrong, or a warning; 2: bad input; 3: the run failed; 4: cannot tell.
"""
# Of the options of `busbw run` those that say where ranks are started, with what, and for how long.
_OF_RUN = frozenset(
    ("ranks", "hosts", "nodes", "ranks_per_node", "binding", "backend", "launcher", "launcher_options", "mpirun",
     "interface", "remote_shell", "allow_mixed", "stall_s", "tag", "runtime", "image", "mounts", "container_options",
     "image_python", "nccl", "driver", "nvrtc", "multicast_off", "config", "time_limit_s", "min_samples", "platform",
     "verify", "goal")
)  # fmt: skip


def _option(*names: str, **given: Any) -> GroupedOption:  # noqa: ANN401 - as click has them
    return GroupedOption(list(names), group="what", **given)


_OWN: tuple[click.Parameter, ...] = (
    click.Argument(["workload"], metavar="WORKLOAD|FILE.toml"),
    _option(
        "--dtype", type=click.Choice(("bf16", "fp16", "fp32", "fp8")),
        help="What matrices are multiplied in [default: the first].",
    ),
    _option(
        "--layout", metavar="KEY=VALUE,...",
        help="Another layout: tp, pp, cp, ep, vp, zero, micro_batch, global_batch.",
    ),
    _option(
        "--order", default=StepAsked(workload="").order, show_default=True, metavar="ORDER",
        help="Ranks' order, the fastest first.",
    ),
    _option(
        "--scale-down", type=int, default=1, show_default=True, metavar="F",
        help="Divide messages and computing by it.",
    ),
    _option(
        "--rate", "rate_tflops", type=float, metavar="TFLOPS",
        help="What a rank computes at [default: 40 % of the GPU's peak; on CPUs 0.1].",
    ),
    _option(
        "--steps", type=int, metavar="N", help="Steps at most [default: what half of the time limit allows]."
    ),
)  # fmt: skip
_REST: tuple[click.Parameter, ...] = (
    GroupedOption(["--out", "directory"], type=click.Path(path_type=Path), metavar="DIR", help="Folder for this run."),
    GroupedOption(["--plan", "plan_only"], is_flag=True, help="Print what would be done, and stop."),
    GroupedOption(["--json", "as_json"], is_flag=True, help="Print JSON: the content of run.json or plan.json."),
)


def _run(**given: Any) -> NoReturn:  # noqa: ANN401 - as click gives them
    from busbw.api.runs import start
    from busbw.api.training.replaying import plan_replay
    from busbw.cli.progress import progress
    from busbw.cli.results import present_run

    fields = {field: given[field] for field in options() if field in _OF_RUN}
    request = Request(**fields)
    request.container  # noqa: B018 - what is wrong with it is said before anything is looked for
    rate = given["rate_tflops"]
    asked = StepAsked(
        workload=given["workload"], dtype=given["dtype"], order=given["order"], layout=given["layout"],
        scale_down=given["scale_down"], rate_flops=rate * 1e12 if rate is not None else None, steps=given["steps"],
    )  # fmt: skip
    plan, where = plan_replay(structs.replace(request), asked, given["directory"])
    if given["plan_only"]:
        _print_plan(plan, as_json=given["as_json"])
    with progress(plan, where) as listener:
        done = start(plan, where, listener)
    present_run(done, where, as_json=given["as_json"])


def _print_plan(plan: Any, *, as_json: bool) -> NoReturn:  # noqa: ANN401 - busbw.model.plan.Plan, imported late
    from busbw.model import codec
    from busbw.show.text.terminal import plan_text
    from busbw.show.text.train_step import step_lines

    if as_json:
        sys.stdout.write(codec.encode_pretty(plan).decode())
    else:
        plan_text(plan)
        step_lines(plan)
    sys.stdout.flush()
    sys.exit(0)


run = GroupedCommand("run", callback=_run, help=_HELP, params=[*_OWN, *run_options(set(options()) - _OF_RUN), *_REST])
