"""What differs between hosts, in whose words, and what of it keeps a run from beginning."""

from typing import Any

import msgspec
import pytest

from busbw.judge.conditions import mixture_words, node_findings
from busbw.model.preflight import differences, sentence, sentences, troubles
from busbw.model.record import LoadedLibrary, NodeLimit, NodePort
from busbw.show.words import node_lines

from .made import NCCL, OLD_NCCL, node, nodes

PLUGIN = LoadedLibrary(name="libnccl-net", path="/a/n.so", version=None, fingerprint="f" * 16)


def said(**odd: dict[str, Any]) -> list[tuple[str, bool]]:
    return [(sentence(difference), difference.stops) for difference in differences(nodes(4, **odd))]


def test_hosts_that_are_alike_differ_in_nothing() -> None:
    assert differences(nodes()) == ()
    assert differences(nodes(1)) == ()
    assert node_findings(nodes()) == ()
    assert mixture_words(nodes()) is None


def test_one_host_with_another_library_is_named_with_both() -> None:
    ((words, stops),) = said(n2={"libraries": (OLD_NCCL,)})
    assert stops
    assert words == (
        "n2: NCCL 2.27.7 at /opt/libnccl.so.2, build 1b0c8e55, the 3 others "
        "2.28.9 at /usr/lib/libnccl.so.2, build 90d1f3aa"
    )


def test_without_a_majority_nobody_is_the_odd_one() -> None:
    odd = {"environment": (("NCCL_ALGO", "Tree"),)}
    (found,) = differences(nodes(4, n0=odd, n1=odd))
    assert sentence(found) == 'NCCL_ALGO differs: "Tree" on n[0-1], "Ring" on n[2-3]'
    (found,) = differences(nodes(2, n1=odd))
    assert sentence(found) == 'NCCL_ALGO differs: "Ring" on n0, "Tree" on n1'


def test_several_odd_values_are_each_told() -> None:
    odd = {"n1": {"mpi": "MPICH 4.2"}, "n4": {"mpi": "Intel MPI"}}
    (found,) = differences(nodes(6, **odd))
    assert sentence(found) == "n1: MPI MPICH 4.2; n4: MPI Intel MPI, the 4 others Open MPI v5.0.11"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"busbw_fingerprint": "0000000000000000"}, "n2: busbw 0.1.0 (0000000000000000), the 3 others 0.1.0"),
        ({"environment": ()}, 'n2: NCCL_ALGO not set, the 3 others "Ring"'),
        ({"environment": (("NCCL_ALGO", "Ring"), ("UCX_TLS", "tcp"))}, 'n2: UCX_TLS "tcp", the 3 others not set'),
        ({"settings_files": (("/etc/nccl.conf", "abc"),)}, "n2: /etc/nccl.conf of content abc, the 3 others not there"),
        ({"gpus": ("0000:00:00.0",)}, "n2: GPUs 1, the 3 others 8"),
        ({"cuda_devices": 7}, "n2: GPUs that CUDA shows 7, the 3 others 8"),
        ({"libraries": ()}, "n2: NCCL none, the 3 others 2.28.9"),
        ({"libraries": (NCCL, PLUGIN)}, "n2: NCCL's network plug-in at /a/n.so, build ffffffff, the 3 others none"),
    ],
)  # fmt: skip
def test_what_makes_numbers_those_of_a_mixture_stops_a_run(changes: dict[str, Any], words: str) -> None:
    (found,) = said(n2=changes)
    assert found[0].startswith(words)
    assert found[1]
    assert [one.code for one in node_findings(nodes(4, n2=changes))] == ["RUN023"]
    assert "the numbers are of a mixture" in (mixture_words(nodes(4, n2=changes)) or "")


@pytest.mark.parametrize(
    ("changes", "words", "code"),
    [
        ({"kernel": "Linux 6.2.0 x86_64"}, "n2: kernel Linux 6.2.0 x86_64, the 3 others Linux 6.1.0 x86_64", "RUN024"),
        ({"governor": "powersave"}, "n2: governor powersave, the 3 others performance", "RUN024"),
        ({"cpu_quota": 2.5}, "n2: CPU quota 2.5 CPUs, the 3 others none", "RUN024"),
        ({"memory_bytes": 2**39}, "n2: memory 512 GiB, the 3 others 1024 GiB", "RUN024"),
        ({"unix_s": 1e9 + 75}, "n2: clock 75 s fast, the 3 others right", "RUN024"),
        ({"limits": (NodeLimit(name="memlock", most=65536),)}, "n2: limit of memlock 65536, the 3 others unlimited",
         "RUN024"),
        ({"ports": ()}, "n2: port mlx5_0/1 not there, the 3 others up, 400 Gb/sec (4X NDR)", "RUN025"),
        ({"ports": (NodePort(name="mlx5_0/1", up=False, rate=None),)}, "n2: port mlx5_0/1 down, the 3 others up, ",
         "RUN025"),
    ],
)  # fmt: skip
def test_other_differences_are_noted_and_the_run_goes_on(changes: dict[str, Any], words: str, code: str) -> None:
    (found,) = said(n2=changes)
    assert found[0].startswith(words)
    assert not found[1]
    assert [one.code for one in node_findings(nodes(4, n2=changes))] == [code]
    assert mixture_words(nodes(4, n2=changes)) is None


def test_what_does_not_matter_or_belongs_to_a_process_is_no_difference() -> None:
    assert said(
        n1={
            "libraries": (msgspec.structs.replace(NCCL, path="/mnt/libnccl.so.2"),),
            "environment": (
                ("NCCL_ALGO", "Ring"),
                ("OMPI_MCA_orte_ess_node_rank", "1"),
                ("OMPI_MCA_plm", "rsh"),
                ("OMPI_MCA_routed", "radix"),
                ("SLURM_CPU_BIND", "quiet"),
                ("I_MPI_PIN_MAPPING", "1:1 0"),
                ("I_MPI_INFO_FLGC", "-380413"),
                ("LOCAL_RANK", "3"),
            ),
            "memory_bytes": 2**40 - 2**20,
            "memory_available_bytes": 2**30,
            "unix_s": 1e9 + 1,
        }
    ) == []  # fmt: skip


def test_many_differences_are_counted_where_they_are_too_many_to_tell() -> None:
    environment = tuple((f"NCCL_SETTING_{number}", "1") for number in range(9))
    found = differences(nodes(4, n3={"environment": (("NCCL_ALGO", "Ring"), *environment)}))
    assert sentences(found).count("n3: NCCL_SETTING_") == 6
    assert sentences(found).endswith("; and 3 more")


def test_ranks_on_fewer_hosts_than_planned_are_told() -> None:
    assert troubles(nodes(1), hosts=4, locked_bytes=0) == ("the ranks are on 1 host (n0), 4 planned",)
    assert troubles(nodes(4), hosts=4, locked_bytes=0) == ()


def test_a_host_that_sees_another_run_directory_is_told() -> None:
    (words,) = troubles(nodes(4, n1={"sees_directory": False}), hosts=4, locked_bytes=0)
    assert words.startswith("n1: another run directory of the same name")


def test_locked_memory_that_nobody_has_raised_is_told_where_there_is_rdma() -> None:
    little = {"limits": (NodeLimit(name="memlock", most=65536),)}
    (words,) = troubles(nodes(4, n3=little), hosts=4, locked_bytes=2**20)
    assert words.startswith(
        "n3: a process may lock 64 KiB of memory (ulimit -l), and the RDMA devices there need 1 MiB"
    )
    assert troubles(nodes(4, n3=little | {"ports": ()}), hosts=4, locked_bytes=2**20) == ()
    assert troubles(nodes(4, n3=little), hosts=4, locked_bytes=4096) == ()


def test_the_terminal_has_one_line_of_hosts_that_are_alike_and_a_row_for_each_difference() -> None:
    assert node_lines(nodes(1)) == ()
    assert node_lines(nodes()) == ("4 hosts alike, n[0-3]: A Processor, 96 CPUs, 8 GPUs, Linux 6.1.0 x86_64",)
    assert node_lines(nodes(4, n2={"governor": "powersave"})) == (
        "4 hosts, n[0-3], that differ in:",
        "  governor: performance on n[0-1,3], powersave on n2",
    )


def test_thousands_of_hosts_are_compared_at_once() -> None:
    many = (*(node(number) for number in range(2000)), node(2000, libraries=(OLD_NCCL,)))
    assert len(differences(many)) == 1
