"""The options of `busbw run` that are about jobs of a batch system."""

from collections.abc import Callable
from typing import Any

import click

_OPTIONS = (
    click.option(
        "--batch-option",
        "batch_options",
        multiple=True,
        metavar="WORD",
        help="sbatch: a directive more, such as --batch-option=--partition=gpu.",
    ),
    click.option("--split", is_flag=True, help="sbatch: a task of an array for each collective."),
    click.option("--no-follow", is_flag=True, help="sbatch: submit, say the number of the job, and stop."),
    click.option(
        "--continue",
        "go_on",
        is_flag=True,
        help="Where --out holds a cut-off run on these hosts, go on with it; on other hosts start anew beside it.",
    ),
    click.option(
        "--split-part",
        metavar="N|slurm",
        help="Measure one of the collectives, into a folder of --out: the N-th from 0, or SLURM_ARRAY_TASK_ID's.",
    ),
)
# What a job of a batch system decides itself, or was decided when it was written.
NOT_OF_JOBS = frozenset(
    (
        *("hosts", "nodes", "launcher", "directory", "resume"),
        *("batch_options", "split", "no_follow", "go_on", "split_part"),
        *("plan_only", "as_json"),
    )
)


def batch_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, in this order."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb
