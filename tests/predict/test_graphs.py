"""Graphs of files, logs and statements: what is read, and what is refused."""

import re

import pytest
from tests.cost import check_growth

from busbw.base.errors import InputError
from busbw.facts.nccl_model import nccl_constants
from busbw.model.predict.nccl_choice import NcclJob
from busbw.predict.graphs import graphs_as_stated, graphs_of_file, graphs_of_log
from busbw.predict.nccl import choice

from .test_nccl_model import GRAPH_FILE, LOG


def test_a_graph_file_gives_channels_rates_and_types() -> None:
    ring = graphs_of_file(GRAPH_FILE, "graph.xml").ring
    assert (ring.channels, ring.intra_GBps, ring.inter_GBps) == (12, 30.0, 30.0)
    assert (ring.intra_type, ring.inter_type, ring.same_channels) == ("NVL", "PIX", True)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'nchannels="12"', b'nchannels="99"', "99 channels"),
        (b'nchannels="12"', b'nchannels="1e9"', "no number"),
        (b'nchannels="12"', b'nchannels="00000000000012"', "no number"),
        (b'speedintra="30"', b'speedintra="inf"', "no rate"),
        (b'speedintra="30"', b'speedintra="-3"', "no rate"),
        (b'speedintra="30"', b'speedintra="999999999"', "no rate"),
        (b'typeintra="NVL"', b'typeintra="FOO"', "not a type of path"),
        (b'pattern="4"', b'pattern="5"', "pattern 5"),
        (b'id="1"', b'id="0"', "pattern 1"),
        (b"</graphs>", b"", "not a whole graph file"),
        (b"</graphs>", b"</graphs><graphs></graphs>", "not what NCCL writes"),
        (b"</graphs>", b"</channel>", "closes nothing"),
        (b'<graph id="0"', b'<!DOCTYPE a><graph id="0"', "not a graph file"),
        (b'<graph id="0"', b'text <graph id="0"', "not a graph file"),
        (b'<graph id="0"', b'<graph id="0" id="1"', "does not write"),
        (b'<graph id="0"', '<graph id="\u0663"'.encode(), "plain ASCII"),
    ],
)
def test_a_damaged_graph_file_is_refused_with_its_place(old: bytes, new: bytes, words: str) -> None:
    assert old in GRAPH_FILE
    with pytest.raises(InputError, match=words) as error:
        graphs_of_file(GRAPH_FILE.replace(old, new, 1), "graph.xml")
    assert "graph.xml" in str(error.value)


def test_a_file_without_a_tree_and_no_file_at_all_are_refused() -> None:
    for raw in (b"", b"<graphs></graphs>", b"\0", b"{}", b"<" * 1000, b"<graphs>" * 1000):
        with pytest.raises(InputError):
            graphs_of_file(raw, "graph.xml")


def test_reading_takes_time_by_length() -> None:
    def read(raw: bytes) -> None:
        with pytest.raises(InputError):
            graphs_of_file(raw, "graph.xml")

    short, long = (b"<graphs>" + b"<graph><channel>" * size + b"<graph " + b"a" * 16 * size for size in (5_000, 40_000))
    check_growth(read, short, long, most=24)


def test_of_several_ranks_the_worst_counts_as_nccl_takes_it() -> None:
    slower = LOG.replace(
        "[3] NCCL INFO Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL",
        "[3] NCCL INFO Pattern 4, crossNic 0, nChannels 8, bw 24.000000/30.000000, type SYS",
    )
    assert slower != LOG
    ring = graphs_of_log(slower, "log").graphs.ring
    assert (ring.channels, ring.intra_GBps, ring.intra_type) == (8, 24.0, "SYS")


def test_a_log_without_graphs_says_which_to_take() -> None:
    with pytest.raises(InputError, match="prints no graph") as error:
        graphs_of_log("NCCL INFO nothing", "log")
    assert "NCCL_DEBUG_SUBSYS=INIT,GRAPH" in str(error.value)


def test_graphs_are_stated_in_short() -> None:
    found = graphs_as_stated(("ring=8x40/48.5:NVL/PXN", "nvls=8x60/48"))
    assert (found.ring.channels, found.ring.inter_GBps, found.ring.inter_type) == (8, 48.5, "PXN")
    assert found.tree == found.ring
    assert found.nvls.intra_GBps == 60.0


@pytest.mark.parametrize(
    "text", ["ring=0x1/1", "ring=65x1/1", "ring=8x1", "ring=8x1/1:A/B", "tree=8x1/1", "", "ring=٣x1/1"]
)
def test_other_statements_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        graphs_as_stated((text,))


def test_channels_of_a_log_of_2_18_are_read_too() -> None:
    older = re.sub(r"(coll channels), \d+ collnet channels", r"\1", LOG)
    assert older != LOG
    assert graphs_of_log(older, "log").channels == graphs_of_log(LOG, "log").channels == 24


def test_a_ring_without_a_channel_leaves_a_choice() -> None:
    graphs = graphs_of_file(re.sub(rb'(<graph id="0" [^>]*nchannels=)"\d+"', rb'\1"0"', GRAPH_FILE), "graph.xml")
    job, constants = NcclJob(nodes=1, ranks=4, sm=90), nccl_constants("2.28.9")
    asked = {"release": "2.28.9", "collective": "all_reduce"}
    for power in range(3, 35):
        assert choice(job, graphs, constants, size_bytes=2**power, **asked).chosen.algorithm == "tree"
