"""Large jobs with one node or rank that is not like the others: it is named, and nothing else is said."""

import re

import pytest

from .made import IB_LIST, Job
from .test_diagnosis import codes, evidence, read

HOSTS, GPUS = 32, 8
ODD = range(72, 80)  # the ranks of node09
OF_NODE = r"(node09:\d+:\d+ \[\d\] NCCL INFO )"


def big(*everywhere: str, of_rank: dict[int, tuple[str, ...]] | None = None) -> str:
    return Job(hosts=HOSTS, gpus=GPUS, everywhere=everywhere, of_rank=of_rank or {}).text()


def test_a_large_job_of_equals_has_no_finding():
    assert not read(big("NCCL_PROTO set by environment to Simple.", timings(42.0))).findings


@pytest.mark.parametrize(
    ("said", "instead", "name"),
    [
        ("cudaDriverVersion 12090", "cudaDriverVersion 12040", "CUDA driver"),
        ("Bootstrap: Using eth0", "Bootstrap: Using ib0", "bootstrap interface"),
        (re.escape("[2]mlx5_2:1"), "[2]mlx5_9:1", "NICs"),
    ],
)
def test_a_node_that_says_something_else_is_named(said, instead, name):
    text = re.sub(OF_NODE + "(.*?)" + said, rf"\g<1>\g<2>{instead}", big())

    diagnosis = read(text)

    assert codes(diagnosis) == {"LOG023"}
    assert name in evidence(diagnosis, "LOG023")
    assert "ranks 72-79" in evidence(diagnosis, "LOG023")


def test_a_rank_that_lacks_the_tuner_is_named():
    text = big("TUNER/Plugin: Using AWS (v3)").replace(
        "node09:1077:2077 [5] NCCL INFO TUNER/Plugin: Using AWS (v3)\n", ""
    )

    assert "tuner: AWS: ranks 0-76, 78-255; none: rank 77" in evidence(read(text), "LOG023")


def test_nics_that_are_fewer_are_told_once():
    fewer = " ".join(IB_LIST.split()[:3])
    text = re.sub(OF_NODE + "NET/IB : Using " + re.escape(IB_LIST), rf"\g<1>NET/IB : Using {fewer}", big())

    assert codes(read(text)) == {"LOG006"}


def test_a_setting_that_one_node_lacks_is_found():
    text = re.sub(OF_NODE + "NCCL_PROTO.*\n", "", big("NCCL_PROTO set by environment to Simple."))

    assert "not from ranks 72-79" in evidence(read(text), "LOG021")


def test_host_memory_on_one_node_alone_is_no_choice_of_nccl():
    text = re.sub(r"(node09:.*via )P2P/CUMEM/read", r"\1SHM/direct/direct", big())

    diagnosis = read(text)

    assert codes(diagnosis) == {"LOG010"}
    assert "on node09 alone; the other nodes have P2P" in evidence(diagnosis, "LOG010")


def test_of_three_nodes_nobody_is_odd():
    text = re.sub(r"(node02:.*)cudaDriverVersion 12090", r"\1cudaDriverVersion 12040", Job(hosts=3).text())

    assert not read(text).findings


def timings(wait_s: float) -> str:
    return (
        f"Init timings - ncclCommInitRankConfig: rank 0 nranks {HOSTS * GPUS} total {wait_s + 1} (kernels 0.2, "
        f"alloc 0.1, bootstrap {wait_s:.2f}, allgathers 0.1, topo 0.3, graphs 0.02, connections 0.2, rest 0.01)"
    )


@pytest.mark.parametrize(("usual_s", "found"), [(43.0, {"LOG024"}), (3.0, set())])
def test_a_rank_that_came_late_let_the_others_wait(usual_s, found):
    lines = {rank: (timings(usual_s if rank != 77 else 1.2),) for rank in range(HOSTS * GPUS)}

    diagnosis = read(big(of_rank=lines))

    assert codes(diagnosis) == found
    if found:
        assert "rank 77 came 42 s after the others" in evidence(diagnosis, "LOG024")
