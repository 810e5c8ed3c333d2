"""Which hosts a job has, as each batch system says it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from busbw.base.errors import InputError
from busbw.machine.read import allocation, batch_systems
from busbw.machine.read.batch_systems import Seen, grid_engine_file, host_file, host_list, node_file
from busbw.model.host import Answer
from busbw.model.launch import Allocation, HostSlots


def found(environment: dict[str, str], **more: object) -> Allocation:
    made = allocation.allocation(Seen(environment=environment, **more))  # type: ignore[arg-type]
    assert made is not None
    return made


def slots(hosts: tuple[HostSlots, ...]) -> str:
    return " ".join(f"{host.name}:{host.slots}" if host.slots is not None else host.name for host in hosts)


def answer(name: str, output: str = "", *, error: str = "", ended: str = "ok") -> Answer:
    return Answer(name=name, argv=("/usr/bin/tool",), ended=ended, output=output, error=error)  # type: ignore[arg-type]


# As `salloc -N4 -n7` sets them in Slurm 22.05.
SLURM = {
    "SLURM_JOB_ID": "17",
    "SLURM_JOB_NODELIST": "n[0-3]",
    "SLURM_JOB_NUM_NODES": "4",
    "SLURM_TASKS_PER_NODE": "2(x3),1",
    "SLURM_NTASKS": "7",
    "SLURM_JOB_END_TIME": "1700000000",
}


def test_outside_of_any_batch_system_there_is_no_allocation() -> None:
    assert allocation.allocation(Seen(environment={"HOME": "/root", "PBS_NODEFILE": ""})) is None


def test_slurm_gives_hosts_tasks_and_the_end() -> None:
    made = found(SLURM)
    assert made.kind == "slurm"
    assert slots(made.hosts) == "n0:2 n1:2 n2:2 n3:1"
    assert (made.job_id, made.ends_unix_s) == ("17", 1.7e9)
    assert made.how == "SLURM_JOB_NODELIST=n[0-3] of job 17"
    assert made.passed_over == ()


def test_inside_a_step_of_slurm_the_job_is_meant_and_its_tasks_are_not_known() -> None:
    made = found({**SLURM, "SLURM_STEP_ID": "0", "SLURM_TASKS_PER_NODE": "1"})
    assert slots(made.hosts) == "n0 n1 n2 n3"
    assert made.how == "SLURM_JOB_NODELIST=n[0-3] of job 17, inside step 0"
    assert made.passed_over == ("SLURM_TASKS_PER_NODE=1: it is of 1 hosts, and the job has 4",)


@pytest.mark.parametrize("told", ["SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_CPUS_PER_TASK"])
def test_slurm_counts_cpus_where_no_tasks_were_asked_for(told: str) -> None:
    # As `salloc -N2 --exclusive` sets them on nodes of 96 CPUs.
    asked_nothing = {"SLURM_JOB_ID": "18", "SLURM_JOB_NODELIST": "n[0-1]", "SLURM_TASKS_PER_NODE": "96(x2)"}
    made = found(asked_nothing)
    assert [(host.name, host.slots, host.cpus) for host in made.hosts] == [("n0", None, 96), ("n1", None, 96)]
    assert made.passed_over == ("SLURM_TASKS_PER_NODE=96(x2): the job did not ask for tasks, these are CPUs",)
    assert slots(found({**asked_nothing, told: "96"}).hosts) == "n0:96 n1:96"


def test_the_shell_of_salloc_is_called_what_it_is() -> None:
    assert found({**SLURM, "SLURM_STEP_ID": "4294967290"}).how.endswith("inside the interactive step")


def test_other_components_of_a_heterogeneous_job_are_named() -> None:
    assert "other components" in found({**SLURM, "SLURM_HET_SIZE": "2"}).passed_over[0]


@pytest.mark.parametrize(
    ("changed", "cause", "where"),
    [
        ({"SLURM_JOB_NODELIST": "n[0-"}, "not closed", "SLURM_JOB_NODELIST"),
        ({"SLURM_JOB_NODELIST": "n0,n0", "SLURM_JOB_NUM_NODES": "2"}, "named twice", "SLURM_JOB_NODELIST=n0,n0"),
        ({"SLURM_JOB_NUM_NODES": "3"}, "lists 4 hosts, and SLURM_JOB_NUM_NODES is 3", "SLURM_JOB_NODELIST"),
        ({"SLURM_TASKS_PER_NODE": "2(x"}, "not a number of tasks", "SLURM_TASKS_PER_NODE"),
        ({"SLURM_TASKS_PER_NODE": "2(x99999999)"}, "more than 65536", "SLURM_TASKS_PER_NODE"),
        ({"SLURM_JOB_ID": "17; rm"}, "not a number of a job", "SLURM_JOB_ID"),
    ],
)
def test_what_slurm_would_not_write_is_refused(changed: dict[str, str], cause: str, where: str) -> None:
    with pytest.raises(InputError, match=cause) as refused:
        found({**SLURM, **changed})
    assert refused.value.where == where


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_repeats_of_tasks_are_read_as_slurm_writes_them(counts: list[int]) -> None:
    parts: list[list[int]] = []
    for count in counts:
        if parts and parts[-1][0] == count:
            parts[-1][1] += 1
        else:
            parts.append([count, 1])
    text = ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in parts)
    assert batch_systems.repeats(text, "test") == tuple(counts)


def test_pbs_lists_a_host_once_for_each_slot() -> None:
    environment = {"PBS_NODEFILE": "/var/spool/pbs/aux/12.server", "PBS_JOBID": "12.server"}
    made = found(environment, files={"PBS_NODEFILE": "n0\nn0\nn1.cluster\nn1.cluster\nn1.cluster\n"})
    assert (made.kind, slots(made.hosts), made.job_id) == ("pbs", "n0:2 n1.cluster:3", "12.server")
    assert made.how == "PBS_NODEFILE=/var/spool/pbs/aux/12.server of job 12.server"


def test_a_file_that_a_variable_names_and_that_is_gone_is_an_error() -> None:
    with pytest.raises(InputError, match="PBS_NODEFILE names a file that cannot be read: no such file") as refused:
        found({"PBS_NODEFILE": "/gone"}, unread={"PBS_NODEFILE": "no such file"})
    assert refused.value.where == "/gone"


@pytest.mark.parametrize(
    ("environment", "files"),
    [
        ({"LSB_DJOB_HOSTFILE": "/f", "LSB_HOSTS": "wrong"}, {"LSB_DJOB_HOSTFILE": "h1\nh1\nh2\nh2\n"}),
        ({"LSB_MCPU_HOSTS": "h1 2 h2 2 "}, {}),
        ({"LSB_HOSTS": "h1 h1 h2 h2"}, {}),
    ],
)
def test_lsf_says_its_hosts_in_three_ways(environment: dict[str, str], files: dict[str, str]) -> None:
    made = found({"LSB_JOBID": "8", **environment}, files=files)
    assert (made.kind, slots(made.hosts), made.job_id, made.passed_over) == ("lsf", "h1:2 h2:2", "8", ())


def test_the_launch_node_of_lsf_is_left_out_where_it_is_known_to_be_one() -> None:
    summit = {"LSB_MCPU_HOSTS": "batch5 1 a01n05 42 a01n06 42", "CSM_ALLOCATION_ID": "3"}
    made = found(summit)
    assert slots(made.hosts) == "a01n05:42 a01n06:42"
    assert made.passed_over[0].startswith("batch5: the first host, with one slot, is the launch node")


def test_a_first_host_with_one_slot_is_kept_where_nothing_says_that_it_is_a_launch_node() -> None:
    made = found({"LSB_MCPU_HOSTS": "a 1 b 42"})
    assert slots(made.hosts) == "a:1 b:42"
    assert made.passed_over[0].startswith("possibly a is a launch node")


@pytest.mark.parametrize("value", ["h1", "h1 2 h2", "h1 0", "h1 x", "-h1 2"])
def test_what_lsf_would_not_write_is_refused(value: str) -> None:
    with pytest.raises(InputError):
        found({"LSB_MCPU_HOSTS": value})


def test_grid_engine_gives_columns() -> None:
    text = "n0.local 4 all.q@n0.local UNDEFINED\nn1.local 2 all.q@n1.local UNDEFINED\nn0.local 1 other.q@n0.local 0,1\n"
    made = found({"PE_HOSTFILE": "/spool/pe_hostfile", "JOB_ID": "5"}, files={"PE_HOSTFILE": text})
    assert (made.kind, slots(made.hosts), made.job_id) == ("sge", "n0.local:5 n1.local:2", "5")
    with pytest.raises(InputError, match="not the columns") as refused:
        grid_engine_file("n0 4 q u\nn1\n", "/f")
    assert refused.value.where == "/f:2"


def test_flux_is_asked_for_its_hosts() -> None:
    answers = (
        answer("flux-hostlist", "host[1-2]\n"),
        answer("flux-jobid", "ƒTq4Ld\n"),
        answer("flux-timeleft", "90.5\n"),
    )
    made = found({"FLUX_URI": "local:///run/flux/local"}, answers=answers, now_unix_s=1000.0)
    assert (made.kind, slots(made.hosts), made.job_id, made.ends_unix_s) == ("flux", "host1 host2", "ƒTq4Ld", 1090.5)
    assert made.how == "`flux hostlist local` of job ƒTq4Ld"


def test_an_older_flux_knows_the_hosts_of_an_instance() -> None:
    answers = (answer("flux-hostlist", ended="failed"), answer("flux-attribute", "host[1-2]\n"))
    assert found({"FLUX_URI": "x"}, answers=answers).how == "`flux getattr hostlist`"
    # Of a job it would tell the hosts of the instance, which are more.
    with pytest.raises(InputError, match="flux does not tell the hosts"):
        found({"FLUX_URI": "x", "FLUX_JOB_ID": "f2"}, answers=answers)


def test_flux_without_a_limit_has_no_end() -> None:
    answers = (answer("flux-hostlist", "h1"), answer("flux-timeleft", "infinity"))
    assert found({"FLUX_URI": "x"}, answers=answers).ends_unix_s is None


def test_several_systems_at_once_are_ranked_and_the_others_named() -> None:
    made = found(
        {**SLURM, "FLUX_URI": "x", "PE_HOSTFILE": "/gone", "PBS_NODEFILE": "/f"},
        files={"PBS_NODEFILE": "n0\n"},
        unread={"PE_HOSTFILE": "no such file"},
        answers=(answer("flux-hostlist", "n[0-1]"),),
    )
    assert made.kind == "flux"
    assert made.passed_over == (
        "SLURM_JOB_NODELIST=n[0-3] of job 17: Flux was found too, and is followed",
        "PBS_NODEFILE=/f: Flux was found too, and is followed",
        "Grid Engine: PE_HOSTFILE names a file that cannot be read: no such file",
    )


def test_hosts_that_are_named_pass_over_the_allocation_and_tell_who_is_not_of_it() -> None:
    made = allocation.chosen("n[2-5]:8", None, found(SLURM))
    assert (made.kind, slots(made.hosts)) == ("host list", "n2:8 n3:8 n4:8 n5:8")
    assert made.passed_over == ("SLURM_JOB_NODELIST=n[0-3] of job 17: --hosts was given; n[4-5] are not of it",)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        # Open MPI's documentation of host files, with all its ways of a comment.
        ("# nodes\nfoo.example.com\nbar.example.com slots=2\nyow.example.com slots=4 max-slots=4 # big\n",
         "foo.example.com bar.example.com:2 yow.example.com:4"),
        ("n0 slots = 4\nn1 cpu=2 max_slots= 8\nn2 max_slots=3 // more\n", "n0:4 n1:2 n2"),
        # Hydra's.
        ("donner:2\nfoo:2\nshakey:2\nterra:2\n", "donner:2 foo:2 shakey:2 terra:2"),
        ("n0:2\nn1\nn0:1\r\n", "n0:3 n1"),
        ("a\nb\na\n", "a:2 b"),
        ("n[0-2] slots=8\n", "n0:8 n1:8 n2:8"),
        ("n[0-1]:4,m\n", "n0:4 n1:4 m"),
        ("10.0.0.1 slots=1\n", "10.0.0.1:1"),
        ("n0 , n1\n", "n0 n1"),
    ],
)  # fmt: skip
def test_a_host_file_is_read_as_its_launcher_would(text: str, hosts: str) -> None:
    assert slots(host_file(text, "/f")) == hosts


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("n0 4", "known are slots=N and max_slots=N"),
        ("n0 slots=x", "no number of slots"),
        ("n0 slots=0", "no number of slots"),
        ("n0 slots=2 slots=3", "the same is said before"),
        ("n0 slots=4 max_slots=2", "more slots than the most"),
        ("n0:2 slots=2", "both :N and slots="),
        ("n0:", "not a host"),
        ("n0:0", "without slots"),
        ("alice@n0", "belongs into the settings of ssh"),
        ("^n0", "depend on another list"),
        ("+n0", "depend on another list"),
        ("rank 0=n0 slot=1", "known are"),
        ("n0 ifname=ib0", "known are"),
        ("fe80::1", "an address of IPv6"),
        ("[fd00::1:2]:4 slots=1", "an address of IPv6"),
        ("/* n0 */", "known are"),
        ('"n0"', "cannot be the name of a host"),
    ],
)
def test_what_is_unknown_in_a_host_file_is_refused_with_its_line(line: str, cause: str) -> None:
    with pytest.raises(InputError, match=cause.replace("(", r"\(")) as refused:
        host_file(f"a slots=1\n\n{line}\n", "/etc/hosts.mpi")
    assert refused.value.where == "/etc/hosts.mpi:3"


def test_slots_said_twice_are_refused() -> None:
    for text in ("n0 slots=2\nn0 slots=2\n", "n0 slots=2\nn0\n", "n0\nn0:3\n"):
        with pytest.raises(InputError, match="has its slots twice"):
            host_file(text, "/f")


def test_a_file_without_hosts_is_refused() -> None:
    for read in (host_file, node_file, grid_engine_file):
        with pytest.raises(InputError):
            read("# nothing\n", "/f")


@pytest.mark.parametrize(
    ("text", "hosts"),
    [("n0,n1", "n0 n1"), (" n0 , n1:4 ", "n0 n1:4"), ("n0,n0,n1", "n0:2 n1:1"), ("n0:2,n0:3,n1", "n0:5 n1")],
)
def test_a_list_counts_slots_as_mpirun_does(text: str, hosts: str) -> None:
    assert slots(host_list(text, "--hosts")) == hosts


def test_a_number_is_no_host() -> None:
    with pytest.raises(InputError, match="4 is a number") as refused:
        host_list("4", "--hosts 4")
    assert refused.value.hint == "--nodes 4"


NAMES = st.integers(0, 30).map(lambda number: f"n{number}")


@given(st.lists(NAMES, min_size=1, max_size=60))
def test_names_once_for_each_slot_are_counted_in_order(names: list[str]) -> None:
    hosts = node_file("\n".join(names), "/f")
    assert [host.name for host in hosts] == list(dict.fromkeys(names))
    assert all(host.slots == names.count(host.name) for host in hosts)


# From 22.05 on.
PRINTED = """MPI plugin types are...
\tnone
\tcray_shasta
\tpmi2
\tpmix
specific pmix plugin versions available: pmix_v3,pmix_v4
"""


@pytest.mark.parametrize(
    ("output", "error", "types"),
    [
        # 20.11 complains; 22.05 and later print, and name the versions of PMIx in a line of their own.
        ("", "srun: MPI types are...\nsrun: pmix_v3\nsrun: pmix\nsrun: cray_shasta\nsrun: none\nsrun: pmi2\n",
         "pmix_v3 pmix cray_shasta none pmi2"),
        (PRINTED, "", "none cray_shasta pmi2 pmix pmix_v3 pmix_v4"),
        ("MPI plugin types are...\n\tnone\n\tpmi2\n", "srun: warning: something else\n", "none pmi2"),
        ("", "srun: fatal: Could not establish a configuration source\n", ""),
        ("", "srun: error: something\nsrun: pmix\n", ""),
    ],
)  # fmt: skip
def test_the_types_of_mpi_are_read_from_what_each_version_prints(output: str, error: str, types: str) -> None:
    answers = (
        Answer(name="srun-version", argv=("/usr/bin/srun", "--version"), ended="ok", output="slurm-wlm 22.05.8\n"),
        answer("srun-mpi", output, error=error),
        answer("srun-help", "      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH\n"),
    )
    made = batch_systems.slurm(answers)
    assert made is not None
    assert (made.srun, made.version, made.has_pyxis) == ("/usr/bin/srun", "22.05.8", True)
    assert made.mpi_types == tuple(types.split())


def test_without_srun_there_is_no_slurm() -> None:
    answers = tuple(
        Answer(name=name, argv=("srun",), ended="absent") for name in ("srun-version", "srun-mpi", "srun-help")
    )
    assert batch_systems.slurm(answers) is None


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "0"}, "Open MPI's mpirun started busbw 4 times"),
        ({"SLURM_STEP_NUM_TASKS": "8"}, "srun started busbw 8 times"),
        ({"PMI_SIZE": "2"}, "started busbw 2 times"),
        ({"JSM_NAMESPACE_SIZE": "6"}, "jsrun started busbw 6 times"),
        ({"SLURM_STEP_NUM_TASKS": "1"}, None),
        ({}, None),
    ],
)
def test_busbw_that_a_launcher_starts_several_times_is_told(environment: dict[str, str], words: str | None) -> None:
    told = allocation.multiplied(environment)
    assert told is None if words is None else told is not None and words in told
