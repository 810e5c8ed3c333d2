"""`busbw env export` as its users start it."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.warm import warm_busbw

from busbw.env.export import FORMS


def busbw(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return warm_busbw("env", "export", *arguments, cwd=folder, env={**os.environ, "NO_COLOR": "1"})


def test_the_text_goes_to_standard_output_and_what_it_cannot_say_to_standard_error(tmp_path: Path) -> None:
    done = busbw("--format", "nccl.conf", "--platform", "ndv5", folder=tmp_path)
    assert done.returncode == 0
    assert "NCCL_IB_QPS_PER_CONNECTION=4\n" in done.stdout
    assert done.stderr.startswith("note: left out")


def test_a_file_is_written_whole_and_standard_output_stays_empty(tmp_path: Path) -> None:
    done = busbw("--format", "sh", "--platform", "ndv5", "-o", "settings.sh", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "wrote settings.sh" in done.stderr
    assert (tmp_path / "settings.sh").read_text().count("export ") > 5
    assert [path.name for path in tmp_path.iterdir()] == ["settings.sh"]


def test_mpirun_says_for_which_launcher_it_is(tmp_path: Path) -> None:
    done = busbw("--format", "mpirun", "--platform", "ndv5", folder=tmp_path)
    assert done.stderr.startswith("note: For mpirun of Open MPI and HPC-X")


@pytest.mark.parametrize(
    "wrong",
    [
        ("--format", "yaml"),
        ("--format", "sh", "--platform", "no-such-machine"),
        ("--format", "sh", "--platform", "ndv5", "--goal", "fame"),
        ("--format", "sh", "--platform", "ndv5", "--nccl", "new"),
        ("--format", "sh", "--platform", "ndv5", "--size", "big"),
        ("--format", "sh", "--platform", "ndv5", "--nodes", "0"),
        ("--format", "sh", "--platform", "ndv5", "-o", "/dev/null"),
        (),
    ],
)
def test_bad_input_is_said_in_a_few_lines_and_writes_nothing(wrong: tuple[str, ...], tmp_path: Path) -> None:
    done = busbw(*wrong, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 4
    assert list(tmp_path.iterdir()) == []


def test_the_help_names_every_form(tmp_path: Path) -> None:
    shown = " ".join(busbw("--help", folder=tmp_path).stdout.split())
    assert [form for form in FORMS if form not in shown] == []


def test_the_file_says_for_which_mpi_it_is_and_how_to_write_it_again(tmp_path: Path) -> None:
    done = busbw("--platform", "azure-hbv4", "--mpi", "mvapich2", "--format", "sh", folder=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("# Settings for azure-hbv4: 2 nodes, bandwidth, mvapich2\n")
    assert " --mpi mvapich2 " in " ".join(done.stdout.replace("\n#", "").split())
    assert "export MV2_IBA_HCA='mlx5_ib0'" in done.stdout
