"""Libraries made from NCCL: an alltoall called ncclAllToAll, and settings of MSCCL that a library does not read."""

import subprocess
from pathlib import Path

import pytest

from .harness import BRIEF, NcclBusbw, assert_all_right, assert_refused

# An msccl-executor-nccl: all of the stand-in's NCCL, and the two names that it has beyond NCCL's.
EXECUTOR = r"""
#include <stdio.h>
#include <stdlib.h>
typedef struct comm comm;
typedef struct stream stream;
int ncclSend(const void*, size_t, int, int, comm*, stream*);
int ncclRecv(void*, size_t, int, int, comm*, stream*);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclCommCount(comm*, int*);
int ncclCommInitRank(void) { return 5; }
int mscclLoadAlgo(void) { return 5; }
int ncclAllToAll(const void* from, void* into, size_t count, int type, comm* all, stream* on) {
    int ranks = 0;
    ncclCommCount(all, &ranks);
    FILE* told = fopen(getenv("NCCL_TOLD_OF_ALLTOALL"), "a");
    fprintf(told, "%d ranks\n", ranks);
    fclose(told);
    ncclGroupStart();
    for (int peer = 0; peer < ranks; ++peer) {
        ncclSend((const char*)from + (size_t)peer * count * 4, count, type, peer, all, on);
        ncclRecv((char*)into + (size_t)peer * count * 4, count, type, peer, all, on);
    }
    return ncclGroupEnd();
}
"""
TWO = (*BRIEF, "--ranks", 2, "-b", "1K", "-e", "1K", "--time-limit", 0.5)


@pytest.fixture
def executor(busbw: NcclBusbw) -> Path:
    """Return an msccl-executor-nccl over the stand-in."""
    real = busbw.standin.nccl(22203)
    folder = busbw.folder / "msccl"
    folder.mkdir()
    source, made = folder / "executor.c", folder / "libnccl.so.2"
    source.write_text(EXECUTOR)
    command = ["gcc", "-shared", "-fPIC", str(source), "-Wl,--no-as-needed", str(real), f"-Wl,-rpath,{real.parent}"]
    subprocess.run([*command, "-o", str(made)], check=True, timeout=60)
    return made


def over(busbw: NcclBusbw, nccl: Path, *arguments: object) -> tuple[object, ...]:
    """Return a command over one libnccl and the stand-ins for the rest."""
    rest = ("--driver", busbw.standin.cuda, "--nvrtc", busbw.standin.nvrtc)
    return ("run", *arguments, "--backend", "nccl", "--launcher", "processes", "--nccl", nccl, *rest)


def test_an_alltoall_of_msccl_is_called_by_its_own_name(busbw: NcclBusbw, executor: Path):
    told = busbw.folder / "told"
    env = {"NCCL_TOLD_OF_ALLTOALL": str(told)}

    result = busbw(*over(busbw, executor, "alltoall", "alltoall_2dh", *TWO, "--group", 2), env=env)

    assert_all_right(busbw, result, env)
    # The two-level form calls it too, for each of its levels: of two ranks, and of one.
    assert {"2 ranks", "1 ranks"} == set(told.read_text().splitlines())
    run = busbw.run_of()
    assert run.plan.gpus is not None
    assert (run.plan.gpus.nccl.version, run.plan.gpus.nccl.path) == ("2.22.3", str(executor))


def test_a_library_that_reads_a_folder_of_algorithms_is_taken_with_it(busbw: NcclBusbw, executor: Path):
    result = busbw(*over(busbw, executor, "all_reduce", *TWO, "--plan"), env={"MSCCL_ALGO_DIR": "/opt/algorithms"})

    assert result.code == 0, result


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MSCCL_XML_FILES", "it is for MSCCL, and this is NCCL 2.28.9"),
        ("MSCCL_CONFIG", "it is for MSCCL, and this is NCCL 2.28.9"),
        ("MSCCL_ALGO_DIR", "it is for msccl-executor-nccl and RCCL, and this is NCCL 2.28.9"),
    ],
)
def test_algorithms_that_the_library_does_not_read_are_refused(busbw: NcclBusbw, name: str, words: str):
    result = busbw.nccl("alltoall", *TWO, env={name: "/opt/two-step.xml"})

    assert_refused(result, f'{name} = "/opt/two-step.xml" does nothing', words, "--> ", "ENV090")


def test_files_of_the_fork_are_refused_over_the_executor(busbw: NcclBusbw, executor: Path):
    result = busbw(*over(busbw, executor, "alltoall", *TWO), env={"MSCCL_XML_FILES": "two-step.xml"})

    assert_refused(result, "it is for MSCCL, and this is msccl-executor-nccl 2.22.3")


def test_a_side_of_a_comparison_is_refused_before_anything_is_measured(busbw: NcclBusbw):
    out = busbw.folder / "tried"
    sides = ("--set", "default", "--set", "MSCCL_XML_FILES=two-step.xml")

    result = busbw("compare", "alltoall", *TWO, "--backend", "nccl", *busbw.libraries(), *sides, "--out", out)

    assert_refused(result, "MSCCL_XML_FILES")
    assert not out.exists()


def test_a_library_in_the_place_of_nccl_that_ranks_would_not_call_is_refused(busbw: NcclBusbw):
    made = busbw.folder / "libmscclpp_nccl.so"
    subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", str(made)], check=True, timeout=60)

    result = busbw(*busbw.nccl_arguments("all_reduce", *TWO), env={"LD_PRELOAD": str(made)})

    assert_refused(result, "libmscclpp_nccl.so in LD_PRELOAD", "--backend nccl-tests")
    assert busbw.nccl("all_reduce", *TWO, "--plan", env={"MSCCLPP_LOG_LEVEL": "INFO"}).code == 0
