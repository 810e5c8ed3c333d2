"""The options of `busbw run` that say on which hosts, and by whom the ranks are started."""

from collections.abc import Callable
from typing import Any

import click

_OPTIONS = (
    click.option(
        "--hosts",
        metavar="FILE|LIST",
        help="Measure over these hosts: a host file, or a list such as n[0-3],n7 [default: this host].",
    ),
    click.option("--nodes", type=int, metavar="N", help="Measure over so many hosts of the allocation busbw is in."),
    click.option("--ranks-per-node", type=int, metavar="N", help="Ranks on each of several hosts."),
    click.option(
        "--bind-to",
        "binding",
        type=click.Choice(["core", "numa", "masks", "none"]),
        help="CPUs of each rank: a core, a NUMA node, those beside its GPU (see topo masks), or any "
        "[default: core over MPI, none over NCCL].",
    ),
    click.option(
        "--launcher",
        metavar="NAME",
        help="auto, mpirun, srun, sbatch, flux, jsrun, aprun; without MPI: processes, torchrun, for nccl-tests direct "
        "[default: auto].",
    ),
    click.option("--launcher-option", "launcher_options", multiple=True, metavar="WORD", help="One word more for it."),
    click.option("--interface", metavar="NAME", help="The network interface that hosts meet over, such as eth0."),
    click.option("--allow-mixed", is_flag=True, help="Measure hosts together that do not run the same, and say so."),
    click.option("--remote-shell", metavar="COMMAND", help="What mpirun reaches other hosts with [default: ssh]."),
)


def host_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, in this order."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb
