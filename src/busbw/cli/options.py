"""The options of `busbw run` that say on which hosts, and by whom the ranks are started."""

from collections.abc import Callable
from typing import Any, get_args

import click

from busbw.base.errors import InputError
from busbw.model.launch import Bind, Container, RuntimeName

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


_BATCH_OPTIONS = (
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
    for option in reversed(_BATCH_OPTIONS):
        verb = option(verb)
    return verb


_RUNTIMES: tuple[RuntimeName, ...] = get_args(RuntimeName)
_CONTAINER_OPTIONS = (
    click.option(
        "--container", type=click.Choice(_RUNTIMES), help="Run every rank in a container; the launcher stays outside."
    ),
    click.option("--image", metavar="IMAGE", help="The image: a file, a folder or a name, as the runtime takes it."),
    click.option(
        "--mount", "mounts", multiple=True, metavar="SOURCE[:TARGET[:rw]]", help="A path of the host to be seen inside."
    ),
    click.option("--container-option", "container_words", multiple=True, metavar="WORD", help="One word more for it."),
    click.option(
        "--image-python",
        default="python3",
        show_default=True,
        metavar="PROGRAM",
        help="The Python inside that has busbw.",
    ),
)


def container_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, in this order."""
    for option in reversed(_CONTAINER_OPTIONS):
        verb = option(verb)
    return verb


def container_of(asked: dict[str, Any]) -> Container | None:
    """Return the container that the options ask for; None without one. Raises InputError."""
    runtime, image = asked["container"], asked["image"]
    if runtime is None:
        if image is not None or asked["mounts"] or asked["container_words"]:
            raise InputError("an image needs a runtime", hint="--container apptainer, podman, ...")
        return None
    if image is None:
        raise InputError("no image is named", where=f"--container {runtime}", hint="--image FILE")
    return Container(
        runtime=runtime,
        program="",
        image=image,
        binds=tuple(_bind(text) for text in asked["mounts"]),
        gpus=asked["backend"] in ("nccl", "native-nccl"),
        options=asked["container_words"],
    )


def _bind(text: str) -> Bind:
    source, *rest = text.split(":")
    if not source or len(rest) > 2 or (len(rest) == 2 and rest[1] not in ("rw", "ro")):
        raise InputError(f"{text[:80]!r} is no mount", where="--mount", hint="--mount /data:/data:rw")
    return Bind(source=source, target=rest[0] if rest and rest[0] else None, read_only=len(rest) < 2 or rest[1] == "ro")
