"""Logs of NCCL before 2.18, which name connections otherwise and do not count nodes."""

from .test_diagnosis import codes, evidence, read


def test_rings_of_2_4_are_connections():
    diagnosis = read(
        "n1:11:12 [0] NCCL INFO NET/IB : No device found.\n"
        "n1:11:13 [0] NCCL INFO Ring 00 : 0 -> 1 [send] via NET/Socket/0\n"
        "n2:21:23 [0] NCCL INFO Ring 00 : 0 -> 1 [receive] via NET/Socket/0\n"
        "n1:11:13 [0] NCCL INFO comm 0x7f1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 - Init COMPLETE\n"
        "n2:21:23 [0] NCCL INFO comm 0x7f1 rank 1 nranks 2 cudaDev 0 nvmlDev 0 - Init COMPLETE\n"
    )

    assert [(way.via, way.place, way.lines) for way in diagnosis.traffic] == [("NET/Socket", "between nodes", 2)]
    assert codes(diagnosis) == {"LOG001"}


def test_a_graph_is_no_connection():
    assert not read("n1:11:13 [0] NCCL INFO Ring 00 : 1 -> 0 -> 1\n").traffic


def test_shared_memory_has_one_name():
    diagnosis = read("n1:11:13 [0] NCCL INFO Channel 00 : 1[24000] -> 2[41000] via direct shared memory\n")

    assert [(way.via, way.place) for way in diagnosis.traffic] == [("SHM", "within nodes")]


def test_what_goes_over_the_network_where_ranks_reach_each_other_without_it_leaves_the_host():
    diagnosis = read(
        "n1:11:13 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]\n"
        "n1:11:13 [0] NCCL INFO Using network Socket\n"
        "n1:11:13 [0] NCCL INFO Channel 00 : 3[a1000] -> 0[1000] [receive] via NET/Socket/0\n"
        "n1:11:13 [0] NCCL INFO Channel 00 : 0[1000] -> 1[24000] via P2P/IPC\n"
    )

    assert "1 connection via NET/Socket; libibverbs.so" in evidence(diagnosis, "LOG001")


def test_a_library_that_one_node_has_no_use_for_slows_nothing():
    diagnosis = read(
        "n1:11:13 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]\n"
        "n1:11:13 [0] NCCL INFO Using network Socket\n"
        "n1:11:13 [0] NCCL INFO Channel 00 : 0[1000] -> 1[24000] via P2P/IPC\n"
    )

    assert codes(diagnosis) == {"LOG044", "LOG046"}
    assert not any(found.is_serious for found in diagnosis.findings)
    assert diagnosis.verdict.outcome == "cannot_tell"
