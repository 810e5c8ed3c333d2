"""Firmware can make several NUMA nodes one: a file of such a machine is right, one that only looks alike is not."""

import msgspec
import pytest

from busbw.base.cpus import format_mask, parse_cpu_list
from busbw.facts.platforms import find_platform
from busbw.model.platform import Platform
from busbw.topo.check import check
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.reference import reference_of_platform

PLATFORM = find_platform("oci-bm-gpu4-8").platform


def merged(platform: Platform, nodes: dict[int, int], masks: dict[int, str]) -> str:
    """Return the file of a platform whose NUMA nodes are others; what is left of each mask is as the machine has it."""
    topology = topology_of_platform(platform)
    numa = tuple(
        msgspec.structs.replace(topology.numa[0], id=node, cpus=parse_cpu_list(cpus)) for node, cpus in masks.items()
    )
    devices = tuple(msgspec.structs.replace(device, numa=nodes[device.numa]) for device in topology.devices)
    return file_text(msgspec.structs.replace(topology, numa=numa, devices=devices, nvlinks=(), nets=()))


def codes(text: str) -> set[str]:
    return {each.code for each in check(read_document(text.encode(), "topo.xml"), reference_of_platform(PLATFORM))}


def test_one_numa_node_a_socket_is_a_note():
    text = merged(PLATFORM, {1: 0, 3: 0, 5: 1, 7: 1}, {0: "0-31,64-95", 1: "32-63,96-127"})

    assert codes(text) == {"TOP077"}


@pytest.mark.parametrize(
    ("nodes", "masks"),
    [
        # Masks that leave out what belongs to the node, devices of one node on two, and one node for all.
        ({1: 0, 3: 0, 5: 1, 7: 1}, {0: "0-15,64-79", 1: "32-63,96-127"}),
        ({1: 0, 3: 0, 5: 0, 7: 0}, {0: "0-127"}),
        ({1: 3, 3: 1, 5: 7, 7: 5}, {1: "8-15,72-79", 3: "24-31,88-95", 5: "40-47,104-111", 7: "56-63,120-127"}),
    ],
)
def test_other_divisions_are_errors(nodes: dict[int, int], masks: dict[int, str]):
    found = codes(merged(PLATFORM, nodes, masks))

    assert "TOP077" not in found
    assert found & {"TOP053", "TOP060", "TOP061", "TOP067"}


def test_what_does_not_depend_on_the_division_is_still_held_against_the_platform():
    text = merged(PLATFORM, {1: 0, 3: 0, 5: 1, 7: 1}, {0: "0-31,64-95", 1: "32-63,96-127"})

    assert "TOP064" in codes(text.replace("0000:0f:00.0", "0000:1e:00.0"))
    assert "TOP062" in codes(text.replace("0000:0f:00.0", "0000:0e:00.0"))
    strange = text.replace(format_mask(tuple(range(32, 64)) + tuple(range(96, 128))), "f" * 8 + ",0" * 4)
    assert {"TOP045", "TOP041"} & codes(strange)
