"""Before anything is measured on real hosts: alike, not alike, another busbw, another folder; and hosts from Slurm."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.runner import ROOT, clean_environment, environment_of, program, read_run
from tests.lab.host import ENVIRONMENT
from tests.lab.lab import Lab
from tests.lab.open_mpi_4 import OpenMpi4
from tests.lab.slurm import Cluster

from busbw.model import codec
from busbw.model.launch import Allocation, Slurm
from busbw.model.run import Run
from busbw.rank import network

TIMEOUT_S = 200.0
SIZES = ("-b", "1K", "-e", "1K", "--time-limit", "3")
SETTINGS = "/run/nccl.conf"
ALLOCATION = "from busbw.model import codec; from busbw.machine.capture import allocation as a; import sys; "
SAY_ALLOCATION = ALLOCATION + "sys.stdout.write(codec.encode(a.allocation()).decode())"
SAY_SLURM = ALLOCATION + "sys.stdout.write(codec.encode(a.slurm()).decode())"


class Two:
    """Runs over n0 and n1."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.directory = folder / "run"
        # PRRTE's daemons keep their sockets in the folder for temporary files.
        shell = '#!/bin/sh\nhost=$1\nshift\nexec ssh "$host" "export TMPDIR=/run; $*"\n'
        self.way = ("--hosts", "n[0-1]:1", "--interface", "eth0", "--remote-shell", program(folder / "shell", shell))
        path = clean_environment(environment_of("Open MPI"), folder)["PATH"]
        self.env = {**ENVIRONMENT, "PATH": path, "TMPDIR": "/run", "NCCL_CONF_FILE": SETTINGS}

    def measure(self, *more: str, directory: Path | None = None) -> tuple[int, str]:
        """Return the exit code and what was printed."""
        asked = [str(Path(sys.prefix, "bin", "busbw")), "run", "all_reduce", *SIZES, *map(str, self.way)]
        asked += ["-o", str(directory or self.directory), *more]
        done = self.lab.run("n0", asked, env=self.env, cwd=str(ROOT), timeout_s=TIMEOUT_S)
        return done.returncode, done.stdout + done.stderr

    def run(self) -> Run:
        """Return the result."""
        return read_run(self.directory)


@pytest.fixture
def two(lab: Lab, tmp_path: Path) -> Iterator[Two]:
    yield Two(lab, tmp_path)
    for host in ("n0", "n1"):
        lab.run(host, ["rm", "-rf", SETTINGS, "/run/own"])


def test_hosts_that_are_alike_are_measured_and_shown_in_one_line(two: Two) -> None:
    code, said = two.measure()

    run = two.run()
    assert code in (0, 1, 4), said
    assert [(node.host, node.rank, node.ranks, node.sees_directory) for node in run.nodes] == [
        ("n0", 0, 1, True),
        ("n1", 1, 1, True),
    ]
    assert len(run.measurements) == 1
    assert not {"RUN023", "RUN025"} & {finding.code for finding in run.findings}
    assert said.count("2 hosts alike, n[0-1]: ") == 1, said


def test_what_a_launcher_sets_for_itself_on_each_host_is_no_difference(
    two: Two, open_mpi_4: OpenMpi4, tmp_path: Path
) -> None:
    way = " ".join(f"{name}={value}" for name, value in open_mpi_4.env.items())
    agent = f'#!/bin/sh\nhost=$1\nshift\nexec ssh "$host" "export TMPDIR=/run {way}; $*"\n'
    two.way = (*two.way[:-1], program(tmp_path / "agent", agent))
    two.env |= {"PATH": f"{open_mpi_4.mpirun.parent}:{two.env['PATH']}"}

    code, said = two.measure()

    run = two.run()
    assert code in (0, 1, 4), said
    assert run.plan.mpi is not None
    assert run.plan.mpi.version == "4.1.4"
    assert run.nodes[0].environment == run.nodes[1].environment
    assert "2 hosts alike, n[0-1]: " in said


def test_hosts_with_other_settings_are_not_measured_unless_that_is_asked_for(two: Two) -> None:
    two.lab.run("n1", ["sh", "-c", f"echo NCCL_ALGO=Ring > {SETTINGS}"])

    code, said = two.measure()

    run = two.run()
    assert code == 3, said
    assert run.measurements == ()
    assert run.verdict.outcome == "failed"
    assert f"{SETTINGS} differs: not there on n0, of content " in run.verdict.sentence
    assert run.outcome is not None
    assert run.outcome.culprit is None
    assert "RUN023" in {finding.code for finding in run.findings}
    assert "looking at" not in said

    mixed = two.directory.with_name("mixed")
    code, said = two.measure("--allow-mixed", directory=mixed)
    run = read_run(mixed)
    assert code == 4, said
    assert len(run.measurements) == 1
    assert run.verdict.outcome == "cannot_tell"
    assert f"the hosts differ in {SETTINGS}: the numbers are of a mixture" in run.verdict.sentence
    assert "RUN023" in run.verdict.because


def test_another_busbw_on_one_host_is_found_by_its_files(two: Two, tmp_path: Path) -> None:
    other = tmp_path / "network.py"
    other.write_bytes(Path(network.__file__).read_bytes() + b"\n# Another build.\n")
    try:
        two.lab.run("n1", ["mount", "--bind", str(other), network.__file__])
        code, said = two.measure()
    finally:
        two.lab.run("n1", ["umount", network.__file__])
    assert code == 3, said
    assert "busbw differs: 0.1.0 (" in two.run().verdict.sentence


def test_a_run_directory_that_only_one_host_sees_is_named(two: Two) -> None:
    own = Path("/run/own")
    two.lab.run("n1", ["mkdir", str(own)])
    code, said = two.measure(directory=own)
    assert code == 3, said
    assert f"failed: n1 cannot read {own}/plan.json: No such file or directory; every host must see the run" in said


def test_a_run_directory_that_another_host_does_not_have_at_all_is_named(two: Two) -> None:
    # Open MPI 5.0.11 waits for ever where a daemon cannot go there.
    code, said = two.measure("--stall-timeout", "8", directory=Path("/run/nowhere-else"))
    assert code == 3, said
    assert "failed: rank 1 on n1 is on a host that cannot see the run directory" in said


def test_a_copy_of_the_run_directory_on_another_file_system_is_no_shared_one(two: Two) -> None:
    own = Path("/run/own")
    planned = two.lab.run(
        "n0",
        [
            str(Path(sys.prefix, "bin", "busbw")),
            "run",
            "all_reduce",
            *SIZES,
            *map(str, two.way),
            "-o",
            own,
            "--plan",
            "--json",
        ],
        env=two.env,
    )
    assert planned.returncode == 0, planned
    copy = two.directory.with_name("plan.json")
    copy.write_text(planned.stdout, encoding="utf-8")
    two.lab.run("n1", ["sh", "-c", f"mkdir -p {own}/raw && cp {copy} {own}/plan.json"])
    code, said = two.measure(directory=own)
    assert code == 3, said
    assert "n1: another run directory of the same name" in said


def test_the_hosts_of_a_slurm_job_are_those_that_slurm_gave(slurm_cluster: Cluster) -> None:
    env = {**ENVIRONMENT, "PATH": f"{Path(sys.executable).parent}:{ENVIRONMENT['PATH']}"}
    done = slurm_cluster.run(
        ["salloc", "--quiet", "-N3", "-n4", "-c1", sys.executable, "-c", SAY_ALLOCATION], env=env, cwd=str(ROOT)
    )
    assert done.returncode == 0, done
    made = codec.decode(done.stdout.encode(), Allocation, where="salloc")
    assert (made.kind, [host.name for host in made.hosts]) == ("slurm", ["n0", "n1", "n2"])
    assert sum(host.slots or 0 for host in made.hosts) == 4
    assert made.job_id is not None
    assert made.how == f"SLURM_JOB_NODELIST=n[0-2] of job {made.job_id}"

    done = slurm_cluster.run(
        ["salloc", "--quiet", "-N2", "srun", "-N1", "-n1", sys.executable, "-c", SAY_ALLOCATION], env=env, cwd=str(ROOT)
    )
    inside = codec.decode(done.stdout.encode(), Allocation, where="srun")
    assert [host.name for host in inside.hosts] == ["n0", "n1"]
    assert "inside step 0" in inside.how


def test_slurm_says_what_it_can_do(slurm_cluster: Cluster) -> None:
    done = slurm_cluster.run([sys.executable, "-c", SAY_SLURM], cwd=str(ROOT))
    found = codec.decode(done.stdout.encode(), Slurm, where="srun")
    assert found.srun == "/usr/bin/srun"
    assert found.version is not None
    assert {"none", "pmi2", "pmix"} <= set(found.mpi_types)
    assert not found.has_pyxis


def test_ranks_that_srun_starts_without_pmi_are_refused_once_with_the_reason(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    environment_of("Open MPI")
    library = Path(sys.prefix) / "lib" / "libmpi.so.40"
    env = {**ENVIRONMENT, "PATH": f"{Path(sys.executable).parent}:{ENVIRONMENT['PATH']}", "MPI4PY_LIBMPI": str(library)}
    directory = tmp_path / "run"
    (directory / "raw").mkdir(parents=True)
    asked = [str(Path(sys.prefix, "bin", "busbw")), "run", "all_reduce", "-n", "2", *SIZES, "-o", str(directory)]
    planned = slurm_cluster.run([*asked, "--plan", "--json"], env=env, cwd=str(ROOT))
    (directory / "plan.json").write_text(planned.stdout, encoding="utf-8")

    rank = [sys.executable, "-P", "-m", "busbw.rank", str(directory), "0", ""]
    done = slurm_cluster.run(["srun", "--mpi=none", "-N2", "-n2", *rank], env=env, cwd=str(ROOT))

    assert done.returncode != 0
    reasons = [line for line in done.stderr.splitlines() if "busbw does not measure: " in line]
    assert len(reasons) == 1, done
    assert "2 processes started, 2 planned, and each is alone: srun started them, and it offers no PMI" in reasons[0]
    assert "start with srun --mpi=pmix" in reasons[0]
