"""A small transformer trained for real: `train proxy`. Alone because it starts processes; `planning` starts none."""

import sys
from pathlib import Path
from typing import Any

import click

from busbw.base.text import printable
from busbw.cli.options import JSON


@click.command("proxy")
@click.argument("workload", metavar="WORKLOAD|FILE.toml")
@click.option(
    "--gpus", type=int, metavar="N", help="Processes, one a GPU or CPU core [default: as started, or fewest]."
)
@click.option(
    "--dtype", type=click.Choice(("bf16", "fp32", "fp8")), help="What matrices are multiplied in [default: the first]."
)
@click.option("--layout", metavar="KEY=N,...", help="Another layout: tp=2,ep=1; zero, micro_batch, global_batch.")
@click.option("--device", type=click.Choice(("cpu", "gpu")), help="Where [default: GPUs where PyTorch sees any].")
@click.option("--steps", type=int, default=20, show_default=True, metavar="N", help="Steps of training.")
@click.option("--graph", is_flag=True, help="Launch a step as one CUDA graph, with experts evenly loaded.")
@click.option(
    "-o", "directory", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Where its files go."
)
@JSON
def proxy(*, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 - as click gives them
    """Train a small transformer with the sizes of WORKLOAD for real, and say what communication takes of a step.

    Needs PyTorch: pip install 'busbw[train]'. By itself it starts its processes on this host; under torchrun, srun or
    mpirun each process is one of them. DIR gets plan.json, train.log, which `busbw train read` reads, and result.json.

    Exit code 0: trained; 2: bad input; 3: the processes failed.
    """
    from busbw.api.training.proxying import ProxyRequest, train_proxy
    from busbw.model import codec
    from busbw.show.text.train_step import proxy_text

    found = train_proxy(ProxyRequest(**asked), lambda line: print(printable(line), file=sys.stderr))
    if as_json:
        sys.stdout.write(codec.encode_pretty(found.result).decode())
    else:
        proxy_text(found.result, found.log)
