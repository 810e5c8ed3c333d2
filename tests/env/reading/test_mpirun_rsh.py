"""Command lines of mpirun_rsh and mpiexec.mpirun_rsh, as scripts and manuals have them."""

import pytest

from busbw.env.reading import read
from busbw.model.settings import SettingsReading


def reading(text: str) -> SettingsReading:
    return read(text, "job.sh", "shell")


def settings(text: str) -> dict[str, str | None]:
    return {each.name: each.value for each in reading(text).assignments}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("mpirun_rsh -np 2 -hostfile ~/hostfile MV2_CPU_MAPPING=48 ./osu_latency", ["MV2_CPU_MAPPING"]),
        ("mpirun_rsh -export -np 2 hostA hostB MV2_USE_CUDA=1 ./osu_latency D D", ["MV2_USE_CUDA"]),
        ("mpirun_rsh --export-all -np 4 --hostfile hosts MV2_USE_CUDA=1 LD_PRELOAD=/l.so python a.py --x=1",
         ["MV2_USE_CUDA", "LD_PRELOAD"]),
        ("mpirun_rsh -np 4 -ppn 2 MV2_USE_MCAST=1 ./a", ["MV2_USE_MCAST"]),
        ("mpirun_rsh -launcher srun -np 4 -hostfile h MV2_A=1 ./a B=2", ["MV2_A"]),
        ("mpirun_rsh -np 4 -hostfile h ./a MV2_A=1", []),
        ("mpirun_rsh -config job.conf -hostfile h", []),
        ("mpiexec.mpirun_rsh -n 4 -env MV2_USE_CUDA 1 ./a", ["MV2_USE_CUDA"]),
    ],
)  # fmt: skip
def test_settings_stand_before_the_program(line: str, names: list[str]):
    assert [each.name for each in reading(line).assignments] == names


@pytest.mark.parametrize(
    ("line", "passes_all"),
    [
        ("mpirun_rsh -np 2 h1 h2 ./a", False),
        ("mpirun_rsh -export -np 2 h1 h2 ./a", True),
        ("mpirun_rsh -export-all -np 2 h1 h2 ./a", True),
        ("mpiexec.mpirun_rsh -n 2 ./a", True),
    ],
)
def test_the_environment_reaches_the_ranks_where_it_is_exported(line: str, passes_all: bool):
    (launch,) = reading(line).launches

    assert (launch.family, launch.forwards_all) == ("MVAPICH", passes_all)


def test_hosts_on_the_command_line_are_not_the_program():
    (launch,) = reading("mpirun_rsh -np 2 n0 n1 A=1 ./app B=2").launches

    assert launch.program is not None
    assert launch.argv[launch.program] == "./app"
    assert settings("mpirun_rsh -np 2 n0 n1 A=1 ./app B=2") == {"A": "1"}
