"""What is written can be read, by NCCL's rules, and is the same."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from busbw.model.topology import Topology
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text
from busbw.topo.origins.from_document import topologies_of

from .strategies import topologies

FACTS = Path(__file__).parents[2] / ".." / "shared" / "facts"
FILES = (
    "topo/aws-g5.48xl-topo.xml", "topo/aws-p4d-24xl-topo.xml", "topo/aws-p4de-24xl-topo.xml",
    "topo/azure-ncv4-topo.xml", "topo/azure-ndv2-topo.xml", "topo/azure-ndv4-topo.xml", "topo/azure-ndv5-topo.xml",
    "topo/oci-H100-topology.xml", "topo/oci-topo-flattened.xml", "samples/topo.xml",
)  # fmt: skip


def read(text: str) -> tuple[Topology, ...]:
    document = read_document(text.encode(), "topo.xml")
    # What NCCL leaves out and RCCL does not; NCCL refuses the version of such a file.
    strange = [remark for remark in document.remarks if remark.subject not in ("xgmi", "gcn")]
    is_rccls = len(strange) < len(document.remarks)
    assert [remark.kind for remark in strange] == ["version-wrong"] * is_rccls
    return topologies_of(document)


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(topologies())
def test_a_topology_is_the_same_after_writing_and_reading(topology: Topology) -> None:
    assert read(file_text(topology)) == (topology,)


@pytest.mark.parametrize("name", FILES)
def test_a_vendors_file_is_the_same_after_reading_and_writing(name: str) -> None:
    path = FACTS / name
    if not path.is_file():
        pytest.skip(f"the vendor's file is not there: {path}")
    first = topologies_of(read_document(path.read_bytes(), name))
    assert len(first) == 1
    assert first[0].devices
    assert read(file_text(first[0])) == first
