"""A rank computes for ever where the others wait for it: polling a network tells it apart from those."""

import subprocess

import pytest
from tests.e2e.runner import SHIMS

from .mpi import NAMES, unless_every
from .several import BYTES, SIZES, Several


@pytest.mark.parametrize("several", [unless_every(name) for name in NAMES], indirect=True)
def test_a_rank_that_spins_in_a_call_is_named_or_nobody_is(several: Several) -> None:
    library = several.folder / "fail.so"
    compiler = several.mpi.busbw / "bin" / "mpicc"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", library, SHIMS / "fail.c"]
    subprocess.run(command, check=True, env=several.environment())
    # The second size; there is time enough to come to it, also on cores that others hold.
    told = {"LD_PRELOAD": str(library), "FAIL_RANK": "2", "FAIL_COUNT": "2048", "FAIL_CALL": "2", "FAIL_HOW": "spin"}
    several.everywhere(**told)

    several.start("run", "all_reduce", *SIZES, "--time-limit", 60, *several.way, env=told)

    assert several.finish() == 3, several.said
    run = several.run()
    assert run.outcome is not None
    assert run.autopsy is not None
    assert [point.size_bytes for point in run.measurements] == BYTES[:1]
    if run.outcome.culprit is None:
        assert "cannot tell: all ranks are in the same call" in str(run.outcome.cause), several.said
    else:
        assert run.outcome.culprit.rank == 2, several.said
        assert "computes or spins outside of MPI" in run.outcome.culprit.what
    several.check_nothing_left()
