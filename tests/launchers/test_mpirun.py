"""What mpirun of each family is told."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from busbw.base.errors import InputError
from busbw.measure.launchers import mpirun
from busbw.measure.launchers.hosts import visit_each
from busbw.model.plan import JobFile

from .starts import MPIS, here, library, make_placement, make_start


def file_of(files: tuple[JobFile, ...], path: str) -> str:
    return next(file.text for file in files if file.path == path)


@pytest.mark.parametrize("name", MPIS)
def test_hosts_and_their_slots_are_in_a_file_of_the_run(name: str):
    job = mpirun.job(make_start(mpi=MPIS[name], placement=make_placement(ranks_of_hosts=(3, 1))))

    assert "/runs/x/hosts" in job.argv
    lines = file_of(job.files, "hosts").replace(" slots=", ":").splitlines()
    assert lines == ["n0:3", "n1:1"]
    assert job.argv[job.argv.index("-n") + 1] == "4"


def test_processes_are_counted_where_each_has_several_ranks():
    job = mpirun.job(make_start(placement=make_placement(ranks_of_hosts=(4, 8)), per_process=4))

    assert job.argv[job.argv.index("-n") + 1] == "3"
    assert file_of(job.files, "hosts") == "n0 slots=1\nn1 slots=2\n"


def test_settings_of_open_mpi_are_options_and_others_are_forwarded():
    job = mpirun.job(make_start(env=(("A", "b c"), ("OMPI_MCA_pml", "ob1"), ("PRTE_MCA_x", "1")), forward=("HOME",)))

    argv = " ".join(job.argv)
    assert "--mca pml ob1 --prtemca x 1 -x A=b c -x HOME" in argv
    assert job.env == ()


def test_lists_that_begin_with_a_folder_are_forwarded_as_the_launching_side_has_them():
    job = mpirun.job(make_start(prepend=(("LD_LIBRARY_PATH", "/opt/l"),)))

    assert job.prepend == (("LD_LIBRARY_PATH", "/opt/l"),)
    assert job.argv[job.argv.index("LD_LIBRARY_PATH") - 1] == "-x"


def test_open_mpi_puts_folders_before_a_list_so_it_is_set_once_more():
    job = mpirun.job(make_start(env=(("LD_LIBRARY_PATH", "/mine"),)))

    assert job.argv[-3:] == ("env", "LD_LIBRARY_PATH=/mine", "/bin/p")


@pytest.mark.parametrize("name", MPIS)
def test_what_no_rank_may_have_is_unset_on_every_host(name: str):
    job = mpirun.job(make_start(mpi=MPIS[name], unset=("A", "B")))

    assert job.unset == ("A", "B")
    assert job.argv[-6:] == ("env", "-u", "A", "-u", "B", "/bin/p")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Open MPI 5", "--prtemca plm_ssh_agent /bin/r --prtemca prte_if_include eth0 --mca btl_tcp_if_include eth0"),
        ("Open MPI 4", "--mca plm_rsh_agent /bin/r --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0"),
        ("MPICH", "-launcher ssh -launcher-exec /bin/r -iface eth0"),
        ("Intel MPI", "-bootstrap ssh -bootstrap-exec /bin/r -iface eth0"),
    ],
)
def test_each_family_has_its_words_for_the_remote_shell_and_the_interface(name: str, wanted: str):
    job = mpirun.job(make_start(mpi=MPIS[name], remote_shell=("/bin/r",), interface="eth0"))

    assert wanted in " ".join(job.argv)


def test_a_remote_shell_with_words_becomes_a_program_for_hydra():
    job = mpirun.job(make_start(mpi=MPIS["MPICH"], remote_shell=("ssh", "-p", "2 2")))

    assert job.argv[job.argv.index("-launcher-exec") + 1] == "/runs/x/remote-shell"
    assert file_of(job.files, "remote-shell") == "#!/bin/sh\nexec ssh -p '2 2' \"$@\"\n"
    with pytest.raises(InputError, match="splits the remote shell"):
        mpirun.job(make_start(remote_shell=("ssh", "-o", "A b")))


def test_open_mpi_5_would_put_every_rank_on_the_first_numa_node_by_its_usual_mapping():
    numa = make_placement(binding="numa")

    assert "--map-by numa --bind-to numa" in " ".join(mpirun.job(make_start(placement=numa)).argv)
    four = mpirun.job(make_start(placement=numa, mpi=MPIS["Open MPI 4"]))
    assert "--map-by ppr:2:node --bind-to numa" in " ".join(four.argv)


@pytest.mark.parametrize("name", MPIS)
def test_crowded_ranks_keep_no_core(name: str):
    crowded = make_placement(binding="none", oversubscribed=True)
    job = mpirun.job(make_start(mpi=MPIS[name], placement=crowded))

    said = " ".join((*job.argv, *(f"{name}={value}" for name, value in job.env)))
    wanted = {
        "Open MPI 5": "--bind-to none --mca mpi_yield_when_idle 1",
        "Open MPI 4": "--bind-to none --mca mpi_yield_when_idle 1",
        "MPICH": "MPIR_CVAR_POLLS_BEFORE_YIELD=1",
        "MVAPICH": "MPIR_CVAR_POLLS_BEFORE_YIELD=1",
        "Intel MPI": "-genv I_MPI_PIN off",
    }
    assert wanted[name] in said


def test_mpich_is_told_cpus_by_number():
    job = mpirun.job(make_start(mpi=MPIS["MPICH"], placement=make_placement(binding="masks", masks=("0-2,8", "3"))))

    assert job.argv[job.argv.index("-bind-to") + 1] == "user:0+1+2+8,3"


@pytest.mark.parametrize(
    ("name", "variable"), [("Open MPI 5", "OMPI_COMM_WORLD_LOCAL_RANK"), ("Intel MPI", "MPI_LOCALRANKID")]
)
def test_a_program_of_the_run_gives_each_rank_its_cpus(name: str, variable: str, tmp_path: Path):
    mine = sorted(os.sched_getaffinity(0))
    masks = (str(mine[-1]), ",".join(map(str, mine)))
    job = mpirun.job(make_start(mpi=MPIS[name], placement=here(binding="masks", masks=masks)))
    (file,) = job.files
    program = tmp_path / file.path
    program.write_text(file.text, encoding="utf-8")

    def start(rank: str) -> "subprocess.CompletedProcess[str]":
        command = ["sh", str(program), "sh", "-c", 'taskset -pc $$; echo "$1"', "", "a b"]
        env = {"PATH": os.environ["PATH"], variable: rank}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    assert file.executable
    assert job.argv[-2:] == ("/runs/x/on-cpus", "/bin/p")
    assert start("0").stdout.endswith(f": {mine[-1]}\na b\n")
    assert start("2").returncode == 1
    assert f"no CPUs are given for {variable}=2" in start("2").stderr


@pytest.mark.parametrize("name", ["Open MPI 5", "Intel MPI", "MPICH"])
def test_shellcheck_finds_nothing_in_the_programs_of_a_run(name: str, tmp_path: Path):
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here: apt-get install shellcheck")
    masks = make_placement(binding="masks", masks=("0-11,24", "12-23"))
    shell = ("/bin/r",) if name == "Open MPI 5" else ("ssh", "-p", "2 $2")
    job = mpirun.job(make_start(mpi=MPIS[name], placement=masks, remote_shell=shell))
    for file in (each for each in job.files if each.executable):
        (tmp_path / file.path).write_text(file.text, encoding="utf-8")
    found = subprocess.run(
        ["shellcheck", "--severity=warning", *tmp_path.iterdir()], capture_output=True, text=True, check=False
    )

    assert len(list(tmp_path.iterdir())) == {"Open MPI 5": 1, "Intel MPI": 2, "MPICH": 1}[name]
    assert found.stdout == ""


@pytest.mark.parametrize("name", ["Intel MPI", "MPICH"])
def test_hydra_tells_of_a_rank_that_ends_where_busbw_cannot_see_it(name: str):
    word = "-disable-auto-cleanup"

    assert word in mpirun.job(make_start(mpi=MPIS[name], placement=here())).argv
    assert word not in mpirun.job(make_start(mpi=MPIS[name])).argv


@pytest.mark.parametrize("name", ["Open MPI 4", "Open MPI 5"])
def test_open_mpi_waits_with_aborts_of_our_ranks_until_it_has_heard_who_died(name: str):
    ours = make_start(mpi=MPIS[name], through_mpi4py=True)

    assert "opal_abort_delay" in mpirun.job(ours).argv
    chosen = make_start(env=(("OMPI_MCA_opal_abort_delay", "9"),), mpi=MPIS[name], through_mpi4py=True)
    argv = mpirun.job(chosen).argv
    assert argv[argv.index("opal_abort_delay") + 1] == "9"
    assert argv.count("opal_abort_delay") == 1
    for other in (mpirun.visit(ours), mpirun.job(make_start(mpi=MPIS[name], through_mpi4py=False))):
        assert "opal_abort_delay" not in other.argv


@pytest.mark.parametrize("name", MPIS)
def test_a_visit_is_one_process_a_host_and_needs_no_file(name: str):
    start = make_start(mpi=MPIS[name], placement=make_placement(ranks_of_hosts=(8, 4)), per_process=4)
    job = mpirun.visit(start)

    assert job.files == ()
    assert job.argv[job.argv.index("-n") + 1] == "2"
    assert not {"-wdir", "--wdir", "BUSBW_RUN"} & set(job.argv)
    assert any(word in job.argv for word in ("n0:1,n1:1", "n0,n1"))
    alone = visit_each(mpirun.visit, start)
    assert [any(word in each.argv for word in ("n1", "n1:1")) for each in alone] == [False, True]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mpi": None}, "needs an MPI"),
        ({"mpi": library("unknown", None)}, "do not know how"),
        ({"mpi": library("Open MPI", None)}, "Open MPI 4 or 5"),
        ({"placement": make_placement(("n0", "n0"))}, "named twice"),
        ({"placement": make_placement(("n0", "-n1"))}, "cannot be the name of a host"),
        ({"placement": make_placement(ranks_of_hosts=(2, 0))}, "are not those of"),
        ({"per_process": 3}, "do not fill"),
        ({"env": (("A B", ""),)}, "cannot be the name of an environment variable"),
        ({"env": (("A", "\0"),)}, "NUL"),
        ({"env": (("A", "x" * 131_071),)}, "longer than"),
        ({"env": (("A", "1"),), "unset": ("A",)}, "to be set and to be unset"),
        ({"argv": ("/bin/p", ":")}, "does not hand"),
        ({"argv": ("/bin/p", "--map-by")}, "does not hand"),
        ({"directory": "/a,b"}, "commas"),
        ({"mpi": MPIS["Open MPI 4"], "env": (("OMPI_MCA_x", "$(touch y)"),)}, "other hosts' shells"),
        ({"env": (("PRTE_MCA_x", 'a"b'),)}, "other hosts' shells"),
        ({"placement": make_placement(binding="masks", masks=("0",))}, "for 1 ranks"),
        ({"placement": make_placement(binding="masks", masks=("0", "x"))}, "not a list of CPUs"),
    ],
)
def test_what_cannot_be_started_is_refused_with_the_reason(changes: dict[str, object], reason: str):
    with pytest.raises(InputError, match=reason):
        mpirun.job(make_start(**changes))
