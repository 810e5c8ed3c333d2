"""The stand-ins, built once, and the command beside them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.standin.build import StandIn, build

from .harness import ROOT, NcclBusbw, without


@pytest.fixture(scope="session")
def standin() -> StandIn:
    """Return the stand-ins, built if need be; without g++ the test fails in CI and is skipped elsewhere."""
    if shutil.which("g++") is None:
        without("the stand-ins are built with g++")
    return build(ROOT / "build" / "standin")


@pytest.fixture
def busbw(tmp_path: Path, standin: StandIn, settings_of_mpi: dict[str, str]) -> Iterator[NcclBusbw]:
    """Return the command; afterwards check that no process of any run of the test is left."""
    made = NcclBusbw(tmp_path, settings_of_mpi, standin=standin)
    yield made
    assert made.clean_up() == (), "processes of a run are left"
