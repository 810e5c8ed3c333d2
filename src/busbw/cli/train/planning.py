"""What a training job communicates and takes before it runs: `train list`, `show`, `make`, `plan`, `script`."""

import sys
from pathlib import Path
from typing import Any

import click

from busbw.base.errors import ExitCode
from busbw.base.text import printable
from busbw.cli.options import JSON

_DTYPES = ("bf16", "fp16", "fp32", "fp8")


@click.command("list")
@JSON
def list_(*, as_json: bool) -> None:
    """List the workloads that are known."""
    from busbw.api.training.workloads import every_workload
    from busbw.model import codec
    from busbw.show.text.train import workloads_text

    known = every_workload()
    if as_json:
        sys.stdout.write(codec.encode_pretty(known).decode())
        return
    workloads_text(known)
    print("busbw train show WORKLOAD tells what is known of one", file=sys.stderr)


@click.command()
@click.argument("workload", metavar="WORKLOAD|FILE.toml")
@JSON
def show(workload: str, *, as_json: bool) -> None:
    """Show a workload: its model, its configurations, their sizes, and what its sources get wrong."""
    from busbw.api.training.workloads import shown_workload
    from busbw.model import codec
    from busbw.show.text.train import workload_text

    found = shown_workload(workload)
    if as_json:
        sys.stdout.write(codec.encode_pretty(found.workload).decode())
    else:
        workload_text(found)


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--form",
    type=click.Choice(("megatron", "nemo", "torchtitan")),
    help="Whose configuration it is [default: as told].",
)
@click.option(
    "--say",
    "says",
    multiple=True,
    metavar="KEY=VALUE",
    help="What FILE does not say, such as gpus=64 or vocabulary=128256.",
)
@click.option(
    "-o", "output", type=click.Path(path_type=Path), metavar="OUT.toml", help="Write it there [default: print]."
)
def make(file: Path, form: str | None, says: tuple[str, ...], output: Path | None) -> None:
    """Make a workload of a configuration: arguments of Megatron-LM, YAML or Python of NeMo, TOML of torchtitan.

    What FILE does not say is asked for by name. Nothing of it is executed.
    """
    from busbw.api.training.workloads import made_workload
    from busbw.store.files import write_whole

    text = made_workload(file, form, says)
    if output is None:
        sys.stdout.write(text)
        return
    write_whole(output.absolute(), text.encode())
    print(printable(f"wrote {output}; next: busbw train plan {output} --platform ID"), file=sys.stderr)


@click.command()
@click.argument("workload", metavar="WORKLOAD|FILE.toml")
@click.option("--platform", required=True, metavar="ID", help="The platform, by id or any of its names.")
@click.option("--gpus", type=int, metavar="N", help="GPUs of the job [default: the fewest of a configuration].")
@click.option("--dtype", type=click.Choice(_DTYPES), help="What matrices are multiplied in [default: the first].")
@click.option(
    "--order", default="tp-cp-ep-dp-pp", show_default=True, metavar="ORDER", help="Ranks' order, the fastest first."
)
@click.option(
    "--what-if",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="A change: nic=800G, nvlink=2x, tp=8,pp=4, ep, cp, vp, zero, micro_batch, global_batch.",
)
@click.option(
    "--measured", multiple=True, metavar="RUN|FILE", help="A run, an import or a log with measured collectives."
)
@click.option(
    "--leaf-nodes", type=int, metavar="N", help="Nodes that share a leaf switch: which groups cross the spine."
)
@click.option("--step-time", "step_s", type=float, metavar="SECONDS", help="What a step of this job takes, measured.")
@JSON
def plan(*, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 - as click gives them
    """Print what a step of WORKLOAD communicates, where, and what it takes. Nothing is started.

    Exit code 0: planned; 1: with a warning; 2: bad input, such as a configuration that cannot be.
    """
    from busbw.api.training.planning import TrainRequest, plan_training
    from busbw.model import codec
    from busbw.show.text.train_plan import train_plan_text

    found = plan_training(TrainRequest(**asked))
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        train_plan_text(found)
    sys.stdout.flush()
    sys.exit(ExitCode.FINDINGS if any(each.is_serious for each in found.findings) else ExitCode.OK)


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("workload", metavar="WORKLOAD|FILE.toml")
@click.argument("program", nargs=-1, metavar="[-- PROGRAM [ARGUMENTS]...]")
@click.option("--platform", required=True, metavar="ID", help="The platform, by id or any of its names.")
@click.option("--gpus", type=int, metavar="N", help="GPUs of the job [default: the fewest of a configuration].")
@click.option(
    "--dtype", type=click.Choice(_DTYPES), help="What matrices are multiplied in, as DTYPE [default: the first]."
)
@click.option("--stage", metavar="PATH", help="The folder that all nodes see: image, settings, results.")
@click.option("--image", metavar="IMAGE", help="The container's image [default: as published, in --stage].")
@click.option(
    "--cpus",
    type=click.Choice(("even", "numa")),
    default="even",
    show_default=True,
    help="CPUs of each process: an even share of the cores as published, or the NUMA node of its GPU.",
)
@click.option("--partition", metavar="NAME", help="Slurm's partition.")
@click.option("--account", metavar="NAME", help="Slurm's account.")
@click.option("--time", "time_s", type=int, metavar="SECONDS", help="The time limit [default: as published].")
@click.option(
    "-o", "directory", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Where the job's files go."
)
@JSON
def script(*, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 - as click gives them
    """Write the Slurm job of WORKLOAD: settings with reasons, container, CPUs; checked by env lint. Starts nothing.

    Exit code 0: written; 1: written, and env lint has a warning; 2: bad input.
    """
    from busbw.api.training.scripts import ScriptRequest, training_script
    from busbw.model import codec
    from busbw.show.text.train import script_text

    found = training_script(ScriptRequest(**asked))
    if as_json:
        sys.stdout.write(codec.encode_pretty(found).decode())
    else:
        script_text(found)
    sys.stdout.flush()
    serious = any(each.is_serious for each in found.checked.findings)
    sys.exit(ExitCode.FINDINGS if serious else ExitCode.OK)
