"""busbw behind a launcher: several copies refuse to start ranks, one is as good as none."""

from pathlib import Path

import pytest

from .runner import Busbw, Result, environment_of

SHORT = ("all_reduce", "-n", "2", "-b", "8", "-e", "64", "--time-limit", "2")


def behind_mpirun(busbw: Busbw, copies: int, *arguments: str) -> tuple[Result, list[tuple[str, str]]]:
    """Start copies of busbw with mpirun; return how that ended, and each copy's exit code and what it said.

    The shell around each copy ends well: mpirun kills the others as soon as one fails.
    """
    prefix = environment_of("Open MPI")
    own = 'rank=$OMPI_COMM_WORLD_RANK; "$0" "$@" >out.$rank 2>err.$rank; echo $? >code.$rank'
    options = ("--allow-run-as-root", "--oversubscribe", "-n", str(copies))
    command = [str(prefix / "bin" / "mpirun"), *options, "sh", "-c", own, str(prefix / "bin" / "busbw"), *arguments]
    result = busbw.start_command(command, busbw.environment()).finish()
    return result, [(said(busbw.folder, f"code.{n}").strip(), said(busbw.folder, f"err.{n}")) for n in range(copies)]


def said(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--plan",),
        ("--launcher", "processes", "--backend", "nccl"),
        # Each copy would submit a job.
        ("--launcher", "sbatch", "--nodes", "2"),
    ],
)
def test_each_of_several_copies_refuses_with_the_reason(busbw: Busbw, arguments: tuple[str, ...]) -> None:
    _result, copies = behind_mpirun(busbw, 2, "run", *SHORT, *arguments)

    assert len(copies) == 2
    for code, err in copies:
        assert code == "2"
        assert err.splitlines() == [
            "error: Open MPI's mpirun started busbw 2 times (OMPI_COMM_WORLD_SIZE=2): busbw starts the ranks itself",
            "hint: start busbw once, without that launcher; unset the variable where another step has left it behind",
        ]
    assert not busbw.runs.exists()


def test_several_copies_do_not_resume_a_run(busbw: Busbw) -> None:
    where = busbw.folder / "run"
    busbw("run", *SHORT, "-o", where)
    before = sorted(where.rglob("*"))

    _result, copies = behind_mpirun(busbw, 2, "run", "--resume", str(where))

    assert all(code == "2" and "started busbw 2 times" in err for code, err in copies), copies
    assert sorted(where.rglob("*")) == before


def test_one_copy_plans_as_if_there_were_no_launcher(busbw: Busbw) -> None:
    _result, copies = behind_mpirun(busbw, 1, "run", *SHORT, "--plan")

    assert copies[0][0] == "0", copies
    assert "busbw.rank" in said(busbw.folder, "out.0")
