"""The verb `launch`: how to start a program on a platform. Nothing is started."""

import sys
from pathlib import Path
from typing import Any, get_args

import click

from busbw.api.launches import launch_line
from busbw.base.errors import InputError
from busbw.base.text import printable
from busbw.cli.options import COLLECTIVE, JSON, SIZE
from busbw.model import codec
from busbw.model.launch import CpuSharing, LaunchRequest
from busbw.model.plan import JobFile
from busbw.model.request import RuntimeName
from busbw.show.text.recommendation import launch_script
from busbw.store import files

_SCRIPT = "launch.sh"
_GOALS = "bandwidth, latency, nvlink-check, nic-check, sharp, training"


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("program", nargs=-1, required=True, metavar="-- PROGRAM [ARGUMENTS]...")
@click.option("--platform", metavar="ID", help="The platform [default: the one this host is].")
@click.option("--nodes", type=int, default=1, show_default=True, metavar="N", help="Nodes of the job.")
@click.option("--goal", default="bandwidth", show_default=True, metavar="GOAL", help=_GOALS)
@click.option("--collective", type=COLLECTIVE, metavar="NAME", help="The collective that matters most.")
@click.option("--size", "size_bytes", type=SIZE, metavar="SIZE", help="The size that matters most.")
@click.option("--follow", metavar="SOURCE", help="Follow this source where sources disagree.")
@click.option("--nccl", metavar="VERSION", help="The version of NCCL [default: the newest known].")
@click.option(
    "--launcher",
    default="mpirun",
    show_default=True,
    metavar="NAME",
    help="mpirun, mpirun_rsh, srun, flux, jsrun, aprun, sbatch; for pods of Kubernetes mpijob, kubernetes-job.",
)
@click.option(
    "--mpi",
    metavar="NAME",
    help="open-mpi-4, open-mpi-5, hpcx, mpich, intel-mpi, mvapich, mvapich-plus, mvapich2, mvapich2-gdr, "
    "cray-mpich [default: open-mpi-4; mvapich2 for mpirun_rsh; cray-mpich for aprun, and for srun "
    "and sbatch on Slingshot].",
)
@click.option("--hosts", metavar="FILE|LIST", help="A host file, or a list such as n[0-3].")
@click.option("--ranks-per-node", type=int, metavar="N", help="Processes of a node [default: one for each GPU].")
@click.option(
    "--bind-to",
    "binding",
    type=click.Choice(["core", "numa", "masks", "none", "default"]),
    help="CPUs of each process; default: what the launcher gives it unasked [default: those beside its GPU, where they "
    "are published].",
)
@click.option(
    "--cpus",
    type=click.Choice(get_args(CpuSharing)),
    help="CPUs of each process by number: an even share of the cores, or the NUMA node of its GPU.",
)
@click.option("--interface", metavar="NAME", help="The network interface that hosts meet over.")
@click.option("--launcher-option", "options", multiple=True, metavar="WORD", help="One word more for the launcher.")
@click.option("--batch-option", "batch_options", multiple=True, metavar="WORD", help="sbatch: a directive more.")
@click.option("--time", "time_s", type=int, metavar="SECONDS", help="sbatch: the time limit.")
@click.option(
    "--container",
    "runtime",
    type=click.Choice(get_args(RuntimeName)),
    help="Start every process in a container; the launcher stays outside.",
)
@click.option("--image", metavar="IMAGE", help="The image that every process runs in: of --container, or of pods.")
@click.option(
    "--mount",
    "mounts",
    multiple=True,
    metavar="SOURCE[:TARGET[:rw]]",
    help="Container: a path of the hosts to be seen inside, read-only without :rw.",
)
@click.option("--container-option", "container_options", multiple=True, metavar="WORD", help="One word more for it.")
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="NAME=QUANTITY",
    help="Pods: what each asks for beside GPUs, such as rdma/ib=1.",
)
@click.option("--name", default="busbw", show_default=True, help="Pods: what the job is called.")
@click.option("--namespace", metavar="NAME", help="Pods: where the job is.")
@click.option("--claim", metavar="NAME", help="Pods: a volume that all of them can write, at the job's folder.")
@click.option("--host-network", is_flag=True, help="Pods: the network of the node.")
@click.option(
    "-o", "output", type=click.Path(path_type=Path), metavar="DIR", help="Write the files of the job into this folder."
)
@JSON
def launch(program: tuple[str, ...], output: Path | None, *, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 - as click gives them
    """Print how to start PROGRAM on a platform: settings with reasons, CPUs of the ranks, launcher. Starts nothing."""
    folder = (output if output is not None else Path.cwd()).absolute()
    asked["resources"] = tuple(_resource(text) for text in asked["resources"])
    line = launch_line(LaunchRequest(program=program, **asked), str(folder))
    if as_json:
        sys.stdout.write(codec.encode_pretty(line).decode())
        return
    if output is None:
        sys.stdout.write(launch_script(line, str(folder), with_files=True))
        return
    files.write(line.job.files, folder)
    script = launch_script(line, str(folder), with_files=False)
    files.write([JobFile(path=_SCRIPT, text=script, executable=True)], folder)
    click.echo(printable(f"wrote {folder / _SCRIPT}"), err=True)


def _resource(text: str) -> tuple[str, str]:
    name, equals, quantity = text.partition("=")
    if not equals:
        raise InputError(f"{text[:80]!r} is not a resource", where="--resource", hint="--resource rdma/ib=1")
    return name, quantity
