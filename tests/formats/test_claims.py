"""Among all registered readers, an output is claimed by its own one only."""

import json

import pytest

from busbw.formats.lines.driver import Reader
from busbw.formats.lines.stream import Formats
from busbw.formats.registry import FORMATS
from busbw.model.imported import Reading, Table

from .offering import SAMPLES, sample

TOOLS = {
    "all_reduce_bench": "all_reduce_bench",
    "clusterkit": "clusterkit",
    "cuda_bandwidthTest": "cuda-bandwidthTest",
    "gpcnet": "gpcnet",
    "imb": "imb",
    "inspector": "inspector",
    "nvbandwidth": "nvbandwidth",
    "nvshmem": "nvshmem-perftest",
    "param": "param",
    "perftest": "perftest",
    "rocm_bandwidth_test": "rocm_bandwidth_test",
    "superbench": "superbench",
    "ucx_perftest": "ucx_perftest",
}
NAMES = sorted(path.name for path in SAMPLES.iterdir() if any(path.name.startswith(tool) for tool in TOOLS))


def tool_of(name):
    return next(tool for prefix, tool in TOOLS.items() if name.startswith(prefix))


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".txt")])
def test_lines_begin_tables_of_their_own_tool_only(name):
    claiming = {
        reader.tool for line in sample(name).splitlines() for reader in FORMATS.text if reader.starts.search(line)
    }
    assert claiming == {tool_of(name)}


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith((".json", ".jsonl"))])
def test_documents_are_recognised_by_their_own_tool_only(name):
    documents = (
        [json.loads(line) for line in sample(name).splitlines()] if name.endswith("l") else [json.loads(sample(name))]
    )
    for document in documents:
        assert [reader.tool for reader in FORMATS.documents if reader.recognises(document)] == [tool_of(name)]


LONG_LINES = {
    "words": "1 " * 2**19,
    "spaces": "#" + " " * 2**20,
    "ranks": "Rank:" + " 1" * 2**19 + "x",
    "cells": " 0 (a):" + " 0.0" * 2**18 + "x",
    "rule": "|" + "-" * 2**20,
    "name": f"COMMS-RES-{'a' * 2**20}",
    "colons": "a:" * 2**19,
    "title": "RDMA_Write" + " a" * 2**19,
    "digits": '"x": ' + "9" * 2**20,
}


@pytest.mark.parametrize("line", LONG_LINES.values(), ids=LONG_LINES.keys())
def test_a_very_long_line_is_listed_and_holds_nothing_up(line):
    readers = Formats(text=tuple(each for each in FORMATS.text if each.tool in TOOLS.values()), documents=())
    for begun in (
        "# Benchmarking Bcast",
        "RDMA_Write BW Test",
        "test_info: {",
        "COMMS-RES size (B) p75",
        "Rank: 0 1",
        "",
    ):
        reader = Reader(readers, source=0, first_table=0)
        events = [*reader.feed(f"{begun}\n{line}\n".encode()), *reader.finish()]
        assert not any(isinstance(event, Reading) for event in events)
        assert reader.ledger.unread_lines + reader.ledger.known_lines == reader.lines == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_file_through_all_readers_gives_tables_of_its_tool(name):
    reader = Reader(FORMATS, source=0, first_table=0)
    events = [*reader.feed(sample(name).encode()), *reader.finish()]
    assert {event.tool for event in events if isinstance(event, Table)} == {tool_of(name)}
    assert reader.ledger.reading_lines > 0
