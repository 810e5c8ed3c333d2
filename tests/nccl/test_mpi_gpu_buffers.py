"""MPI between memory of GPUs: refused with the exact reason, and measured and verified where MPI takes such memory.

The stand-in of the driver has its memory on the host, so that any MPI can send it; that an MPI says it was built with
CUDA is made up: by an ompi_info that says so beside mpirun, and by a library with the function that ranks ask.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.runner import environment_of, read_run

from busbw.machine.read.kernel import built_with_cuda
from busbw.rank.gpu_buffers import refusal

from .harness import NcclBusbw, assert_refused

BRIEF = ("-n", 2, "-b", 8, "-e", 1024, "-f", 128, "--calls", 1, "-w", 1, "--max-samples", 1, "--time-limit", 8)
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter")
PAIRS = ("sendrecv", "latency", "bandwidth", "bibw")
SAYS_YES = "mca:opal:base:param:opal_built_with_cuda_support:value:true"


@pytest.fixture
def mpirun(tmp_path: Path) -> Path:
    """Return the mpirun of the environment, beside an ompi_info that says CUDA."""
    folder = tmp_path / "mpi" / "bin"
    folder.mkdir(parents=True)
    (folder / "mpirun").symlink_to(environment_of("Open MPI") / "bin" / "mpirun")
    (folder / "ompi_info").write_text(f"#!/bin/sh\necho {SAYS_YES}\n")
    (folder / "ompi_info").chmod(0o755)
    return folder / "mpirun"


@pytest.fixture
def answers(tmp_path: Path):
    """Return a function that makes a library whose MPIX_Query_cuda_support answers something."""

    def made(answer: int) -> str:
        source, library = tmp_path / f"says{answer}.c", tmp_path / f"libsays{answer}.so"
        source.write_text(f"int MPIX_Query_cuda_support(void) {{ return {answer}; }}\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        return str(library)

    return made


def test_an_mpi_built_without_cuda_is_refused_and_its_build_named(busbw: NcclBusbw) -> None:
    result = busbw("run", "all_reduce", *BRIEF, "--gpu-buffers")

    assert_refused(result, "was built without CUDA", "opal_built_with_cuda_support false", "--mpirun")


def test_a_host_without_a_driver_is_refused(busbw: NcclBusbw, mpirun: Path) -> None:
    result = busbw("run", "all_reduce", *BRIEF, "--gpu-buffers", "--mpirun", mpirun, "--driver", "/no/libcuda.so.1")

    assert_refused(result, "/no/libcuda.so.1")


def test_a_library_that_is_no_driver_is_refused(busbw: NcclBusbw, mpirun: Path, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("no library")

    result = busbw(
        "run", "all_reduce", *BRIEF, "--gpu-buffers", "--mpirun", mpirun, "--driver", tmp_path / "libcuda.so.1"
    )

    assert_refused(result, "no GPU for buffers")


def test_a_two_level_alltoall_is_refused(busbw: NcclBusbw) -> None:
    result = busbw("run", "alltoall_2dh", *BRIEF, "-n", 4, "--group", 2, "--gpu-buffers")

    assert_refused(result, "a two-level alltoall copies in host memory")


def test_ranks_whose_mpi_says_no_fail_with_what_it_said(busbw: NcclBusbw, mpirun: Path, answers) -> None:
    result = busbw(
        *("run", "all_reduce", *BRIEF, "--gpu-buffers", "--mpirun", mpirun, "--driver", busbw.standin.cuda),
        env={"LD_PRELOAD": answers(0)},
    )

    assert result.code == 3, result
    assert "takes no CUDA memory (MPIX_Query_cuda_support)" in result.out + result.err
    assert "Traceback" not in result.out


def test_buffers_on_gpus_are_measured_and_every_element_is_right(busbw: NcclBusbw, mpirun: Path, answers) -> None:
    result = busbw(
        *("run", *COLLECTIVES, *PAIRS, *BRIEF, "--gpu-buffers", "--mpirun", mpirun, "--driver", busbw.standin.cuda),
        env={"LD_PRELOAD": answers(1)},
    )

    assert result.code in (0, 1, 4), result
    run = read_run(busbw.directory())
    assert {one.collective for one in run.measurements} == {*COLLECTIVES, *PAIRS}
    assert [one.collective for one in run.measurements if one.wrong is not None or not one.verified] == []
    assert run.plan.mpi_driver is not None
    assert run.plan.mpi_driver.path == str(busbw.standin.cuda)
    assert run.rates.copies == ()
    assert any("buffers are in GPU memory" in note for note in run.plan.notes)


def test_a_result_that_is_wrong_on_the_gpu_is_found(busbw: NcclBusbw, mpirun: Path, answers) -> None:
    spoiled = {**busbw.shim("wrong"), "WRONG_RANK": "1", "WRONG_INDEX": "27", "WRONG_COUNT": "256"}
    spoiled["LD_PRELOAD"] = f"{answers(1)}:{spoiled['LD_PRELOAD']}"

    result = busbw(
        *("run", "all_reduce", *BRIEF, "-d", "int32", "--gpu-buffers", "--mpirun", mpirun),
        *("--driver", busbw.standin.cuda),
        env=spoiled,
    )

    assert result.code == 1, result
    (wrong,) = [one.wrong for one in read_run(busbw.directory()).measurements if one.wrong is not None]
    assert (wrong.rank, wrong.mismatch.index, wrong.mismatch.wrong) == (1, 27, 1)


def test_in_place_input_lies_on_the_gpu_too(busbw: NcclBusbw, mpirun: Path, answers) -> None:
    result = busbw(
        *("run", "all_reduce", "all_gather", *BRIEF, "--in-place", "in", "--gpu-buffers", "--mpirun", mpirun),
        *("--driver", busbw.standin.cuda),
        env={"LD_PRELOAD": answers(1)},
    )

    assert result.code in (0, 1, 4), result
    run = read_run(busbw.directory())
    assert run.measurements
    assert all(one.verified and one.wrong is None for one in run.measurements)


def test_floats_that_only_busbw_adds_are_refused_by_the_ranks(busbw: NcclBusbw, mpirun: Path, answers) -> None:
    result = busbw(
        *("run", "all_reduce", *BRIEF, "-d", "bfloat16", "--gpu-buffers", "--mpirun", mpirun),
        *("--driver", busbw.standin.cuda),
        env={"LD_PRELOAD": answers(1)},
    )

    assert result.code == 3, result
    assert "this MPI cannot add bfloat16" in result.out + result.err


@pytest.mark.parametrize(
    ("text", "has_cuda"),
    [
        (SAYS_YES, True),
        ("x\nmca:mpi:base:param:mpi_built_with_cuda_support:value:true\n", True),
        ("mca:opal:base:param:opal_built_with_cuda_support:value:false\n", False),
        ("mca:opal:base:param:opal_built_with_cuda_support:source:default\n", None),
        ("options:mpi_ext:cuda\n", None),
        ("", None),
    ],
)
def test_what_ompi_info_says_of_cuda_is_read_in_both_forms(text, has_cuda) -> None:
    found = built_with_cuda(text)

    assert (found.has_cuda if found is not None else None) is has_cuda


def test_a_library_without_either_function_does_not_say() -> None:
    assert "does not say whether it takes CUDA memory" in (refusal("libc.so.6") or "")


def test_the_program_says_what_a_driver_has(busbw: NcclBusbw) -> None:
    # Each in a process of its own: a driver counts its GPUs once.
    found, missing = (
        subprocess.run(
            [sys.executable, "-m", "busbw.rank.gpu_buffers", driver],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        for driver in (str(busbw.standin.cuda), "/no/libcuda.so.1")
    )
    assert (found.returncode, found.stdout.split()[1]) == (0, "4")
    assert missing.returncode == 1
    assert "libcuda" in missing.stderr
