"""The launcher itself fails: what it said is repeated, nothing is left, nothing is made up."""

import os
import signal
import sys
import venv
from pathlib import Path

import pytest
from tests.survival.mpi import unless_every

from .runner import Busbw, children_of, environment_of, left_of, program, read_run

SIZES = ("-n", 2, "-b", "4K", "-e", "64K", "-i", "4K", "--time-limit", 4, "--max-samples", 400)
BYTES = [4096 * number for number in range(1, 17)]


def fake_mpirun(folder: Path, version: str, script: str, library: str = "libmpi.so.40") -> dict[str, str]:
    """Put a program first on PATH that says it is an mpirun of `version`, with the real library where it belongs."""
    program(
        folder / "bin" / "mpirun",
        f"#!/bin/sh\nif [ \"$1\" = --version ]; then printf '{version}'; exit 0; fi\n{script}\n",
    )
    (folder / "lib").mkdir()
    open_mpi = environment_of("Open MPI") / "lib"
    for entry in open_mpi.iterdir():
        if not entry.name.startswith(("libmpi.", "python")):
            (folder / "lib" / entry.name).symlink_to(entry)
    (folder / "lib" / library).symlink_to(open_mpi / "libmpi.so.40")
    return {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def test_an_mpirun_that_fails_is_quoted(busbw: Busbw):
    fake = fake_mpirun(
        busbw.folder / "site", "mpirun (Open MPI) 5.0.8\\n", 'echo "no slots left on this machine" >&2; exit 17'
    )

    result = busbw("run", "all_reduce", *SIZES, env=fake)

    assert result.code == 3, result
    run = read_run(busbw.directory())
    assert run.plan.mpi.origin == "site"
    assert "no slots left on this machine" in run.verdict.sentence
    assert "17" in run.verdict.sentence
    assert "no slots left" in (busbw.directory() / "raw" / "launcher.0.stderr").read_text(encoding="utf-8")


def test_an_mpirun_that_does_nothing_is_no_success(busbw: Busbw):
    fake = fake_mpirun(busbw.folder / "site", "mpirun (Open MPI) 5.0.8\\n", "exit 0")

    result = busbw("run", "all_reduce", *SIZES, env=fake)

    assert result.code == 3, result
    assert "without a result" in read_run(busbw.directory()).verdict.sentence


def test_an_mpirun_that_cannot_say_its_version_is_bad_input(busbw: Busbw):
    broken = program(
        busbw.folder / "site" / "bin" / "mpirun", "#!/bin/sh\necho 'libprrte.so.3: not found' >&2\nexit 127\n"
    )

    result = busbw("run", "all_reduce", env={"PATH": f"{broken.parent}:{os.environ['PATH']}"})

    assert_bad_input(result.code, result.err)
    assert "mpirun --version failed with code 127: libprrte.so.3: not found" in result.err
    assert str(broken) in result.err
    assert not busbw.runs.exists()


@pytest.mark.parametrize("version", ["Job Launcher 3.1\\n", ""])
def test_an_mpirun_of_an_unknown_family_is_bad_input(busbw: Busbw, version: str):
    fake = fake_mpirun(busbw.folder / "site", version, "exit 1")

    result = busbw("run", "all_reduce", env=fake)

    assert_bad_input(result.code, result.err)
    assert "do not know how to start ranks with this mpirun" in result.err


def test_an_mpirun_without_its_library_is_bad_input(busbw: Busbw):
    fake = fake_mpirun(busbw.folder / "site", "mpirun (Open MPI) 5.0.8\\n", "exit 1", library="libother.so")

    result = busbw("run", "all_reduce", env=fake)

    assert_bad_input(result.code, result.err)
    assert "Open MPI 5.0.8 is here, but not its library (libmpi.so.40" in result.err


def test_ranks_that_do_not_know_of_each_other_are_refused(busbw: Busbw):
    # What happens when mpirun belongs to another MPI than the library: n runs of one rank each.
    alone = (
        'while [ "$1" != -n ]; do shift; done; ranks=$2; while [ "${1#/}" = "$1" ]; do shift; done\n'
        'for rank in $(seq "$ranks"); do "$@" & done; for rank in $(seq "$ranks"); do wait; done; exit 1'
    )
    version = "HYDRA build details:\\n    Version:                                 4.2.3\\n"
    fake = fake_mpirun(busbw.folder / "site", version, alone, library="libmpi.so.12")

    result = busbw("run", "all_reduce", *SIZES, env=fake)

    assert result.code == 3, result
    assert left_of(busbw.folder) == ()
    run = read_run(busbw.directory())
    assert run.measurements == ()
    assert "1 process started, 2 planned" in run.verdict.sentence
    assert "Open MPI" in run.verdict.sentence


def test_a_library_that_cannot_be_loaded_is_quoted(busbw: Busbw):
    site = busbw.folder / "site"
    fake = fake_mpirun(site, "mpirun (Open MPI) 5.0.8\\n", 'while [ "${1#/}" = "$1" ]; do shift; done; exec "$@"')
    (site / "lib" / "libmpi.so.40").unlink()
    (site / "lib" / "libmpi.so.40").write_bytes(b"not a library")

    result = busbw("run", "all_reduce", *SIZES, env=fake)

    assert result.code == 3, result
    sentence = read_run(busbw.directory()).verdict.sentence
    assert "rank failed at loading MPI: cannot load MPI library" in sentence
    assert str(site / "lib" / "libmpi.so.40") in sentence


@pytest.mark.parametrize("mpi", ["Open MPI", unless_every("MPICH")])
def test_an_mpirun_that_vanishes_takes_the_run_with_it(busbw: Busbw, mpi: str):
    started = busbw.start("run", "all_reduce", *SIZES, mpi=mpi, env=busbw.held(3072, mpi))
    started.wait_for("ended by")
    (mpirun,) = children_of(started.process.pid)
    os.kill(mpirun, signal.SIGKILL)

    result = started.finish()

    assert result.code == 3, result
    assert left_of(busbw.folder) == ()
    run = read_run(busbw.directory())
    assert "mpirun" in run.verdict.sentence
    assert "killed by signal 9 (SIGKILL)" in run.verdict.sentence
    assert run.measurements != ()
    assert busbw("show", mpi=mpi).out == result.out
    resumed = busbw.to_the_end(busbw("run", "--resume", "last", mpi=mpi), mpi)
    assert resumed.code in {0, 1, 4}, resumed
    assert [point.size_bytes for point in read_run(busbw.directory()).measurements] == BYTES


def test_no_mpi_at_all_is_bad_input_with_a_way_out(busbw: Busbw):
    # An environment of its own without mpirun, that sees the packages of the one under test.
    prefix = busbw.folder / "no-mpi"
    venv.create(prefix, symlinks=True)
    (packages,) = prefix.glob("lib/python*/site-packages")
    original = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "busbw.pth").write_text(f"import site; site.addsitedir({original!r})\n", encoding="utf-8")
    environment = {**busbw.environment(), "PATH": "/usr/bin:/bin"}

    result = busbw.start_command(
        [str(prefix / "bin" / "python"), "-c", "from busbw.cli import main; main()", "run", "all_reduce"], environment
    ).finish()

    assert_bad_input(result.code, result.err)
    assert "no MPI: neither mpirun nor mpiexec is on PATH" in result.err
    assert "pip install 'busbw[mpi]'" in result.err


def assert_bad_input(code: int, err: str) -> None:
    """Check the form of every refusal."""
    assert code == 2, err
    assert err.startswith("error: ")
    assert len(err.splitlines()) <= 4
