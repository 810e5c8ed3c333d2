"""The model of a step against published steps that it was not fitted on."""

from functools import cache

import pytest

from busbw.facts.platforms import all_platforms, facts_of_gpus, find_platform
from busbw.model.train.workload import DataType
from busbw.train.planning import TrainMachine, constant_of_row, fitted_row, job_of_row, machine_of, work_of
from busbw.train.timing import terms_of, timed_calls
from busbw.train.workloads import workload_named

NVIDIA, AZURE = "nvidia-dgx-h100", "azure-nd-h100-v5"


@cache
def machine(platform: str) -> TrainMachine:
    return machine_of(find_platform(platform).platform, facts_of_gpus(all_platforms()))


def residuals(workload_name: str, platform: str, dtype: DataType) -> dict[int, float]:
    """Return model over published, less 1, of a platform's rows by their GPUs; the fitted row is left out."""
    workload = workload_named(workload_name)
    fitted = fitted_row(workload, dtype)
    assert fitted is not None
    constant = constant_of_row(workload, fitted, machine(fitted.platform), machine(platform))
    assert constant is not None
    found = {}
    for row in workload.published:
        if (row.platform, row.dtype) == (platform, dtype) and row is not fitted:
            work = work_of(job_of_row(workload, row), machine(platform))
            found[row.gpus] = terms_of(work, timed_calls(work)).at(constant.rate_flops).step_s / row.step_s - 1
    return found


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_every_row_of_nvidia_that_was_not_used_is_within_five_percent(dtype: DataType) -> None:
    found = residuals("grok1-314b", NVIDIA, dtype)
    assert sorted(found) == [8, 16, 32, 128, 256, 512, 1024, 2048]
    assert max(map(abs, found.values())) < 0.05


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_what_the_model_does_not_explain_of_azure_is_shown_as_a_gap(dtype: DataType) -> None:
    found = residuals("grok1-314b", AZURE, dtype)
    assert max(abs(found[gpus]) for gpus in (8, 16, 32, 64, 128, 256)) < 0.05
    assert found[512] < -0.05
    assert found[1024] < -0.05


def test_dense_models_have_constants_of_their_own_and_one_row_that_is_not_explained() -> None:
    bf16 = residuals("llama3-405b", NVIDIA, "bf16") | residuals("llama3-70b", NVIDIA, "bf16")
    assert max(map(abs, bf16.values())) < 0.05
    fp8 = residuals("llama3-405b", NVIDIA, "fp8")
    assert [gpus for gpus, residual in fp8.items() if abs(residual) > 0.05] == [2304]
