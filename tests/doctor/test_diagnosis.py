"""What is said of a job, whose log is made for one thing at a time."""

import pytest

from busbw.facts.platforms import find_platform
from busbw.logs.diagnosis import diagnose
from busbw.logs.reader import LogReader
from busbw.model.finding import Diagnosis

from .made import IB_LIST, Job


def read(*texts: str, platform: str | None = None) -> Diagnosis:
    reader = LogReader()
    for text in texts:
        reader.feed(text.encode())
        reader.end_source()
    kind = find_platform(platform).platform if platform is not None else None
    return diagnose(reader, tuple(f"{number}.log" for number in range(len(texts))), platform=kind)


def codes(diagnosis: Diagnosis) -> set[str]:
    return {finding.code for finding in diagnosis.findings}


def evidence(diagnosis: Diagnosis, code: str) -> str:
    (found,) = [finding for finding in diagnosis.findings if finding.code == code]
    return f"{found.title}: {found.evidence}"


def test_a_healthy_job_has_no_finding():
    diagnosis = read(Job().text())

    assert not diagnosis.findings
    assert diagnosis.verdict.outcome == "ok"
    assert (diagnosis.ranks, diagnosis.ranks_seen, diagnosis.nodes, diagnosis.hosts) == (4, 4, 2, 2)
    assert [(way.via, way.place, way.lines) for way in diagnosis.traffic] == [
        ("NET/IB/GDRDMA", "between nodes", 16),
        ("P2P/CUMEM/read", "within nodes", 16),
    ]


@pytest.mark.parametrize(
    ("line", "because"),
    [
        ("NCCL_IB_DISABLE set by environment to 1.", 'NCCL_IB_DISABLE = "1"'),
        ("NCCL_NET set by environment to Socket", 'NCCL_NET = "Socket"'),
        ("NET/IB : No device found.", "no RDMA device"),
        ("Failed to open libibverbs.so[.1]", "libibverbs.so"),
    ],
)
def test_sockets_between_nodes_are_found_with_their_cause(line, because):
    diagnosis = read(Job(network="Socket", between="NET/Socket/0", everywhere=(line,)).text())

    assert codes(diagnosis) == {"LOG001"}
    assert because in evidence(diagnosis, "LOG001")
    assert diagnosis.verdict.outcome == "slow"


def test_sockets_on_a_platform_say_what_they_cost_and_where_the_numbers_are_from():
    text = Job(
        network="Socket", between="NET/Socket/0", everywhere=("NET/Plugin: Could not find: libnccl-net.so",)
    ).text()

    (found,) = [each for each in read(text, platform="aws-p5").findings if each.code == "LOG001"]

    assert "aws-ofi-nccl" in found.evidence
    assert found.effect is not None
    assert "busbw limit --platform aws-p5 --nodes 2" in found.effect


def test_sockets_are_right_on_one_node():
    assert not read(Job(hosts=1, network="Socket").text()).findings


def test_connections_without_gpudirect_are_counted():
    diagnosis = read(Job(between="NET/IB/{nic}", everywhere=("NCCL_NET_GDR_LEVEL set by environment to LOC",)).text())

    assert codes(diagnosis) == {"LOG004"}
    assert "16 of 16" in evidence(diagnosis, "LOG004")
    assert 'NCCL_NET_GDR_LEVEL = "LOC"' in evidence(diagnosis, "LOG004")


def test_gpudirect_is_told_for_each_nic():
    lines = (
        "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
        "NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'",
    )

    facts = {fact.name: fact.values for fact in read(Job(everywhere=lines).text()).facts}

    assert [(held.value, held.who) for held in facts["GPUDirect RDMA of mlx5_0"]] == [("Enabled", "ranks 0-3")]
    assert [held.value for held in facts["GPUDirect RDMA of mlx5_1"]] == ["Disabled"]


def test_host_memory_within_a_node_is_found_where_peer_access_is_disabled():
    job = Job(hosts=1, gpus=4, inside="SHM/direct/direct", everywhere=("NCCL_P2P_DISABLE set by environment to 1.",))

    assert codes(read(job.text())) == {"LOG010"}


def test_host_memory_is_a_note_where_nothing_tells_that_there_is_a_better_way():
    diagnosis = read(Job(hosts=1, gpus=4, inside="SHM/direct/direct").text())

    assert codes(diagnosis) == {"LOG011"}
    assert diagnosis.verdict.outcome == "ok"


def test_a_network_within_a_node_is_found():
    job = Job(hosts=1, gpus=4, inside="NET/IB/0/GDRDMA", everywhere=("NCCL_SHM_DISABLE set by environment to 1.",))

    assert "NCCL_SHM_DISABLE" in evidence(read(job.text()), "LOG012")


def test_a_topology_file_that_is_not_there_is_found():
    line = "Could not open XML topology file /opt/ndv5-topo.xml : No such file or directory"

    assert "ranks 2-3: /opt/ndv5-topo.xml" in evidence(read(Job(of_rank={2: (line,), 3: (line,)}).text()), "LOG013")


def test_an_affinity_without_a_common_cpu_is_told_from_a_system_that_names_none():
    apart = (
        "ncclTopoGetCpuAffinity: Affinity for GPU 1 is empty, ignoring. (GPU affinity = 48-95 ; CPU affinity = 0-47)."
    )
    unknown = "ncclTopoGetCpuAffinity: Affinity for GPU 1 is empty, ignoring. (GPU affinity =  ; CPU affinity = 0-47)."

    assert codes(read(Job(of_rank={1: (apart,)}).text())) == {"LOG015"}
    assert codes(read(Job(of_rank={1: (unknown,)}).text())) == {"LOG014"}


def test_a_rank_with_another_version_is_named():
    assert "2.27.3: rank 3" in evidence(read(Job(version_of={3: "2.27.3+cuda12.9"}).text()), "LOG020")


def test_a_rank_with_another_value_of_a_setting_is_named():
    lines = {rank: (f"NCCL_PROTO set by environment to {'LL' if rank == 3 else 'Simple'}",) for rank in range(4)}

    found = evidence(read(Job(of_rank=lines).text()), "LOG021")

    assert "NCCL_PROTO" in found
    assert '"LL": rank 3' in found


def test_a_rank_that_alone_takes_a_setting_is_named():
    lines = {3: ("NCCL_PROTO set by environment to Simple",)}

    assert "only from rank 3, of 4 processes" in evidence(read(Job(of_rank=lines).text()), "LOG021")


def test_a_setting_of_rank_0_alone_is_no_difference():
    assert not read(Job(of_rank={0: ("NCCL_TUNING_FILE set by environment to x",)}).text()).findings


def test_what_ray_appends_to_a_line_is_no_part_of_a_value():
    lines = {0: ("NCCL_PROTO set by environment to LL [repeated 2x across cluster]",)}
    lines |= dict.fromkeys(range(1, 4), ("NCCL_PROTO set by environment to LL",))

    assert not read(Job(of_rank=lines).text()).findings


def test_a_log_that_ray_left_lines_out_of_proves_nothing_by_what_it_lacks():
    text = Job(
        unfinished=frozenset({3}), of_rank={1: ("NCCL_PROTO set by environment to LL [repeated 2x across cluster]",)}
    )

    assert not read(text.text()).findings


def test_nodes_with_different_numbers_of_nics_are_found():
    fewer = " ".join(IB_LIST.split()[:3])
    job = Job(network="IB")
    text = job.text().replace(
        f"node01:1003:2003 [1] NCCL INFO NET/IB : Using {IB_LIST}",
        f"node01:1003:2003 [1] NCCL INFO NET/IB : Using {fewer}",
    )

    assert "3: rank 3" in evidence(read(text), "LOG006")


def test_the_first_error_is_the_earliest_by_time_and_the_others_only_followed():
    job = Job()
    later = job.warn(0, "socketProgress: Connection closed by remote peer 10.0.0.2<41234>", time="2026-11-21 10:00:05")
    first = job.warn(3, "Cuda failure 'uncorrectable ECC error encountered'", time="2026-11-21 10:00:01")
    second = job.warn(
        1,
        "NET/IB : Got completion from peer 10.0.0.2<1> with error 12, opcode 0, len 0, vendor err 129",
        time="2026-11-21 10:00:04",
    )

    diagnosis = read(job.text(later, second, first))

    assert diagnosis.verdict.outcome == "failed"
    found = evidence(diagnosis, "LOG030")
    assert "rank 3 on node01" in found
    assert "uncorrectable ECC" in found
    assert "ranks 0-1 only followed" in found


def test_without_times_and_in_several_files_the_order_is_not_claimed():
    job = Job()
    files = [
        "\n".join([*job.of(rank), job.warn(rank, "Cuda failure 'unspecified launch failure'")]) + "\n"
        for rank in range(2)
    ]

    (found,) = [each for each in read(*files).findings if each.code == "LOG030"]

    assert found.confidence == "possible"
    assert "rank 1" in found.evidence


def test_a_killed_rank_comes_before_the_transfers_that_it_left():
    job = Job()
    left = job.warn(0, "NET/IB : Got completion from peer 10.0.0.2<1> with error 12, opcode 0, len 0, vendor err 129")

    diagnosis = read(job.text(left, "srun: error: node01: task 3: Killed"))

    assert "a process was killed (signal 9)" in evidence(diagnosis, "LOG030")
    assert "rank 3 on node01" in evidence(diagnosis, "LOG030")


def test_a_rank_that_left_without_a_word_is_named_by_those_who_lost_it():
    job = Job(gpus=1)
    text = job.text(
        job.warn(0, "socketProgress: Connection closed by remote peer 10.0.0.2<41234>"),
        job.head(0) + "misc/socket.cc:749 -> 6",
    )

    found = evidence(read(text), "LOG031")

    assert "connections to node01 ended" in found
    assert "nothing of it from rank 1" in found


def test_connections_closed_at_the_end_of_a_healthy_job_are_nothing():
    job = Job()
    ends = [
        job.head(rank) + f"comm 0x55 rank {rank} nranks 4 cudaDev 0 busId 1 - Destroy COMPLETE" for rank in range(4)
    ]

    diagnosis = read(job.text(*ends, job.warn(0, "socketProgress: Connection closed by remote peer 10.0.0.2<41234>")))

    assert not diagnosis.findings


def test_ranks_that_did_not_finish_are_found_with_those_that_are_missing():
    diagnosis = read(Job(unfinished=frozenset({0, 1, 2}), absent=frozenset({3})).text())

    found = evidence(diagnosis, "LOG033")
    assert "ranks 0-2 began" in found
    assert "of rank 3 nothing" in found


def test_a_timeout_names_the_rank_that_did_not_report():
    line = (
        "[rank{0}]:[E321 02:07:08.40 Process.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600060 milliseconds"
    )

    found = evidence(read(Job().text(*(line.format(rank) for rank in range(3)))), "LOG032")

    assert "ranks 0-2 in ALLREDUCE number 41" in found
    assert "rank 3 did not report" in found


def test_an_error_that_a_framework_passes_on_is_no_cause():
    line = "[rank3]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library."

    assert "rank 3: ncclInvalidUsage" in evidence(read(Job().text(line)), "LOG036")


def test_what_a_framework_repeats_of_nccl_is_the_cause():
    lines = (
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:93, unhandled cuda error, NCCL version 2.29.3",
        "ncclUnhandledCudaError: Call to CUDA function failed.",
        "Last error:",
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'x'.",
    )

    diagnosis = read("\n".join(lines) + "\n")

    assert codes(diagnosis) == {"LOG030"}
    assert "NVLink SHARP cannot be set up" in evidence(diagnosis, "LOG030")


def test_a_watchdog_that_is_stuck_is_no_cause_where_ranks_waited():
    stuck = "[rank7]:[E626 05:14:36.39 x.cpp:1743] [Rank 7] ProcessGroupNCCL's watchdog got stuck for 480 seconds"
    waited = (
        "[rank2]:[E626 05:06:30.93 x.cpp:632] [Rank 2] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1)"
    )

    assert codes(read(f"{stuck}\n{waited}\n")) == {"LOG032"}
    assert "rank 7" in evidence(read(f"{stuck}\n"), "LOG036")


def test_a_warning_that_shows_no_slower_way_is_not_called_slow():
    missing = "Could not open XML topology file /opt/ndv5-topo.xml : No such file or directory"

    unproven = read(Job(everywhere=(missing,)).text())
    proven = read(
        Job(network="Socket", between="NET/Socket/0", everywhere=(missing, "NET/IB : No device found.")).text()
    )

    assert codes(unproven) == {"LOG013"}
    assert unproven.verdict.outcome == "cannot_tell"
    assert "the topology file is not there" in unproven.verdict.sentence
    assert codes(proven) == {"LOG001", "LOG013"}
    assert proven.verdict.outcome == "slow"
    assert "TCP" in proven.verdict.sentence


def test_what_is_harmless_slows_no_job():
    job = Job()

    diagnosis = read(job.text(job.warn(0, "Cannot get incoming CPU.")))

    assert codes(diagnosis) == {"LOG044"}
    assert diagnosis.verdict.outcome == "ok"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "[0] ",
        ":22901:22901 [0] ",
        "<host>:22901:22901 [0] ",
        "***:22901:22901 [0] ",
        "[node]:22901:22901 [0] ",
        "node [0] ",
        "gpu-7.example.com:XXXXX [0] ",
    ],
)
def test_a_host_that_was_taken_off_is_no_other_host(name):
    text = (
        f"{name}NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/4\n"
        f"{name}ofi_create:29 NCCL WARN NET/OFI Couldn't open a domain. RC: -38, ERROR: Function not implemented\n"
    )

    diagnosis = read(text)

    assert (diagnosis.hosts, diagnosis.nccl_lines) == (1, 2)
    assert [way.via for way in diagnosis.traffic] == ["NET/IB"]
    assert "on unnamed: NET/OFI" in evidence(diagnosis, "LOG030")


def test_connections_alone_are_shown():
    diagnosis = read("node1:9:9 [0] NCCL INFO Channel 00 : 1[3000] -> 0[3000] [receive] via NET/IB/0\n")

    assert [(way.via, way.place) for way in diagnosis.traffic] == [("NET/IB", "unknown")]


def test_processes_that_do_not_know_of_each_other_are_found():
    jobs = Job(hosts=1, gpus=1).text() + Job(hosts=1, gpus=1).text().replace("node00:1000", "node01:1001")

    assert "LOG035" in codes(read(jobs))


def test_an_unknown_warning_is_repeated_and_fails_nothing():
    job = Job()

    diagnosis = read(job.text(job.warn(2, "Something that no version prints")))

    assert codes(diagnosis) == {"LOG041"}
    assert diagnosis.verdict.outcome == "ok"


def test_an_unknown_warning_that_nccl_hands_up_is_the_first_error():
    job = Job()
    text = job.text(job.warn(2, "Something that no version prints"), job.head(2) + "init.cc:1 -> 3")

    assert "rank 2 on node01: Something" in evidence(read(text), "LOG030")


def test_a_log_of_warnings_only_cannot_tell():
    assert read("NCCL version 2.28.9+cuda12.9\n").verdict.outcome == "cannot_tell"


@pytest.mark.parametrize(
    "tag",
    [
        "[1,{rank}]<stdout>:",
        "{rank}: ",
        "[rank{rank}]:",
        "\x1b[36m(worker pid={rank})\x1b[0m ",
        "2026-11-21T10:00:00.123Z ",
        "worker-{rank}  | ",
        "\x1b[36mworker-{rank}  | \x1b[0m",
        "[pod/job-worker-{rank}/main] ",
        "[pod/job-worker-{rank}/main] 2026-11-21T10:00:00.123456789Z ",
        "[default{rank}]:",
        "Sat Nov 21 10:00:00 2026[1,{rank}]<stdout>:",
        "Nov 21 10:00:00 gpu-1 train[4242]: ",
        "2026-11-21T10:00:00+0000 gpu-1 train[4242]: ",
        "2026-11-21T10:00:00.123456789Z stdout F ",
        "[2026-11-21 10:00:00.123456] ",
        "[1763712000.123] ",
        "  | 2026-11-21T10:00:00.123-07:00 | ",
        "451 ",
    ],
)
def test_what_launchers_write_before_a_line_changes_nothing(tag):
    job = Job()
    text = "".join(f"{tag.format(rank=rank)}{line}\n" for rank in range(4) for line in job.of(rank))

    diagnosis, plain = read(text), read(job.text())

    assert (diagnosis.traffic, diagnosis.facts, diagnosis.findings) == (plain.traffic, plain.facts, plain.findings)


@pytest.mark.parametrize("ending", ["\r\n", "\x1b[0m\n", " \n"])
def test_how_lines_end_changes_nothing(ending):
    job = Job()

    diagnosis, plain = read(job.text().replace("\n", ending)), read(job.text())

    assert (diagnosis.traffic, diagnosis.facts, diagnosis.findings) == (plain.traffic, plain.facts, plain.findings)


@pytest.mark.parametrize(
    "tag", ["Nov 21 10:00:00 gpu-1 train[4242]: ", "2026-11-21T10:00:00.5Z stdout F ", "worker-1  | ", "[default1]:"]
)
def test_a_warning_behind_a_tag_is_of_who_says_it(tag):
    job = Job()
    text = job.text(tag + job.warn(3, "Cuda failure 'uncorrectable ECC error encountered'").strip())

    assert "rank 3 on node01" in evidence(read(text), "LOG030")


def test_a_function_with_its_types_may_stand_before_a_warning():
    line = "node01:1003:2003 [1] int ep_t::init_rail(fid_domain*, int):12 NCCL WARN NET/OFI Couldn't open CQ. RC: -22"

    assert "rank 3 on node01: NET/OFI Couldn't open CQ" in evidence(read(Job().text(line)), "LOG030")


def test_a_log_cut_off_in_the_middle_of_a_line_is_read_as_far_as_it_goes():
    text = Job().text()

    for end in range(len(text) - 120, len(text)):
        assert read(text[:end]).verdict.outcome == "ok"


def test_lines_without_host_and_process_still_tell_what_they_say():
    job = Job(between="NET/IB/{nic}", everywhere=("NCCL_NET_GDR_LEVEL set by environment to LOC",))
    text = "".join(line.split(" ", 1)[1] + "\n" for line in job.lines())
    text += "[1] misc/socket.cc:71 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n"

    diagnosis = read(text)

    assert codes(diagnosis) == {"LOG004", "LOG030"}
    assert (diagnosis.ranks, diagnosis.ranks_seen, diagnosis.nodes) == (4, 4, 2)


def test_unknown_warnings_that_differ_in_numbers_are_one():
    job = Job()
    lines = [job.warn(rank, f"Could not fathom {rank} leagues below 0x7f{rank}") for rank in range(4)]

    found = evidence(read(job.text(*lines, *lines)), "LOG041")

    assert "ranks 0-3: 8 lines of this form, the first: Could not fathom 0 leagues" in found


def test_of_many_kinds_of_unknown_warnings_the_last_are_counted():
    job = Job()
    lines = [job.warn(0, f"Could not fathom {word}") for word in ("a", "b", "c", "d", "e", "f", "g")]

    found = [each for each in read(job.text(*lines)).findings if each.code == "LOG041"]

    assert len(found) == 6
    assert found[-1].evidence.startswith("2 more kinds of warnings, 2 lines")


def test_a_line_written_into_another_makes_no_host():
    job = Job()
    torn = "node" + job.head(1) + "Using network IB"

    diagnosis = read(torn + "\n" + job.text())

    assert diagnosis.hosts == 2
    assert not diagnosis.findings


def test_nodes_are_counted_where_no_rank_says_that_it_begins():
    diagnosis = read(
        "n1:1:9 [2] NCCL INFO Using network IB\n"
        "n1:1:9 [2] NCCL INFO comm 0x1 rank 2 nRanks 16 nNodes 2 localRanks 8 localRank 2 MNNVL 0\n"
        "n1:1:9 [2] NCCL INFO Channel 00/0 : 2[2] -> 10[2] [send] via NET/IB/0\n"
    )

    assert diagnosis.nodes == 2
    assert codes(diagnosis) == {"LOG004"}


def test_hosts_that_nvlinks_join_are_one_node_to_nccl_and_two_hosts():
    diagnosis = read(Job(between="P2P/MNNVL", inside="P2P/MNNVL").text().replace("nNodes 2", "nNodes 1"))

    assert {(way.via, way.place) for way in diagnosis.traffic} == {
        ("P2P/MNNVL", "between nodes"),
        ("P2P/MNNVL", "within nodes"),
    }
    assert "NVLinks between hosts" in diagnosis.verdict.sentence
    assert not diagnosis.findings


def test_sockets_are_explained_by_a_plugin_that_found_no_device():
    job = Job(network="Socket", between="NET/Socket/0", everywhere=("NET/IB : No device found.",))

    found = evidence(
        read(job.text(job.warn(0, "NET/OFI Unable to find a protocol that worked.  Failing initialization."))), "LOG001"
    )

    assert "the libfabric plug-in finds no device" in found


def test_a_plugin_that_was_asked_for_and_is_not_there_is_found_whatever_the_version_calls_it():
    lines = ("NET/Plugin: Plugin name set by env to libnccl-net-x.so", "NET/Plugin: Could not find: libnccl-net-x.so.")

    diagnosis = read(Job(everywhere=lines).text())

    assert codes(diagnosis) == {"LOG005"}
    assert 'NCCL_NET_PLUGIN = "libnccl-net-x.so"' in evidence(diagnosis, "LOG005")


def facts(diagnosis: Diagnosis) -> dict[str, tuple[str, ...]]:
    return {
        fact.name: tuple(value.value for value in fact.values) for fact in (*diagnosis.facts, *diagnosis.environment)
    }


def test_a_log_of_the_fork_msccl_tells_its_version_and_how_many_algorithms_it_took():
    job = Job(
        version="2.12.12.MSCCL.0.7.4+cuda11.8",
        everywhere=(
            "MSCCL_XML_FILES set by environment to /opt/two-step.xml",
            "MSCCL: Parsing algorithm /opt/two-step.xml",
            "Parsed MSCCL Algorithm /opt/two-step.xml successfully.",
            "Connected 1 MSCCL algorithms",
        ),
    )

    diagnosis = read(job.text())

    assert diagnosis.verdict.outcome == "ok"
    assert not diagnosis.findings
    told = facts(diagnosis)
    assert told["version"] == ("2.12.12.MSCCL.0.7.4+cuda11.8",)
    assert told["MSCCL"] == ("algorithms read: 1",)
    assert told["MSCCL_XML_FILES"] == ("/opt/two-step.xml",)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        (
            "Using MSCCL Algo files from /usr/share/nccl/msccl-algorithms",
            "MSCCL",
            "algorithms of /usr/share/nccl/msccl-algorithms",
        ),
        (
            "Using MSCCL files from /opt/rocm/share/rccl/msccl-algorithms",
            "MSCCL",
            "algorithms of /opt/rocm/share/rccl/msccl-algorithms",
        ),
        ("MSCCL++: Enabled! Msg size threshold=1048576", "MSCCL++", "up to 1048576 bytes"),
    ],
)
def test_what_reads_algorithms_of_msccl_is_told(line: str, name: str, value: str):
    assert facts(read(Job(everywhere=(line,)).text()))[name] == (value,)
    assert name not in facts(read(Job().text()))


def test_an_algorithm_for_another_number_of_gpus_is_said_to_be_left_out():
    job = Job()
    first, second = (
        "MSCCL: ngpus set in the MSCCL algo (16) doesn't match the communicator ngpus (4)",
        "MSCCL: algorithm two-step.xml failed to initialize. Will be ignored.",
    )

    diagnosis = read(job.text(*(job.warn(rank, text) for rank in range(4) for text in (first, second))))

    told = " ".join(f"{finding.title} {finding.evidence}" for finding in diagnosis.findings)
    assert "an algorithm of MSCCL is made for 16 GPUs, and a communicator has 4" in told
    assert "an algorithm of MSCCL is left out: two-step.xml" in told
    assert diagnosis.verdict.outcome != "failed"


def test_one_node_without_the_algorithms_of_msccl_is_named():
    with_them = "Using MSCCL Algo files from /usr/share/nccl/msccl-algorithms"
    job = Job(hosts=4, of_rank=dict.fromkeys(range(6), (with_them,)))

    assert "LOG023" in codes(read(job.text()))
    assert "LOG023" not in codes(read(Job(hosts=4, everywhere=(with_them,)).text()))
