"""What logs and traces of training jobs say, and how jobs scale: `train read`, `scale`."""

import sys
from typing import Any

import click

from busbw.base.errors import ExitCode
from busbw.cli.options import JSON
from busbw.model import codec


@click.command("read")
@click.argument("sources", nargs=-1, metavar="LOG...")
@click.option("--sequence", "sequence_length", type=int, metavar="N", help="Tokens of a sequence.")
@click.option("--batch", "global_batch", type=int, metavar="N", help="Sequences of a step over all GPUs.")
@click.option("--gpus", type=int, metavar="N", help="GPUs of the job.")
@click.option("--flops-per-step", type=float, metavar="X", help="Model FLOPs of a step over all GPUs.")
@click.option("--peak-tflops", type=float, metavar="X", help="Peak of one GPU for the data type, in TFLOP/s.")
@click.option("--workload", metavar="NAME|FILE.toml", help="What ran: fills what the log does not say.")
@click.option(
    "--dtype", type=click.Choice(("bf16", "fp16", "fp32", "fp8")), help="What matrices are multiplied in there."
)
@click.option("--platform", metavar="ID", help="Where it ran: the peak, and what the network may take of the step.")
@JSON
def read(*, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 - as click gives them
    """Say what logs and traces of training jobs tell: seconds a step, tokens a second, exposed communication.

    LOG is a log of Megatron-LM, NeMo, DeepSpeed, torchtitan, MaxText, Hugging Face's Trainer, Lightning or MLPerf, a
    trainer_state.json, a metrics.csv, a trace of PyTorch's profiler, records of NCCL Inspector, or - for standard
    input. What is given by options goes before what a log prints of itself.

    Exit code 0: told, with notes at most; 1: findings; 2: bad input; 4: nothing can be told beyond the numbers.
    """
    from busbw.api.training.reading import TrainReadRequest, train_read

    report = train_read(TrainReadRequest(**asked))
    if as_json:
        sys.stdout.write(codec.encode_pretty(report).decode())
    else:
        from busbw.show.text.train_reading import train_reading_text

        train_reading_text(report)
    found = [finding for log in report.logs for finding in log.findings]
    found += [finding for trace in report.traces for finding in trace.findings]
    if any(finding.is_serious for finding in found):
        sys.exit(ExitCode.FINDINGS)
    cannot = report.logs and not report.traces and all(log.outcome == "cannot_tell" for log in report.logs)
    sys.exit(ExitCode.CANNOT_TELL if cannot else ExitCode.OK)


@click.command("scale")
@click.argument("sources", nargs=-1, metavar="RUN...")
@click.option("--weak", "kind", flag_value="weak", help="The work grew with the machine [default: as batches tell].")
@click.option("--strong", "kind", flag_value="strong", help="The work stayed the same.")
@click.option("--by", "axis", type=click.Choice(["gpus", "nodes"]), help="What to draw over.")
@click.option("--base", type=int, metavar="N", help="Efficiency is against this place [default: of the largest work].")
@click.option("--against", metavar="NAME", help="The system, or line, that others are held against.")
@click.option("--ignore", "ignored", multiple=True, metavar="COLUMN", help="A column that may differ from the base.")
@click.option("--sequence", "sequence_length", type=int, metavar="N", help="Tokens of a sequence, where none is told.")
@click.option("--batch", "global_batch", type=int, metavar="N", help="Sequences of a step, where none is told.")
@click.option("--difference", "differences", multiple=True, metavar="NAME=PCT", help="A difference published alone.")
@click.option("--replay", "replays", multiple=True, metavar="RUN", help="The step of a log, replayed: what it exposes.")
@JSON
def scale(*, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 - as click gives them
    """Hold training jobs of several sizes against each other: efficiency, and how systems differ.

    RUN is a log or a trace that `busbw train read` reads and that says its GPUs, or a table: gpus, step_s,
    tokens_per_s, seqlen, gbs, and columns that tell lines apart; or a stored run of `busbw train run`. Numbers stand
    for all that they could have been rounded from. Where jobs, or replays of their steps, say what communication they
    wait for, a loss is split by it. What --json prints `busbw report --scaling` draws.

    Exit code 0: told, with notes at most; 1: findings; 2: bad input; 4: nothing can be told beyond the numbers.
    """
    from busbw.api.training.scaling import TrainScaleRequest, train_scale

    report = train_scale(TrainScaleRequest(**asked))
    if as_json:
        sys.stdout.write(codec.encode_pretty(report).decode())
    else:
        from busbw.show.text.scaling import scaling_text

        scaling_text(report)
    if any(finding.is_serious for finding in report.findings):
        sys.exit(ExitCode.FINDINGS)
    can_tell = report.verdict is not None and report.verdict.outcome != "cannot_tell"
    sys.exit(ExitCode.OK if can_tell else ExitCode.CANNOT_TELL)
