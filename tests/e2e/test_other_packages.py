"""A backend and a launcher of another package: planned, run, stored, shown and repeated by busbw as it is."""

import html
import shlex
import sys
from pathlib import Path

import pytest

from busbw.show.reproduce import command_of

from .runner import Busbw, Result, program, read_plan, read_run

# As an installer lays a package down: two modules, and metadata with their entry points.
PACKAGE = {"PYTHONPATH": str(Path(__file__).with_name("toy"))}
PROGRAM = f"""#!{sys.executable}
import os, sys
here = os.environ.get
if int(here("OMPI_COMM_WORLD_RANK", "0")) == 0:
    if here("TOY_BREAKS"):
        sys.exit("toy broke: a wheel came off")
    print("# toy", here("OMPI_COMM_WORLD_SIZE", "1"), "all_reduce", here("TOY_LAUNCHER", "nobody"), flush=True)
    for size in map(int, sys.argv[1:]):
        print(size, 10 + size / 64, flush=True)
"""


def toy(busbw: Busbw, *more: object, env: dict[str, str] | None = None) -> Result:
    path = program(busbw.folder / "bin" / "toy_all_reduce", PROGRAM)
    words = ("run", "all_reduce", "--backend", "toy", "--bin", path, "-b", 64, "-e", 256, "--launches", 2)
    return busbw(*words, *more, env={**PACKAGE, **(env or {})})


def printed(directory: Path) -> str:
    return (directory / "raw" / "launcher.0.0.stdout").read_text()


@pytest.mark.parametrize(
    ("words", "launcher", "head"),
    [
        ((), "local", "# toy 2 all_reduce nobody"),
        (("--launcher", "direct"), "direct", "# toy 1 all_reduce nobody"),
        (("--launcher", "wrapped", "--ranks", 3), "wrapped", "# toy 3 all_reduce wrapped"),
    ],
)
def test_its_program_is_planned_run_stored_shown_and_repeated(
    busbw: Busbw, words: tuple[object, ...], launcher: str, head: str
):
    planned = toy(busbw, *words, "--plan")
    assert planned.code == 0, planned
    assert "toy_all_reduce 64 128 256" in planned.out

    result = toy(busbw, *words)

    run = read_run(busbw.directory())
    assert [(one.size_bytes, one.samples) for one in run.measurements] == [(64, 2), (128, 2), (256, 2)], result
    assert run.measurements[1].median_s == pytest.approx(12e-6)
    assert (run.plan.backend, run.plan.launcher) == ("toy", launcher)
    assert printed(busbw.directory()).startswith(head)
    # With two samples there is no verdict, which is no mistake of theirs.
    for verb in ("show", "load"):
        shown = busbw(verb, busbw.directory(), env=PACKAGE)
        assert shown.code == result.code == 4, shown
    command = command_of(run.plan)
    assert command is not None
    again = busbw(*shlex.split(command)[1:], "--launches", 2, "--plan", "--out", busbw.folder / "again", env=PACKAGE)
    assert again.code == 0, again
    assert f"{busbw.folder}/bin/toy_all_reduce 64 128 256" in again.out
    assert ("TOY_LAUNCHER=wrapped" in again.out) == (launcher == "wrapped")


def test_a_report_has_the_command_that_repeats_it(busbw: Busbw):
    toy(busbw, "--launcher", "wrapped")

    result = busbw("report", busbw.directory(), "-o", busbw.folder / "report.html", env=PACKAGE)

    assert result.code == 0, result
    command = command_of(read_plan(busbw.directory()))
    assert command is not None
    assert "--launcher wrapped" in command
    assert html.escape(command, quote=False) in (busbw.folder / "report.html").read_text()


def test_its_launcher_starts_our_own_ranks(busbw: Busbw):
    words = ("--launcher", "wrapped", "--ranks", 2, "-b", 64, "-e", 128, "--time-limit", 2, "--check", 0)
    result = busbw("run", "all_reduce", *words, env=PACKAGE)

    plan = read_plan(busbw.directory())
    assert (plan.backend, plan.launcher) == ("native-mpi", "wrapped")
    assert plan.job.argv[:2] == ("env", "TOY_LAUNCHER=wrapped")
    assert [one.size_bytes for one in read_run(busbw.directory()).measurements] == [64, 128], result


def test_its_launcher_starts_programs_with_the_settings_of_a_platform(busbw: Busbw):
    words = ("launch", "--platform", "azure-nd-h100-v5", "--nodes", 2, "--launcher", "wrapped", "--", "./train")
    result = busbw(*words, env=PACKAGE)

    assert result.code == 0, result
    assert "TOY_LAUNCHER=wrapped mpirun" in result.out
    assert "./train" in result.out


def test_what_its_program_says_is_the_cause(busbw: Busbw):
    result = toy(busbw, "--launcher", "direct", env={"TOY_BREAKS": "1"})

    assert result.code == 3, result
    assert "toy broke: a wheel came off" in result.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gpu-buffers",), "toy has no --gpu-buffers"),
        (("--mode", "graph"), "toy has no graph mode"),
        (("--ranks", 5), "toys are few"),
        (("--launcher", "processes"), "processes does not start toy"),
        (("--launcher", "unknown"), "direct, wrapped"),
    ],
)
def test_what_it_cannot_do_is_refused(busbw: Busbw, words: tuple[object, ...], said: str):
    result = toy(busbw, *words)

    assert result.code == 2, result
    assert said in result.err


def test_without_its_package_a_stored_run_says_what_is_missing(busbw: Busbw):
    toy(busbw, "--launcher", "direct")

    assert busbw("show", busbw.directory()).code == 4
    loaded = busbw("load", busbw.directory())
    assert loaded.code == 2, loaded
    assert "'toy' is not a backend" in loaded.err
