"""What real launchers hand to ranks on other hosts: values, words, CPUs, folders, as they were asked for."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.runner import environment_of
from tests.lab.host import ENVIRONMENT
from tests.lab.lab import Lab
from tests.lab.open_mpi_4 import OpenMpi4
from tests.lab.slurm import Cluster

from busbw.measure.launchers import mpirun, srun
from busbw.measure.launchers.hosts import visit_each
from busbw.model.launch import Slurm, Start
from busbw.model.machine import MpiFamily, MpiLibrary
from busbw.model.plan import Job, Placement, Program

SAY = str(Path(__file__).with_name("say.py"))
HOSTS = ("n0", "n1", "n2")
HOSTILE = {
    "SPACES": " a  b ",
    "COMMAS": "a,b,,=c",
    "LIST": "=mlx5_0,mlx5_1",
    "SEMICOLONS": "a;b;c",
    "QUOTES": "a\"b'c`d",
    "LINES": "a\nb\n\nc\r\t",
    "COMMANDS": "$(touch pwned) `touch pwned` ${HOME} $HOME !!",
    "BACKSLASHES": "\\a\\\\b\\",
    "EMPTY": "",
    "UNICODE": "żółw → ∞",
    "NO_TEXT": os.fsdecode(b"\xe9\xff"),
    "CONTROL": "\x01\x1b[31m",
    "PATTERNS": "*?[a-z]{b,c}~#%h%j@&|<>()",
    "DASHES": "--map-by",
    "LONG": "x" * 100_000,
}
FAMILIES = ("Open MPI 5", "Open MPI 4", "MPICH", "Intel MPI")


@dataclass(frozen=True)
class Site:
    """Hosts, the MPI on them, and a folder that they share."""

    lab: Lab
    mpi: MpiLibrary
    folder: Path

    def start(self, words: tuple[str, ...] = (), env: dict[str, str] | None = None, **changes: Any) -> Start:
        placement = {
            "ranks": 3,
            "hosts": HOSTS,
            "ranks_of_hosts": (1, 1, 1),
            "binding": "none",
            "oversubscribed": False,
        }
        values = {
            "placement": Placement(**(placement | changes.pop("placement", {}))),
            "directory": str(self.folder),
            "mpi": self.mpi,
            "remote_shell": (str(self.lab.remote_shell),),
            "forward": ("BUSBW_RUN",),
            "interface": "eth0",
            "as_root": True,
            "measuring_s": 20.0,
            "stall_s": 10.0,
        }
        argv = (sys.executable, SAY, str(self.folder), *words)
        return Start(program=Program(argv=argv, env=tuple((env or {}).items())), **(values | changes))

    def run(self, job: Job, *before: str, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """Carry a job out on n0 as busbw does, and return what each rank says, in the order of the ranks."""
        for file in job.files:
            path = self.folder / file.path
            path.write_text(file.text, encoding="utf-8")
            path.chmod(0o755 if file.executable else 0o644)
        surroundings = {**ENVIRONMENT, "BUSBW_RUN": "tag", **(env or {})}
        whole = {name: value for name, value in surroundings.items() if name not in job.unset} | dict(job.env)
        for name, folder in job.prepend:
            whole[name] = os.pathsep.join(part for part in (folder, whole.get(name)) if part)
        done = self.lab.run("n0", [*before, *job.argv], env=whole, cwd="/")
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        said = [json.loads(path.read_text(encoding="utf-8")) for path in self.folder.glob("said.*.json")]
        return sorted(said, key=lambda each: each["rank"])


def library(family: MpiFamily, version: str, program: Path, path: Path) -> MpiLibrary:
    return MpiLibrary(family=family, version=version, mpirun=str(program), library=str(path), origin="site")


@pytest.fixture(params=FAMILIES)
def site(request: pytest.FixtureRequest, lab: Lab, tmp_path: Path) -> Site:
    folder = tmp_path / "run $(touch pwned) 'x'"
    folder.mkdir()
    name: str = request.param
    if name == "Open MPI 4":
        four: OpenMpi4 = request.getfixturevalue("open_mpi_4")
        return Site(lab, library("Open MPI", "4.1.4", four.mpirun, four.library), folder)
    prefix = environment_of("Open MPI" if name == "Open MPI 5" else name)
    if name == "Open MPI 5":
        return Site(lab, library("Open MPI", "5.0.11", prefix / "bin" / "mpirun", prefix / "lib"), folder)
    family: MpiFamily = "MPICH" if name == "MPICH" else "Intel MPI"
    return Site(lab, library(family, "5", prefix / "bin" / "mpiexec", prefix / "lib" / "libmpi.so.12"), folder)


def test_values_and_words_arrive_as_they_are(site: Site):
    words = tuple(value for name, value in HOSTILE.items() if name not in {"DASHES", "LONG"})
    job = mpirun.job(site.start(words, HOSTILE, unset=("GONE",), prepend=(("LD_LIBRARY_PATH", "/opt/l"),)))

    said = site.run(job, env={"GONE": "1"})

    assert [each["host"] for each in said] == list(HOSTS)
    for each in said:
        assert {name: each["env"].get(name) for name in HOSTILE} == HOSTILE
        assert each["words"] == list(words)
        assert "/opt/l" in each["env"]["LD_LIBRARY_PATH"].split(":")
        assert "GONE" not in each["env"]
        assert each["env"]["BUSBW_RUN"] == "tag"
        assert each["folder"] == str(site.folder)
    assert not list(site.folder.glob("pwned*"))


def test_uneven_ranks_are_numbered_one_host_after_the_other(site: Site):
    placement = {"ranks": 4, "ranks_of_hosts": (1, 2, 1), "binding": "core"}

    said = site.run(mpirun.job(site.start(placement=placement)))

    assert [each["host"] for each in said] == ["n0", "n1", "n1", "n2"]
    assert all(len(each["cpus"]) == 1 for each in said)


def test_ranks_get_the_cpus_of_their_masks(site: Site):
    mine = sorted(os.sched_getaffinity(0))
    masks = (str(mine[-1]), ",".join(map(str, mine)))
    placement = {"ranks": 6, "ranks_of_hosts": (2, 2, 2), "binding": "masks", "masks": masks}

    said = site.run(mpirun.job(site.start(placement=placement)))

    assert [each["host"] for each in said] == [host for host in HOSTS for _rank in range(2)]
    assert [each["cpus"] for each in said] == [[mine[-1]], mine] * 3


def test_each_host_is_visited_once(site: Site):
    start = site.start(placement={"ranks": 6, "ranks_of_hosts": (2, 2, 2)})

    assert [each["host"] for each in site.run(mpirun.visit(start))] == list(HOSTS)
    for path in site.folder.glob("said.*"):
        path.unlink()
    (last,) = site.run(visit_each(mpirun.visit, start)[-1])
    assert last["host"] == "n2"


def test_srun_hands_on_what_it_was_given(slurm_cluster: Cluster, tmp_path: Path):
    folder = tmp_path / "run $(touch pwned) 'x'"
    folder.mkdir()
    prefix = environment_of("Open MPI")
    place = Site(slurm_cluster.lab, library("Open MPI", "5.0.11", prefix / "bin" / "mpirun", prefix / "lib"), folder)
    slurm = Slurm(srun="srun", version="22.05.8", mpi_types=("none", "pmi2", "pmix"))
    mine = sorted(os.sched_getaffinity(0))
    placement = {"ranks": 4, "ranks_of_hosts": (1, 2, 1), "binding": "masks", "masks": (str(mine[-1]), str(mine[0]))}
    words = tuple(value for name, value in HOSTILE.items() if name != "LONG")
    job = srun.job(place.start(words, HOSTILE, slurm=slurm, unset=("GONE",), placement=placement))

    said = place.run(job, "salloc", "--quiet", "--nodes=4", "--exclusive", env={"GONE": "1"})

    assert [each["host"] for each in said] == ["n0", "n1", "n1", "n2"]
    assert [each["cpus"] for each in said] == [[mine[-1]], [mine[-1]], [mine[0]], [mine[-1]]]
    for each in said:
        assert {name: each["env"].get(name) for name in HOSTILE} == HOSTILE
        assert each["words"] == list(words)
        assert each["folder"] == str(folder)
        assert "GONE" not in each["env"]
