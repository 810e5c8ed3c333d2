"""Readers of topology files refuse any input politely, and in time that grows with its length only."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from busbw.base.errors import InputError
from busbw.topo.comparison import differences
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text, portable
from busbw.topo.origins.from_document import topologies_of

from .harnesses import feed
from .machine_seeds import TOPOLOGY_FILE as VALID

FRAGMENTS = (
    b"\t", b" ", b"  ", b"\n", b'"', b"'", b"=", b"/", b">", b"<", b"<!-- a -->", b"<!--a=b-->", b"<foo>", b"</foo>",
    b"</pci>", b"<pci/>", b"<pci>", b"<?xml?>", b"<![CDATA[", b"<!DOCTYPE a [", b"&amp;", b"-->", b"\xff", b"\xc3\xa9",
    b"99999999999999999999", b"-1", b"0x", b"a" * 260, b"<system>", b"</system>",
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = VALID
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 30)))
        data = data[:start] + draw(st.sampled_from(FRAGMENTS) | st.binary(max_size=6)) + data[end:]
    return data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 4)) == 0 else data


@settings(max_examples=166, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(damaged() | st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
def test_only_an_input_error_comes_out_and_what_is_read_can_be_written_and_compared(data: bytes) -> None:
    try:
        topologies = topologies_of(read_document(data, "topo.xml"))
        texts = [file_text(topology) for topology in topologies]
    except InputError:
        return
    valid = topologies_of(read_document(VALID, "valid.xml"))[0]
    for topology in topologies:
        assert differences(topology, topology) == ()
        assert bool(differences(topology, valid)) == bool(differences(valid, topology))
        file_text(portable(topology))
    for text, topology in zip(texts, topologies, strict=True):
        again = topologies_of(read_document(text.encode(), "again.xml"))
        assert [device.bus_id for device in again[0].devices] == [device.bus_id for device in topology.devices]


@pytest.mark.parametrize(
    "pattern",
    [
        b"<cpu>", b"<pci/>", b"<foo>", b"</foo>", b'<pci a="1">', b"<!-- a -->", b"<!--a=b-->", b'"', b"a=", b" ",
        b"\t", b"\n", b"<", b"<!", b"<?", b"&a;", b"<!--", b"<![CDATA[", b"/", b" a='1'", b"= ", b"]",
    ],
)  # fmt: skip
def test_a_long_file_takes_no_longer_than_its_length_explains(pattern: bytes) -> None:
    for before in (b"<system version='1'><cpu ", b"<system version='1'>"):
        short, long = (before + pattern * (length_bytes // len(pattern)) for length_bytes in (25_000, 200_000))
        # Linear is a factor of 8, quadratic 64.
        check_growth(lambda data: feed(lambda raw: read_document(raw, "topo.xml"), data), short, long, most=24)
