"""mpirun_rsh: its command lines, read as strictly as its own sources read them (MVAPICH2 2.3.7-1)."""

import re
import shlex
from dataclasses import dataclass

import pytest
from hypothesis import given

from busbw.base.errors import InputError
from busbw.env.reading import read
from busbw.measure.launchers import mpirun, mpirun_rsh
from busbw.measure.launchers.command_line import command_line
from busbw.measure.launchers.registry import find, writing
from busbw.measure.launchers.variables import mvapich_generation
from busbw.measure.plan.hosts import untried
from busbw.model.launch import Start
from busbw.model.plan import Job

from .starts import MPIS, here, library, make_placement, make_start
from .test_quoting import DIRECTORIES, ENVIRONMENTS, WORDS, started

MVAPICH2 = library("MVAPICH", "2.3.7")
# mpirun_params.c, option_table.
_VALUED = {"-np", "-ppn", "-hostfile", "-launcher", "-spawnfile", "-config", "-dpmspawn", "-sg"}
_FLAGS = {"-debug", "-xterm", "-show", "-help", "-v", "-tv", "-legacy", "-fastssh", "-export", "-export-all"}
# parser.y: hostname ':' multiplier [':' hca [':' port]].
_HOST = re.compile(r"(?P<name>[^:\s]+)(?::(?P<count>\d+))?(?::(?P<hca>[^:\s\d][^:\s]*)(?::\d+)?)?")


@dataclass(frozen=True)
class Ranks:
    """What the ranks of another host get."""

    env: dict[str, str]
    command: tuple[str, ...]
    hosts: tuple[str, ...]


def ranks_of(job: Job) -> Ranks:
    """Read a job as mpirun_rsh does: options, settings as words, the program; a shell of the other host in between."""
    given_: dict[str, str] = {}
    at = 1
    while job.argv[at].startswith("-"):
        word = job.argv[at]
        assert word in _VALUED | _FLAGS, word
        at += 1
        if word in _VALUED:
            given_[word] = job.argv[at]
            at += 1
        else:
            given_[word] = ""
    sent: list[str] = []
    count = 0
    while "=" in job.argv[at]:
        name, _equals, value = job.argv[at].partition("=")
        # mpirun_rsh.c: no quotes around the value.
        sent += [f"MPISPAWN_GENERIC_NAME_{count}={name}", f"MPISPAWN_GENERIC_VALUE_{count}={value}"]
        count += 1
        at += 1
    sent += [f"MPISPAWN_ARGV_{number}='{word}'" for number, word in enumerate(job.argv[at:])]
    got = dict(word.partition("=")[::2] for word in shlex.split(" ".join(sent)))
    env = dict(job.env) if "-export-all" in given_ else {}
    env |= {got[f"MPISPAWN_GENERIC_NAME_{each}"]: got[f"MPISPAWN_GENERIC_VALUE_{each}"] for each in range(count)}
    (file,) = (each for each in job.files if given_["-hostfile"].endswith(f"/{each.path}"))
    hosts: list[str] = []
    for line in file.text.splitlines():
        match = _HOST.fullmatch(line)
        assert match is not None, line
        hosts += [match["name"]] * int(match["count"] or 1)
    assert int(given_["-np"]) == len(hosts)
    return Ranks(env, tuple(got[f"MPISPAWN_ARGV_{each}"] for each in range(len(job.argv) - at)), tuple(hosts))


def start_of(**changes: object) -> Start:
    values: dict[str, object] = {"mpi": MVAPICH2, "launcher_program": "/opt/m/bin/mpirun_rsh"}
    argv = changes.pop("argv", ("/bin/p",))
    return make_start(argv, **(values | changes))  # type: ignore[arg-type]


def said(**changes: object) -> str:
    return " ".join(mpirun_rsh.job(start_of(**changes)).argv)


@given(env=ENVIRONMENTS, words=WORDS, directory=DIRECTORIES)
def test_what_arrives_is_what_was_asked(env: dict[str, str], words: list[str], directory: str):
    argv = ("/bin/p", *words)
    job = started(mpirun_rsh.job, start_of(argv=argv, env=tuple(env.items()), directory=directory))
    if job is None:
        return
    got = ranks_of(job)

    assert {each: got.env[each] for each in env} == env
    assert got.command == argv
    assert got.hosts == ("n0", "n0", "n1", "n1")


def test_a_line_over_two_hosts():
    env = (("NCCL_IB_HCA", "^mlx5_an0:1"), ("UCX_TLS", "rc,sm,self"))
    job = mpirun_rsh.job(start_of(env=env, placement=make_placement(binding="core")))

    assert job.argv == (
        "/opt/m/bin/mpirun_rsh", "-np", "4", "-hostfile", "/runs/x/hosts",
        "MV2_ENABLE_AFFINITY=1", "MV2_CPU_BINDING_POLICY=bunch", "MV2_CPU_BINDING_LEVEL=core",
        "NCCL_IB_HCA=^mlx5_an0:1", "UCX_TLS=rc,sm,self", "/bin/p",
    )  # fmt: skip
    assert [(each.path, each.text) for each in job.files] == [("hosts", "n0:2\nn1:2\n")]
    assert job.env == ()
    assert ranks_of(job).hosts == ("n0", "n0", "n1", "n1")


@pytest.mark.parametrize("value", ["a b", "$HOME", "a;b", "(x)", "", "it's", "x\ny", "*", "~"])
def test_a_value_that_a_shell_would_read_goes_through_the_socket(value: str):
    job = mpirun_rsh.job(start_of(env=(("A", value), ("B", "1"))))
    is_plain = value == ""

    assert ("-export-all" in job.argv) == (not is_plain)
    assert dict(job.env) == ({} if is_plain else {"A": value})
    assert "B=1" in job.argv
    assert ranks_of(job).env["A"] == value


def test_lists_that_a_folder_is_put_before_go_through_the_socket_but_the_loaders():
    assert "-export-all" not in said(prepend=(("LD_LIBRARY_PATH", "/a"),), forward=("LD_LIBRARY_PATH",))
    assert "-export-all" in said(prepend=(("PYTHONPATH", "/a"),))
    assert "-export-all" in said(forward=("HOME",))


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"binding": "none"}, {"MV2_ENABLE_AFFINITY": "0"}),
        ({"binding": "core", "oversubscribed": True}, {"MV2_ENABLE_AFFINITY": "0"}),
        ({"binding": "numa"}, {"MV2_CPU_BINDING_POLICY": "scatter", "MV2_CPU_BINDING_LEVEL": "numanode"}),
        ({"binding": "masks", "masks": ("0-2,8", "3")}, {"MV2_CPU_MAPPING": "0-2,8:3"}),
    ],
)
def test_ranks_are_bound_by_mvapich_itself(changes: dict[str, object], wanted: dict[str, str]):
    got = ranks_of(mpirun_rsh.job(start_of(placement=make_placement(**changes)))).env

    assert wanted.items() <= got.items()
    assert ("MV2_CPU_MAPPING" in got) == ("MV2_CPU_MAPPING" in wanted)


def test_the_pre_releases_of_mvapich_3_are_told_by_their_own_names():
    got = ranks_of(mpirun_rsh.job(start_of(mpi=library("MVAPICH", "3.0")))).env

    assert got["MVP_CPU_BINDING_LEVEL"] == "core"
    assert not any(each.startswith("MV2_") for each in got)


def test_what_was_asked_for_goes_before_what_busbw_binds_by():
    asked = (("MV2_CPU_BINDING_POLICY", "scatter"),)

    assert ranks_of(mpirun_rsh.job(start_of(env=asked))).env["MV2_CPU_BINDING_POLICY"] == "scatter"


def test_one_host_is_this_one():
    job = mpirun_rsh.job(start_of(placement=here(3)))

    assert ranks_of(job).hosts == ("localhost",) * 3


def test_programs_of_several_ranks_are_counted_once():
    job = mpirun_rsh.job(start_of(placement=make_placement(ranks_of_hosts=(8, 8)), per_process=4))

    assert ranks_of(job).hosts == ("n0", "n0", "n1", "n1")


def test_another_number_of_ranks_on_each_host():
    assert ranks_of(mpirun_rsh.job(start_of(placement=make_placement(ranks_of_hosts=(3, 1))))).hosts == (
        "n0", "n0", "n0", "n1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"mpi": MPIS["MVAPICH"]}, "MVAPICH 4 has no mpirun_rsh"),
        ({"mpi": MPIS["MPICH"]}, "not of MPICH"),
        ({"mpi": None}, "not of no MPI"),
        ({"launcher_program": None}, "there is no mpirun_rsh here"),
        ({"argv": ("/bin/p", "it's")}, "between single quotes"),
        ({"argv": ("A=/bin/p",)}, "for a setting"),
        ({"remote_shell": ("ssh", "-p", "22")}, "built in"),
        ({"env": (("MPISPAWN_ID", "1"),)}, "sets this variable itself"),
        ({"placement": make_placement(binding="masks", masks=(",".join(map(str, range(0, 2000, 2))), "1"))},
         "characters of a mapping"),
    ],
)  # fmt: skip
def test_what_cannot_arrive_is_refused(changes: dict[str, object], cause: str):
    with pytest.raises(InputError, match=cause):
        mpirun_rsh.job(start_of(**changes))


def test_hosts_are_visited_over_ssh_one_by_one():
    start = start_of(placement=make_placement(("n0",), (1,)), argv=("/bin/look", "a b"))

    assert mpirun_rsh.visit(start).argv == ("ssh", "-o", "BatchMode=yes", "n0", "/bin/look 'a b'")
    with pytest.raises(InputError, match="one by one"):
        mpirun_rsh.visit(start_of())


def test_it_is_a_launcher_that_says_that_it_was_never_run():
    assert find("mpirun_rsh") is mpirun_rsh.LAUNCHER
    assert "mpirun_rsh" in writing()
    assert untried(mpirun_rsh.LAUNCHER) != ()


def test_env_lint_reads_what_is_written():
    job = mpirun_rsh.job(start_of(env=(("MV2_IBA_HCA", "mlx5_ib0"), ("UCX_TLS", "rc"))))
    lines = command_line(job)

    assert "    MV2_IBA_HCA=mlx5_ib0 \\\n" in lines
    got = {each.name: each.value for each in read(lines, "launch.sh", "shell").assignments}
    assert got == {name: value for name, value in ranks_of(job).env.items() if name not in dict(job.env)}


@pytest.mark.parametrize(
    ("version", "generation"),
    [("2.3.7", 2), ("3.2.1", 2), ("3.0", 3), ("3.4.3", 3), ("4.0", 4), ("4.3.0", 4), (None, None), ("unknown", None)],
)
def test_the_generation_is_told_by_the_version_of_mvapich_or_of_the_mpich_in_it(
    version: str | None, generation: int | None
):
    assert mvapich_generation(library("MVAPICH", version)) == generation


def test_hydra_leaves_the_binding_to_mvapich2_and_binds_mvapich_4():
    masks = make_placement(binding="masks", masks=("0-1", "2-3"))
    second = mpirun.job(make_start(mpi=MVAPICH2, placement=masks))
    fourth = mpirun.job(make_start(mpi=MPIS["MVAPICH"], placement=masks))

    assert second.argv[second.argv.index("-bind-to") + 1] == "none"
    assert dict(second.env)["MV2_CPU_MAPPING"] == "0-1:2-3"
    assert dict(second.env)["MV2_ENABLE_AFFINITY"] == "1"
    assert fourth.argv[fourth.argv.index("-bind-to") + 1] == "user:0+1,2+3"
    assert not any(each.startswith(("MV2_", "MVP_")) for each, _value in fourth.env)
