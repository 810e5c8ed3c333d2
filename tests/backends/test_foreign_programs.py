"""How programs of others are found, and what is told from their files alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from busbw.base.errors import InputError
from busbw.machine.capture import programs


def write(path: Path, text: str = "#!/bin/sh\necho 'USAGE: x'\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_program_is_found_below_a_folder_by_the_first_of_its_names(tmp_path: Path):
    write(tmp_path / "build" / "all_reduce_perf_mpi")
    second = write(tmp_path / "build" / "more" / "all_reduce_perf")

    assert programs.find(("all_reduce_perf", "all_reduce_perf_mpi"), str(tmp_path)) == str(second)


def test_a_program_is_found_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = write(tmp_path / "osu_bw")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert programs.find(("osu_bw",), None) == str(made)
    with pytest.raises(InputError, match="no osu_bibw on PATH"):
        programs.find(("osu_bibw",), None)


def test_a_file_that_is_not_executable_is_refused(tmp_path: Path):
    write(tmp_path / "osu_bw").chmod(0o644)

    with pytest.raises(InputError, match="not executable"):
        programs.find(("osu_bw",), str(tmp_path / "osu_bw"))


def test_mpi_is_told_from_the_names_in_a_compiled_program(tmp_path: Path):
    for name, text in (
        ("with", "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n"),
        ("without", "int main(void) { return 0; }\n"),
    ):
        source = tmp_path / f"{name}.c"
        source.write_text(text, encoding="utf-8")
        compiler = Path(sys.executable).with_name("mpicc")
        # As needed: mpicc names libmpi for both, and only one of them calls it.
        subprocess.run([compiler, "-Wl,--as-needed", "-o", tmp_path / name, source], check=True)

    assert programs.uses_mpi(str(tmp_path / "with")) is True
    assert programs.uses_mpi(str(tmp_path / "without")) is False
    assert programs.uses_mpi(str(write(tmp_path / "script"))) is None


def test_a_program_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "_USAGE_TIMEOUT_S", 0.5)

    with pytest.raises(InputError, match="does not answer -h"):
        programs.usage(str(write(tmp_path / "hangs", "#!/bin/sh\nsleep 60\n")))


@pytest.mark.parametrize(("listed", "count"), [("0,1,2", 3), ("", 0), ("-1", 0), ("GPU-1a2b", 1)])
def test_gpus_are_those_the_environment_leaves(listed: str, count: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)

    assert programs.gpu_count() == count


def test_gpus_are_told_from_the_names_in_a_compiled_program(tmp_path: Path):
    source = tmp_path / "gpu.c"
    source.write_text(
        "int cudaMalloc(void **at, unsigned long n) { return at == 0 && n; }\nint main(void) { return 0; }\n"
    )
    subprocess.run(["gcc", "-rdynamic", "-o", tmp_path / "gpu", source], check=True)

    assert programs.gpus_of(str(tmp_path / "gpu")) == "cuda"
    assert programs.gpus_of(sys.executable) is None
    assert programs.gpus_of(str(write(tmp_path / "script"))) is None
