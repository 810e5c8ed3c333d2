"""The verb `train`: what a training job's logs and traces say, and how jobs scale."""

import sys
from typing import Any

import click

from busbw.base.errors import ExitCode
from busbw.cli.options import JSON
from busbw.model import codec


@click.group()
def train() -> None:
    """Training jobs: steps, tokens a second, communication, scaling."""


@train.command("read")
@click.argument("sources", nargs=-1, metavar="LOG...")
@click.option("--sequence", "sequence_length", type=int, metavar="N", help="Tokens of a sequence.")
@click.option("--batch", "global_batch", type=int, metavar="N", help="Sequences of a step over all GPUs.")
@click.option("--gpus", type=int, metavar="N", help="GPUs of the job.")
@click.option("--flops-per-step", type=float, metavar="X", help="Model FLOPs of a step over all GPUs.")
@click.option("--peak-tflops", type=float, metavar="X", help="Peak of one GPU for the data type, in TFLOP/s.")
@JSON
def read(*, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 - as click gives them
    """Say what logs and traces of training jobs tell: seconds a step, tokens a second, what is exposed.

    LOG is a log of Megatron-LM, NeMo, DeepSpeed, torchtitan, MaxText, Hugging Face's Trainer, Lightning or MLPerf, a
    trainer_state.json, a metrics.csv, a trace of PyTorch's profiler, records of NCCL Inspector, or - for standard input.
    What is given by options goes before what a log prints of itself.

    Exit code 0: told, with notes at most; 1: findings; 2: bad input; 4: nothing can be told beyond the numbers.
    """
    from busbw.api.train.reading import TrainReadRequest, train_read

    report = train_read(TrainReadRequest(**asked))
    if as_json:
        sys.stdout.write(codec.encode_pretty(report).decode())
    else:
        from busbw.show.text.train_reading import train_reading_text

        train_reading_text(report)
    found = [finding for each in (*report.logs, *report.traces) for finding in each.findings]
    if any(finding.is_serious for finding in found):
        sys.exit(ExitCode.FINDINGS)
    cannot = report.logs and not report.traces and all(log.outcome == "cannot_tell" for log in report.logs)
    sys.exit(ExitCode.CANNOT_TELL if cannot else ExitCode.OK)
