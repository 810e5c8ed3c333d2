"""The model of a step against published steps that it was not fitted on."""

import pytest

from busbw.api.training.planning import TrainRequest, plan_training

NVIDIA = "nvidia-dgx-h100"
GPUS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)


def residuals(platform: str, dtype: str, gpus: tuple[int, ...]) -> dict[int, tuple[float, bool]]:
    """Return model over published, less 1, of the platform's own rows, and whether the row was fitted."""
    found = {}
    for number in gpus:
        plan = plan_training(TrainRequest(workload="grok1-314b", platform=platform, gpus=number, dtype=dtype))  # type: ignore[arg-type]
        machine = "DGX H100 (NVIDIA)" if platform == NVIDIA else "Azure ND H100 v5"
        held = next(each for each in plan.published if each.machine == machine)
        assert held.residual is not None
        found[number] = (held.residual, held.fitted)
    return found


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_every_row_of_nvidia_is_within_five_percent_of_a_model_with_one_constant(dtype: str) -> None:
    found = residuals(NVIDIA, dtype, GPUS)
    assert [gpus for gpus, (_, fitted) in found.items() if fitted] == [64]
    assert found[64][0] == pytest.approx(0, abs=1e-6)
    assert max(abs(residual) for residual, _ in found.values()) < 0.05


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_what_the_model_does_not_explain_of_azure_is_shown_as_a_gap(dtype: str) -> None:
    found = residuals("azure-nd-h100-v5", dtype, (256, 512, 1024))
    assert abs(found[256][0]) < 0.05
    assert found[512][0] < -0.05
    assert found[1024][0] < -0.05
