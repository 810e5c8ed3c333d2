"""Whatever topology a file or person makes up, showing it ends in a picture or an input error."""

from xml.etree import ElementTree as ET

from hypothesis import HealthCheck, given, settings
from tests.topo.strategies import topologies

from busbw.base.errors import InputError
from busbw.model.topology import Topology
from busbw.show.page.pictures import topology_svg
from busbw.show.topology_tree import boxes_of, link_lines
from busbw.topo.file.reader import read_document
from busbw.topo.origins.from_document import topologies_of
from busbw.topo.paths.matrix import path_matrix
from busbw.topo.paths.view import view_of

from .test_topology_files import damaged


def count(node: Topology) -> int:
    boxes, found = boxes_of(node), 0
    while boxes:
        found += len(boxes)
        boxes = tuple(inner for box in boxes for inner in box.below)
    return found


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(topologies())
def test_any_topology_can_be_drawn(node: Topology) -> None:
    view = view_of(node)
    ET.fromstring(topology_svg(view))
    matrix = path_matrix(node)
    assert all(len(row.cells) == len(row.nccl) == len(matrix.rows) for row in matrix.rows)
    assert len(view.gpus) == len(node.gpus)
    assert count(node) >= len(node.numa)
    link_lines(node)


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(damaged())
def test_any_file_that_can_be_read_can_be_drawn(data: bytes) -> None:
    try:
        nodes = topologies_of(read_document(data, "topo.xml"))
    except InputError:
        return
    for node in nodes:
        ET.fromstring(topology_svg(view_of(node)))
