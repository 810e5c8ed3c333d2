"""What flux run, jsrun and aprun are told, held against how their manuals read it."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given

from busbw.base.errors import InputError
from busbw.measure.launchers import aprun, flux, jsrun
from busbw.measure.launchers.command_line import command_line
from busbw.measure.launchers.hosts import visit_each
from busbw.measure.plan.hosts import jobs
from busbw.model.plan import Job, Program

from .managers import READERS, explicit_resources, sent_over_ssh
from .starts import MANAGERS, MPIS, here, make_placement, managed_start
from .test_quoting import DIRECTORIES, ENVIRONMENTS, WORDS, started

MAKE = {"flux": flux.job, "jsrun": jsrun.job, "aprun": aprun.job}


def job_of(launcher: str, **changes: object) -> Job:
    return MAKE[launcher](managed_start(launcher, **changes))


def said(launcher: str, **changes: object) -> str:
    return " ".join(job_of(launcher, **changes).argv)


@pytest.mark.parametrize("launcher", MAKE)
@given(env=ENVIRONMENTS, words=WORDS, directory=DIRECTORIES)
def test_what_arrives_is_what_was_asked(launcher: str, env: dict[str, str], words: list[str], directory: str) -> None:
    argv = ("/bin/p", *words)
    job = started(MAKE[launcher], managed_start(launcher, argv, env=tuple(env.items()), directory=directory))
    if job is None:
        return
    got = READERS[launcher](job)

    assert {each: got.env[each] for each in env} == env
    assert got.command == argv
    # aprun has no option for it.
    assert got.folder == (None if launcher == "aprun" else directory)
    assert got.processes == 4


@pytest.mark.parametrize("launcher", MAKE)
def test_a_shell_reads_a_shown_command_as_the_job_is(launcher: str, tmp_path: Path) -> None:
    env = (("A", "a b,c;'\"$(id)\\\nx"), ("B", ""))
    program = tmp_path / launcher
    program.write_text('#!/bin/sh\nfor word in "$A" "$B" "$@"; do printf "%s\\0" "$word"; done\n')
    program.chmod(0o755)
    job = MAKE[launcher](
        managed_start(launcher, ("/bin/p", "a b", "'"), env=env, launcher_program=str(program), directory="/runs/x y")
    )

    done = subprocess.run(["bash", "-c", command_line(job)], capture_output=True, check=True, env={})

    assert done.stdout.decode().split("\0")[:-1] == [env[0][1], "", *job.argv[1:]]


@pytest.mark.parametrize("launcher", MAKE)
def test_hosts_are_named_where_they_are_known(launcher: str) -> None:
    named = {"flux": "--requires=hosts:nid[00012-00013]", "jsrun": "hostname: nid00013;", "aprun": "-L 12,13"}
    masks = make_placement(("nid00012", "nid00013"), binding="masks", masks=("0", "1"))

    def all_of(**changes: object) -> str:
        job = job_of(launcher, placement=masks, **changes)
        return " ".join((*job.argv, *(file.text for file in job.files)))

    assert named[launcher] in all_of()
    assert "nid" not in all_of(hosts_are_named=False)


@pytest.mark.parametrize("launcher", MAKE)
def test_programs_of_several_ranks_are_counted_once(launcher: str) -> None:
    job = job_of(launcher, placement=make_placement(("nid1", "nid2"), (8, 8)), per_process=4)

    assert READERS[launcher](job).processes == 4


@pytest.mark.parametrize("launcher", MAKE)
def test_one_host_needs_no_name(launcher: str) -> None:
    job = job_of(launcher, placement=here(3))

    assert READERS[launcher](job).processes == 3
    assert "n0" not in " ".join(job.argv)


@pytest.mark.parametrize(
    ("launcher", "changes", "words"),
    [
        ("flux", {}, "--nodes=2 --ntasks=4 --cores-per-task=1 --requires"),
        ("flux", {}, "--setopt=cpu-affinity=per-task"),
        ("flux", {"binding": "none"}, "--nodes=2 --tasks-per-node=2 --exclusive"),
        ("flux", {"binding": "none"}, "--setopt=cpu-affinity=off"),
        ("flux", {"binding": "none", "oversubscribed": True}, "--setopt=cpu-affinity=off"),
        ("flux", {"binding": "masks", "masks": ("0-2,8", "3")}, "--setopt=cpu-affinity=map:0-2,8;3"),
        ("jsrun", {}, "--nrs=2 --rs_per_host=1 --tasks_per_rs=2 --cpu_per_rs=ALL_CPUS --gpu_per_rs=0"),
        ("jsrun", {}, "--bind=packed:1"),
        ("jsrun", {"binding": "none"}, "--bind=none"),
        ("jsrun", {"binding": "masks", "masks": ("0", "1")}, "/usr/bin/jsrun --erf_input=/runs/x/resources.erf"),
        ("aprun", {}, "-b -q -n 4 -N 2 -cc cpu"),
        ("aprun", {"binding": "numa"}, "-cc numa_node"),
        ("aprun", {"binding": "none"}, "-j 0 -cc none"),
        ("aprun", {"binding": "masks", "masks": ("0", "1")}, "-j 0 -cc none -L 12,13 /runs/x/on-cpus /bin/p"),
    ],
)
def test_where_ranks_are_bound(launcher: str, changes: dict[str, object], words: str) -> None:
    assert words in said(launcher, placement=make_placement(("nid00012", "nid00013"), **changes))


def test_every_rank_sees_every_gpu_of_its_host() -> None:
    unbound = make_placement(("nid1", "nid2"), binding="none")

    assert "--gpus-per-node=4 " in said("flux", placement=unbound, gpus_per_host=4)
    assert "--gpus-per-task=2 " in said("flux", gpus_per_host=4)
    assert "--setopt=gpu-affinity=on" in said("flux", gpus_per_host=4)
    assert "--gpu_per_rs=ALL_GPUS" in said("jsrun", gpus_per_host=4)


def test_uneven_ranks_have_hosts_and_cpus_of_their_own_under_jsrun() -> None:
    placement = make_placement(ranks_of_hosts=(1, 2), binding="masks", masks=("0-3,8-11", "4"))
    (file,) = job_of("jsrun", placement=placement).files

    assert explicit_resources(file.text) == [("n0", "0-3,8-11"), ("n1", "0-3,8-11"), ("n1", "4")]


def test_cpus_are_those_of_the_number_on_a_host_under_aprun(tmp_path: Path) -> None:
    mine = sorted(os.sched_getaffinity(0))
    masks = (str(mine[-1]), ",".join(map(str, mine)))
    (file,) = job_of("aprun", placement=make_placement(("nid1", "nid2"), binding="masks", masks=masks)).files
    program = tmp_path / file.path
    program.write_text(file.text)

    def start(**env: str) -> "subprocess.CompletedProcess[str]":
        command = ["sh", str(program), "sh", "-c", "taskset -pc $$"]
        env = {"PATH": os.environ["PATH"], **env}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    seen = [start(ALPS_APP_PE=str(rank)).stdout.rpartition(": ")[2].strip() for rank in range(4)]
    assert seen[::2] == [masks[0]] * 2
    assert seen[1] == seen[3] != ""
    assert start().returncode != 0


@pytest.mark.parametrize(
    ("launcher", "mpi", "kind"),
    [
        ("flux", MPIS["Open MPI 5"], "--setopt=pmi=pmix"),
        ("flux", MPIS["MPICH"], "--setopt=pmi=simple"),
        ("flux", MPIS["Intel MPI"], "--setopt=pmi=simple"),
        ("flux", None, "--setopt=exit-on-error"),
        ("jsrun", None, "--smpiargs=none"),
    ],
)
def test_ranks_are_introduced_by_what_their_mpi_understands(launcher: str, mpi: object, kind: str) -> None:
    assert kind in said(launcher, mpi=mpi)


def test_what_the_user_says_takes_the_place_of_our_word() -> None:
    own = said("flux", options=("--setopt=pmi=cray-pals", "--setopt=verbose"))
    assert "pmi=simple" not in own
    assert "--setopt=exit-on-error" in own
    assert "--setopt=pmi=cray-pals --setopt=verbose /bin/p" in own
    assert "-cc cpu" not in said("aprun", options=("-cc", "0,2"))
    assert "-n 4 -N 2" in said("aprun", options=("-cc", "0,2"))


@pytest.mark.parametrize(
    ("launcher", "changes", "reason"),
    [
        *((launcher, {"launcher_program": None}, f"no {launcher} here") for launcher in MANAGERS),
        *((launcher, {"placement": make_placement(("n0", "-n1"))}, "cannot be the name") for launcher in MANAGERS),
        *((launcher, {"argv": ("p", ":")}, "does not hand") for launcher in MANAGERS),
        *(
            (launcher, {"placement": make_placement(("nid1", "nid2"), (1, 2))}, "as many processes on every host")
            for launcher in MANAGERS
        ),
        ("flux", {"env": (("FLUX_URI", "x"),)}, "sets this variable itself"),
        ("jsrun", {"env": (("JSM_NAMESPACE_RANK", "x"),)}, "sets this variable itself"),
        ("aprun", {"env": (("ALPS_APP_PE", "x"),)}, "sets this variable itself"),
        ("flux", {"argv": ("p", "a{{id}}b")}, "replaces"),
        ("flux", {"directory": "/runs/{{id}}"}, "replaces"),
        ("flux", {"env": (("A", os.fsdecode(b"\xff")),)}, "no UTF-8"),
        ("flux", {"argv": ("p", os.fsdecode(b"\xff"))}, "no UTF-8"),
        ("flux", {"placement": make_placement(binding="numa")}, "not to NUMA nodes"),
        ("flux", {"gpus_per_host": 3}, "cannot be shared out"),
        ("jsrun", {"placement": make_placement(binding="numa")}, "not to NUMA nodes"),
        ("jsrun", {"mpi": MPIS["MPICH"]}, "so many runs of one rank each"),
        ("aprun", {"mpi": MPIS["MPICH"]}, "so many runs of one rank each"),
        ("aprun", {"placement": make_placement()}, "takes nodes by number"),
        ("aprun", {"placement": make_placement(("nid1",), (2,), oversubscribed=True)}, "no more ranks on a node"),
    ],
)
def test_what_cannot_be_started_is_refused_with_the_reason(
    launcher: str, changes: dict[str, object], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        job_of(launcher, **changes)


def test_a_visit_under_flux_is_made_by_the_brokers_on_the_hosts_that_are_meant(tmp_path: Path) -> None:
    start = managed_start("flux", ("echo", "a b"), placement=make_placement(("other", "here.site")))
    (first, second) = visit_each(flux.visit, start)

    assert first.argv[:5] == ("/usr/bin/flux", "exec", "--noinput", "--rank=all", "sh")
    (tmp_path / "uname").write_text("#!/bin/sh\necho here\n")
    (tmp_path / "uname").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    answers = [
        subprocess.run([*job.argv[4:], "tag", "look"], env=env, capture_output=True, text=True, check=True).stdout
        for job in (first, second)
    ]
    assert answers == ["", "a b tag look\n"]


def test_a_visit_under_jsrun_goes_over_ssh_and_there_is_none_under_aprun() -> None:
    visitor = Program(argv=("/opt/p y/python", "-m", "busbw.rank.visit", "/runs/a b'c"), env=())
    made = jobs(jsrun.LAUNCHER, managed_start("jsrun"), managed_start("jsrun"), visitor)

    assert made.visit is None
    assert [job.argv[:4] for job in made.visit_each] == [
        ("ssh", "-o", "BatchMode=yes", host) for host in ("nid00012", "nid00013")
    ]
    assert sent_over_ssh(made.visit_each[0]) == list(visitor.argv)
    assert shlex.split(made.visit_each[0].argv[-1]) == list(visitor.argv)
    assert jobs(aprun.LAUNCHER, managed_start("aprun"), managed_start("aprun"), visitor).visit_each == ()
