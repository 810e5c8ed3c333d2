"""Bindings from a command line: only an InputError comes out, in time that grows with the length only."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_growth

from busbw.base.cpus import parse_cpu_list
from busbw.base.errors import InputError
from busbw.model.topology import Gpu, NumaNode, PciDevice, Topology
from busbw.topo.ranks.masks import masks_of

from .machine_seeds import BINDINGS as VALID

WORDS = [
    "numa", "core", "socket", "node", "none", "slot", "--map-by", "--bind-to", "ppr:", ":PE=", "mask_cpu:", ",", "*",
    "0x", "0-", ":", ";", "=", "\n", "rank 1=a slot=", "99999999999999999999", "-1", "\x1b[31m", "\u202e", "f" * 200,
]  # fmt: skip


def topology(lists: list[str]) -> Topology:
    numa = tuple(NumaNode(id=id_, cpus=parse_cpu_list(text)) for id_, text in enumerate(lists))
    gpus = tuple(Gpu(bus_id=f"0000:{place:02x}:00.0") for place in range(4))
    devices = tuple(
        PciDevice(bus_id=gpu.bus_id, parent=None, numa=place % len(lists), kind="gpu") for place, gpu in enumerate(gpus)
    )
    return Topology(numa=numa, gpus=gpus, devices=devices)


NODES = (topology(["0-3", "4-7"]), topology(["0-1,8-9", "2-3,10-11"]), topology(["4-7"]), topology(["0,2", "1,3"]))


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + draw(st.sampled_from(WORDS) | st.text(max_size=4)) + text[end:]
    return text


@settings(max_examples=266, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(text=damaged() | st.text(max_size=60), node=st.sampled_from(NODES), sockets=st.sampled_from([None, 1, 2, 3]))
def test_a_binding_is_judged_or_refused(text: str, node: Topology, sockets: int | None) -> None:
    try:
        found = masks_of(node, sockets=sockets, binding=text)
    except InputError:
        return
    for reading in found.readings:
        assert (reading.cannot_tell is None) == (len(reading.ranks) == len(found.ranks))


@pytest.mark.parametrize("text", VALID)
def test_the_seeds_are_bindings(text: str) -> None:
    assert masks_of(NODES[0], sockets=2, binding=text).readings


@pytest.mark.parametrize(
    "pattern", ["f,", "0-1 ", "--bind-to ", "rank 1=a slot=0\n", "numa:", "mask_cpu:f", "0x", " ", ";"]
)
def test_a_long_binding_takes_no_longer_than_its_length_explains(pattern: str) -> None:
    def judge(text: str) -> None:
        with suppress(InputError):
            masks_of(NODES[0], binding=text)

    for before in ("", "mask_cpu:", "taskset -c ", "--map-by "):
        short, long = (before + pattern * (length // len(pattern)) for length in (20_000, 160_000))
        check_growth(judge, short, long, most=24)
