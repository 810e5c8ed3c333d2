"""What was meant by names that nothing reads."""

import re
import subprocess
import sys
from itertools import count, islice
from pathlib import Path

import pytest
from tests.cost import check_cost

from busbw.env.misspelled import letters_off, read_name
from busbw.facts.envvars import misspellings, variables


@pytest.mark.parametrize(
    ("seen", "meant"),
    [
        ("NCCL_MIN_CHANNELS", "NCCL_MIN_NCHANNELS"),
        ("NCLL_DEBUG", "NCCL_DEBUG"),
        ("NCCL_IB_HAC", "NCCL_IB_HCA"),
        ("nccl_debug", "NCCL_DEBUG"),
        ("NCCL-DEBUG", "NCCL_DEBUG"),
        ("NCCL_P2P_DISBALE", "NCCL_P2P_DISABLE"),
        ("NCCL_IBHCA", "NCCL_IB_HCA"),
        ("NCCL_CTAS_MIN", "NCCL_MIN_CTAS"),
        ("NCCL_RAS_ADDRESS", "NCCL_RAS_ADDR"),
        ("NCCL_COLLNET", "NCCL_COLLNET_ENABLE"),
        ("NCCL_TOPO", "NCCL_TOPO_FILE"),
        ("NCCL_ALG", "NCCL_ALGO"),
        ("NCCL_IB_QPS_PER_CONECTION", "NCCL_IB_QPS_PER_CONNECTION"),
        ("UCX_NET_DEVCES", "UCX_NET_DEVICES"),
        ("FI_CXI_RX_MATCHMODE", "FI_CXI_RX_MATCH_MODE"),
        ("OMPI_MCA_btl_tcp_if_incude", "OMPI_MCA_btl_tcp_if_include"),
        ("CUDA_VISBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
        ("OFI_NCCL_PROTOCAL", "OFI_NCCL_PROTOCOL"),
        ("TORCH_NCCL_BLOCKING_WAT", "TORCH_NCCL_BLOCKING_WAIT"),
    ],
)
def test_a_slip_is_told_what_was_meant(seen: str, meant: str) -> None:
    read = read_name(seen)

    assert read.verdict == "misspelt"
    assert read.meant[0] == meant


@pytest.mark.parametrize("name", ["HCCL_BUFFSIZE", "MCCL_IB_HCA", "XCCL_DEBUG", "CNCL_SOCKET_IFNAME"])
def test_a_name_of_another_makers_library_is_no_slip(name: str) -> None:
    assert read_name(name).verdict != "misspelt"


def test_no_parameter_of_open_mpi_is_a_slip() -> None:
    program = Path(sys.prefix, "bin", "ompi_info")
    printed = subprocess.run([program, "--all", "--parsable"], capture_output=True, text=True, timeout=300, check=True)
    parameters = set(re.findall(r"^mca:\w+:\w+:param:(\w+):value", printed.stdout, re.MULTILINE))

    assert len(parameters) > 300
    assert [name for name in sorted(parameters) if read_name(f"OMPI_MCA_{name}").verdict == "misspelt"] == []


@pytest.mark.parametrize(
    "name",
    [
        "OMPI_MCA_scoll",
        "OMPI_MCA_spml",
        "OMPI_MCA_iof",
        "OMPI_MCA_rml",
        "PMIX_MCA_pdl",
        "UCC_CLS",
        "I_MPI_ADJUST_ALLTOALLV",
        "I_MPI_ADJUST_IALLREDUCE",
    ],
)
def test_a_name_one_letter_from_another_is_read_by_somebody(name: str) -> None:
    assert read_name(name).verdict == "known"


@pytest.mark.parametrize("name", ["NCCL_FOO_BAR", "NCCL_TIMEOUT", "NCCL_MAX_NRANKS", "NCCL_SPEED"])
def test_a_name_of_nccl_with_nothing_near_is_unknown(name: str) -> None:
    read = read_name(name)

    assert (read.verdict, read.meant) == ("unknown", ())
    assert read.note is not None


@pytest.mark.parametrize(
    ("name", "opposite"),
    [
        ("NCCL_ENABLE_IB", "NCCL_IB_DISABLE"),
        ("NCCL_SHM", "NCCL_SHM_DISABLE"),
        ("NCCL_DISABLE_CUMEM", "NCCL_CUMEM_ENABLE"),
    ],
)
def test_a_switch_the_other_way_round_is_no_slip_to_be_mended(name: str, opposite: str) -> None:
    read = read_name(name)

    assert read.verdict == "unknown"
    assert read.note == f"{opposite} says the opposite"


@pytest.mark.parametrize(
    "name",
    [
        "OMPI_MCA_foo_bar",
        "UCX_RC_MLX5_TX_QUEUE_LEN",
        "SLURM_NODES_PER_RACK",
        "FI_OPX_UUID",
        "PMIX_MCA_ptl_tcp_if_include",
        "NCCL_TEST_ARGS",
        "NCCL_IMAGE_TAG",
        "NCCL_FASTRAK_NEW_OPTION",
        "MY_NCCL_DEBUG",
        "NUM_NODES",
        "WORLDSIZE",
        "MASTER_PORTS",
        "LOCALRANK",
        "STAGE_PATH",
        "CC",
        "",
        "_",
        "NCCL" * 100,
    ],
)
def test_names_that_may_be_read_or_are_a_script_s_own_are_left_open(name: str) -> None:
    read = read_name(name)

    assert (read.verdict, read.meant) == ("open", ())


def test_every_variable_is_known_and_every_mistake_told() -> None:
    wrong = {name for name in variables() if read_name(name).verdict != "known"}
    told = {name for name in misspellings() if name not in variables() and read_name(name).verdict == "known"}

    assert wrong == set()
    assert told == set()


def test_a_mistake_means_names_that_something_reads() -> None:
    meant = {name for each in misspellings().values() for name in each.intended}

    assert meant - set(variables()) == set()


@pytest.mark.parametrize(
    ("one", "other", "off"),
    [("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("abc", "xbc", 1), ("abcd", "badc", 2)],
)
def test_letters_off_counts_a_swap_once(one: str, other: str, off: int) -> None:
    assert letters_off(one, other, 3) == off


def test_letters_beyond_the_limit_are_not_counted() -> None:
    assert letters_off("abcdef", "uvwxyz", 2) == 3


def test_a_thousand_names_take_no_time_that_a_reader_notices() -> None:
    read_name("NCCL_WARM_UP")

    numbers = count()  # what was read once is remembered

    def read_all() -> None:
        for number in islice(numbers, 1000):
            read_name(f"NCCL_SOME_NAME_{number}X")

    check_cost(read_all, most_s=1)
