"""From a platform's map over NCCL's search to its table of costs, held against what NCCL's own code printed."""

import json
from pathlib import Path

import pytest

from busbw.facts.nccl_model import nccl_constants
from busbw.machine.named import named_topology
from busbw.model.predict.nccl_choice import MODELLED, NCCL_ALGORITHMS, PROTOCOLS, NcclJob
from busbw.predict.graphs import graphs_of_plans
from busbw.predict.nccl_table import cost_table
from busbw.topo.paths.channels import planned

_PRINTED = json.loads((Path(__file__).parent / "nccl_chain.json").read_text())


@pytest.mark.parametrize("name", _PRINTED["platforms"])
def test_the_table_of_one_node_from_its_map_is_what_nccl_printed(name: str) -> None:
    printed = _PRINTED["platforms"][name]
    graphs = graphs_of_plans(planned(named_topology(name).topology, (2, 28, 9)).plans, printed["sm"], name)
    assert graphs is not None
    job = NcclJob(nodes=1, ranks=printed["ranks"], sm=printed["sm"], nvls=printed["nvls"])
    ours = {}
    for cell in cost_table(job, graphs, nccl_constants(_PRINTED["release"])):
        if cell.bandwidth_GBps > 0:
            algorithm, protocol = NCCL_ALGORITHMS.index(cell.algorithm), PROTOCOLS.index(cell.protocol)
            ours[f"{MODELLED.index(cell.collective)}{algorithm}{protocol}"] = cell
    cells = [line.split() for line in printed["cells"]]
    assert set(ours) == {cell for cell, _, _ in cells}
    for name_of_cell, latency_us, bandwidth_GBps in cells:
        assert ours[name_of_cell].latency_us == pytest.approx(float(latency_us), rel=1e-3)
        assert ours[name_of_cell].bandwidth_GBps == pytest.approx(float(bandwidth_GBps), rel=1e-3)
