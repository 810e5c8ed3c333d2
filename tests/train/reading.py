"""Logs as bytes, read as `busbw train read` does."""

from pathlib import Path

from busbw.api.training.reading import TrainReadRequest, train_read
from busbw.model.train.reading import TrainingLog

SAMPLES = Path(__file__).parent / "samples"


def read_log(path: Path, **asked: object) -> TrainingLog:
    """Return what one log says."""
    (log,) = train_read(TrainReadRequest(sources=(str(path),), **asked)).logs  # type: ignore[arg-type]
    return log


def read_text(folder: Path, text: str | bytes, **asked: object) -> TrainingLog:
    """Return what a log with this text says."""
    path = folder / "job.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_log(path, **asked)


def megatron(step: int, ms: float, *, total: int = 500, batch: int = 1024) -> str:
    """Return a line as Megatron-LM prints it."""
    return (
        f" [2026-11-21 12:00:00.123456] iteration {step:8d}/{total:8d} | consumed samples: {step * batch:12d} | "
        f"elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.5E-04 | global batch size: {batch:5d} | "
        "lm loss: 7.1E+00 |\n"
    )
