"""What busbw says to try must be there to be tried."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.judge.factories import make_measurement, make_plan

from busbw.base.collectives import MPI_COLLECTIVES, NCCL_COLLECTIVES
from busbw.facts.envvars import algorithms
from busbw.judge.expectation import advice


def test_advice_is_a_loop_to_paste_that_measures_the_same_point():
    slow = make_measurement(collective="reduce_scatter", size_bytes=2**24, ranks=8)

    line = advice(make_plan(), slow).removeprefix("try its other algorithms: `").removesuffix("`")

    assert "OMPI_MCA_coll_tuned_use_dynamic_rules=1" in line
    assert "busbw run reduce_scatter --ranks 8 -b 16M -e 16M" in line
    subprocess.run(["bash", "-n", "-c", line], check=True)


def test_every_collective_of_every_family_gets_some_advice():
    for family in ("Open MPI", "MPICH", "Intel MPI", "MVAPICH", "unknown"):
        for name in MPI_COLLECTIVES:
            assert "MPI" in advice(make_plan(family=family), make_measurement(collective=name))


def test_without_mpi_the_advice_is_of_nccl():
    for name in NCCL_COLLECTIVES:
        assert "NCCL_ALGO=" in advice(replace(make_plan(), mpi=None), make_measurement(collective=name))


def test_every_choice_is_of_a_collective_that_busbw_measures():
    for family in algorithms().values():
        assert set(family.choices) <= set(MPI_COLLECTIVES)


def test_open_mpi_knows_every_variable_and_value():
    program = Path(sys.prefix, "bin", "ompi_info")
    if not program.exists() and shutil.which("ompi_info") is None:
        pytest.fail("no ompi_info: install the extra [mpi]")

    text = subprocess.run(
        [program if program.exists() else "ompi_info", "--param", "coll", "tuned", "--level", "9"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    for choice in algorithms()["Open MPI"].choices.values():
        name = choice.variable.removeprefix("OMPI_MCA_")
        about = text[text.index(f'"{name}"') :]
        line = next(line for line in about.splitlines() if "Valid values:" in line)
        offered = {entry.strip().partition("|")[2] for entry in line.partition("Valid values:")[2].split(",")}
        assert set(choice.values) <= offered, name
