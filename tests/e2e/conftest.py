"""What every end-to-end test has at hand: the command, in a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .runner import Busbw


@pytest.fixture
def busbw(tmp_path: Path, settings_of_mpi: dict[str, str]) -> Iterator[Busbw]:
    """Return the command; afterwards check that no process of any run of the test is left."""
    made = Busbw(tmp_path, settings_of_mpi)
    yield made
    assert made.clean_up() == (), "processes of a run are left"
