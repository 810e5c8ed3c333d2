"""The plan of a training step, as `busbw train plan --json` writes it, and what its communication is predicted to take.

Alone because a prediction of one collective reads no plan.
"""

from pathlib import Path

from busbw.base.errors import InputError
from busbw.machine.named import platform
from busbw.model import codec
from busbw.model.predict.step import PredictedStep
from busbw.model.train.plan import TrainPlan
from busbw.predict.steps import overlap_of, predicted_step
from busbw.store import documents
from busbw.store.files import read_bounded

MOST_BYTES = 64 * 2**20
_SCHEMA = 1


def predict_workload(path: Path, overlap: str, platform_name: str | None = None) -> PredictedStep:
    """Return the communication of a planned step; `platform_name` in place of the plan's.

    Raises InputError for what is no plan, and for a platform that there is not.
    """
    plan = read_plan(read_bounded(path, most_bytes=MOST_BYTES, kind="plan of a step"), str(path))
    here = platform(platform_name or plan.platform).platform
    has = platform(plan.platform).platform.gpu.count
    if here.gpu.count != has:
        raise InputError(
            f"the plan is of {has} GPUs a node, and a node of {here.id} has {here.gpu.count}",
            where=str(path),
            hint=f"busbw train plan WORKLOAD --platform {here.id} --gpus {plan.gpus} --json",
        )
    return predicted_step(plan, here, overlap_of(overlap), str(path))


def read_plan(raw: bytes, where: str) -> TrainPlan:
    """Return the plan that a file holds. Raises InputError for what is none."""
    codec.check_schema(raw, _SCHEMA, where=where)
    hint = "busbw train plan WORKLOAD --platform ID --gpus N --json > FILE"
    return documents.decoded(raw, TrainPlan, where=where, called="a plan of a training step", hint=hint)
