"""Whether PyTorch is here, and plans of the small transformer."""

import importlib.util
import os
from dataclasses import replace
from pathlib import Path

import pytest

from busbw.model.train.proxy import ProxyPlan
from busbw.train.planning import job_of
from busbw.train.proxying import proxy_plan
from busbw.train.what_if import changed_layout
from busbw.train.workloads import workload_named

# What scripts/bootstrap.py leaves: why there is none.
_WHY = Path(__file__).parents[2] / ".venv" / ".torch"


def need_torch() -> None:
    """Skip without PyTorch, and say why; in CI that is a failure, but where pip finds no build for CPUs."""
    if importlib.util.find_spec("torch") is not None:
        return
    why = _WHY.read_text(encoding="utf-8").partition("\n")[0] if _WHY.is_file() else ""
    may_be = why.startswith("none: ")
    reason = f"no PyTorch here ({why or 'pip install torch==2.13.0+cpu'}): nothing of the transformer is tested"
    (pytest.fail if os.environ.get("CI") == "true" and not may_be else pytest.skip)(reason)


def toy(gpus: int, layout: str, *, dtype: str = "fp32", steps: int = 3, directory: Path = Path("/none")) -> ProxyPlan:
    """Return the plan of the smallest workload in a layout, always with the same batch."""
    job = job_of(workload_named("toy-moe"), gpus, dtype)  # type: ignore[arg-type]
    job = replace(job, configuration=changed_layout(f"{layout},global_batch=8", job.configuration))
    return proxy_plan(job, steps=steps, device="cpu", directory=str(directory))
