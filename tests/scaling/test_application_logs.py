"""What applications print of their own speed, in lines as they print them with numbers of ours."""

from pathlib import Path

import pytest

from busbw.api.scaling_reports import LogReading, ScalingRequest, observations_of, scaling
from busbw.base.errors import InputError
from busbw.facts.logs import application, applications
from busbw.formats.application_log import LaunchResult, steps_of
from busbw.model.scaling import Observation, ScalingEstimate

GROMACS = """
Running on 3 nodes with total 96 cores, 192 processing units, 6 compatible GPUs
Using 12 MPI processes
               (ns/day)    (hour/ns)
Performance:       41.250        0.582
"""
LAMMPS = """
  2 by 2 by 3 MPI processor grid
Loop time of 8.25 on 24 procs for 500 steps with 64000 atoms

Performance: 5.236 ns/day, 4.583 hours/ns, 60.606 timesteps/s, 3.879 Matom-step/s
98.2% CPU use with 12 MPI tasks x 2 OpenMP threads
"""
LENNARD_JONES = """
  1 by 1 by 2 MPI processor grid
Loop time of 2.5 on 2 procs for 100 steps with 32000 atoms
Performance: 17280.000 tau/day, 40.000 timesteps/s
"""
OPENFOAM = """
nProcs : 48
Time = 1
ExecutionTime = 21.4 s  ClockTime = 24 s
Time = 2
ExecutionTime = 22.9 s  ClockTime = 26 s
Time = 3
ExecutionTime = 24.4 s  ClockTime = 27 s
"""
WRF = """
 Ntasks in X            4, ntasks in Y            6
Timing for main: time 2021-03-04_00:01:00 on domain   2:    0.20100 elapsed seconds
Timing for main: time 2021-03-04_00:01:00 on domain   1:    9.75000 elapsed seconds
Timing for main: time 2021-03-04_00:02:00 on domain   1:    0.81000 elapsed seconds
Timing for main: time 2021-03-04_00:03:00 on domain   1:    0.79000 elapsed seconds
"""
HPCG = """
Machine Summary::Distributed Processes=32
Final Summary::HPCG result is VALID with a GFLOP/s rating of=57.25
"""
HPL = """
T/V                N    NB     P     Q               Time                 Gflops
WR11C2R4       40000   192     2     4             101.50             4.2050e+02
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.71320017e-03 ...... PASSED
WR11C2R4       40000   256     2     4              90.10             4.7360e+02
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   6.10000000e+05 ...... FAILED
WR11R2C4       40000   256     2     4              98.00             4.3550e+02
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   3.01000000e-03 ...... PASSED
"""
NAMD = """
Info: Running on 56 processors, 56 nodes, 2 physical nodes.
Info: Benchmark time: 56 CPUs 0.0125 s/step 0.145 days/ns 812.5 MB memory
"""
STARCCM_FILE = """<Benchmark>
<Name>wing</Name><NumberOfCells>21000000</NumberOfCells>
<NumberOfSamples>2</NumberOfSamples>
<Sample>
<AverageElapsedTime Units="seconds">4.5</AverageElapsedTime>
<NumberOfWorkers>32</NumberOfWorkers>
<SpeedUp>32.0</SpeedUp>
</Sample>
<Sample>
<AverageElapsedTime Units="seconds">2.5</AverageElapsedTime>
<NumberOfWorkers>64</NumberOfWorkers>
<SpeedUp>57.6</SpeedUp>
</Sample>
</Benchmark>
"""
STARCCM_LOG = """
MPI Distribution : Open MPI-4.1.2
Host 0 -- node07 -- Ranks 0-31
Host 1 -- node08 -- Ranks 32-63
Total number of processes : 64
 Iteration  Continuity  Total Solver Elapsed Time (s)          Cd
         1 1.00000e+00                   3.000000e+01 3.00000e-01
         2 5.00000e-01                   3.200000e+01 3.10000e-01
         3 2.50000e-01                   3.410000e+01 3.10000e-01
         4 1.25000e-01                   3.610000e+01 3.10000e-01
"""


def read(folder: Path, name: str, text: str, *, last: int | None = None) -> tuple[Observation, ...]:
    log = folder / f"{name}.log"
    log.write_text(text)
    return observations_of(str(log), LogReading.of(application(name), (), name=None, last=last), wanted=None)


@pytest.mark.parametrize(
    ("name", "text", "nodes", "ranks", "cores", "speed"),
    [
        ("gromacs", GROMACS, 3, 12, None, 41.25),
        ("gromacs", "Running on 1 node with total 64 cores\nUsing 1 MPI thread\nPerformance: 7.5 3.2", 1, 1, None, 7.5),
        ("lammps", LAMMPS, None, 12, 24, 60.606),
        ("lammps", LENNARD_JONES, None, 2, 2, 40.0),
        ("openfoam", OPENFOAM, None, 48, None, 1.5),
        ("wrf", WRF, None, 24, None, 0.81),
        ("wrf", WRF.replace("4, ntasks", "4 , ntasks"), None, 24, None, 0.81),
        ("hpcg", HPCG, None, 32, None, 57.25),
        ("hpl", HPL, None, 8, None, 435.5),
        ("namd", NAMD, 2, None, 56, 0.0125),
        ("starccm", STARCCM_LOG, 2, 64, None, 2.0),
    ],
)
def test_the_speed_and_the_size_of_the_machine_are_read(
    name: str, text: str, nodes: int | None, ranks: int | None, cores: int | None, speed: float, tmp_path: Path
) -> None:
    (found,) = read(tmp_path, name, text)
    taken = found.time_s or found.rate
    assert taken is not None
    assert (found.nodes, found.ranks, found.cores) == (nodes, ranks, cores)
    assert taken.value == pytest.approx(speed)


def test_every_application_has_a_log_here() -> None:
    assert set(applications()) == {
        *("namd", "fluent", "starccm", "gromacs", "lammps", "openfoam", "wrf", "hpcg", "hpl"),
    }


def test_a_benchmark_of_starccm_has_a_time_for_each_number_of_workers(tmp_path: Path) -> None:
    found = read(tmp_path, "starccm", STARCCM_FILE)
    assert [(each.ranks, each.time_s.value if each.time_s else None) for each in found] == [(32, 4.5), (64, 2.5)]
    assert {each.settings for each in found} == {(("cells", "21000000"),)}


def test_one_number_of_hosts_is_not_that_of_every_try(tmp_path: Path) -> None:
    hosts = "<NumberOfHosts>2</NumberOfHosts>\n<NumberOfSamples>"
    several = STARCCM_FILE.replace("<NumberOfSamples>", hosts)
    assert [each.nodes for each in read(tmp_path, "starccm", several)] == [None, None]
    one = several.split("</Sample>")[0]
    assert [each.nodes for each in read(tmp_path, "starccm", one)] == [2]


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("starccm", "Iteration  Continuity\n 1 1.0e+00\n", "neither a file of starccm"),
        ("starccm", '<AverageElapsedTime Units="minutes">4.5</AverageElapsedTime>', "in minutes"),
        ("starccm", STARCCM_FILE.replace("<NumberOfWorkers>32</NumberOfWorkers>\n", ""), "2 times for 1 number"),
        ("starccm", STARCCM_FILE.replace(">4.5<", ">none<"), "not a number above zero"),
        ("openfoam", "nProcs : 4\nExecutionTime = 21.4 s  ClockTime = 24 s\n", "a clock that was printed once"),
        ("hpl", "WR00L2L2  100 64 2 2 1.0 5.0e+00\n||Ax-b|| = 9.9e+09 ...... FAILED\n", "void"),
        ("hpcg", "Final Summary::HPCG result is INVALID.=\n", "no line fits"),
    ],
)
def test_what_is_no_result_is_refused(name: str, text: str, cause: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=cause):
        read(tmp_path, name, text)


def test_work_that_grows_with_the_machine_is_weak_scaling_by_itself(tmp_path: Path) -> None:
    for ranks, gflop_per_s in ((32, 57.0), (64, 108.3)):
        (tmp_path / f"hpcg-{ranks}").write_text(HPCG.replace("=32", f"={ranks}").replace("57.25", str(gflop_per_s)))
    sources = tuple(str(tmp_path / f"hpcg-{ranks}") for ranks in (32, 64))
    (view,) = scaling(ScalingRequest(sources=sources, application="hpcg")).views
    assert view.kind == "weak"
    efficiency = view.series[0].points[1].efficiency
    assert efficiency is not None
    assert efficiency.value == pytest.approx(0.95)


def test_a_clock_that_was_started_anew_has_no_step_there() -> None:
    times = (10.0, 11.0, 12.0, 0.5, 1.5)
    readings = [LaunchResult(line=number, estimate=ScalingEstimate(value=time)) for number, time in enumerate(times)]
    assert [each.estimate.value for each in steps_of(readings)] == [1.0, 1.0, 1.0]


def test_few_digits_of_a_clock_are_lost_once_a_stretch_of_steps() -> None:
    # Steps of 14 ms on a clock that shows 10 ms.
    readings = [
        LaunchResult(line=number, estimate=ScalingEstimate(value=int(number * 1.4) / 100)) for number in range(1, 2001)
    ]
    steps = steps_of(readings)
    assert len(steps) == 20
    assert all(each.estimate.value == pytest.approx(0.014, rel=0.01) for each in steps)
