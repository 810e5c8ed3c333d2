"""A launcher that gives ranks no CPUs of their own is not believed to have done so."""

import pytest

from busbw.base.errors import InputError
from busbw.measure.backends import registry
from busbw.measure.plan.placing import launcher_of
from busbw.model.request import Request

from .test_recommended import surroundings

NCCL = registry.find("native-nccl")


@pytest.mark.parametrize("launcher", ["processes", "torchrun"])
@pytest.mark.parametrize("binding", ["core", "numa", "masks"])
def test_cpus_are_refused_where_the_launcher_gives_none(launcher: str, binding: str) -> None:
    with pytest.raises(InputError, match=f"{launcher} gives ranks no CPUs of their own"):
        launcher_of(Request(launcher=launcher, binding=binding), surroundings(), NCCL)


@pytest.mark.parametrize("binding", [None, "none", "default"])
def test_what_asks_for_no_cpus_is_started(binding: str | None) -> None:
    assert (
        launcher_of(Request(launcher="processes", binding=binding), surroundings(), NCCL).launcher.name == "processes"
    )


def test_mpirun_binds() -> None:
    assert launcher_of(Request(launcher="mpirun", binding="core"), surroundings(), NCCL).launcher.binds
