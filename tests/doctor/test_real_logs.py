"""Real logs beside the repository: what is known of the jobs is what is said of them."""

from pathlib import Path

import pytest

from busbw.api.diagnoses import doctor_logs
from busbw.model.finding import Diagnosis

SAMPLES = Path(__file__).parents[3] / "shared" / "facts" / "samples"
LOG = SAMPLES / "allreduce_default_info.log"


@pytest.fixture(scope="module")
def four_gpus() -> Diagnosis:
    if not LOG.exists():
        pytest.skip(f"{LOG} is not there: it holds a real log of NCCL 2.28.9 on four H200, which is not ours to ship")
    return doctor_logs([str(LOG)])


def test_the_job_is_recognised(four_gpus: Diagnosis):
    assert (four_gpus.ranks, four_gpus.ranks_seen, four_gpus.nodes, four_gpus.processes) == (4, 4, 1, 1)
    facts = {fact.name: fact.values[0].value for fact in four_gpus.facts}
    assert facts["version"] == "2.28.9+cuda13.0"
    assert facts["channels"] == "24 collective, 0 NVLS, 32 p2p"


def test_every_connection_is_peer_to_peer(four_gpus: Diagnosis):
    (way,) = four_gpus.traffic

    assert (way.via, way.place, way.lines, way.pairs) == ("P2P/direct pointer", "within nodes", 96, 4)


def test_choices_follow_the_sizes(four_gpus: Diagnosis):
    chosen = {choice.size_bytes: choice.protocol for choice in four_gpus.choices if choice.collective == "AllReduce"}

    assert chosen[8] == "LL"
    assert chosen[2**22] == "LL128"
    assert chosen[2**33] == "SIMPLE"


def test_only_the_affinity_and_the_nic_that_the_machine_does_not_show_are_noted(four_gpus: Diagnosis):
    assert {finding.code for finding in four_gpus.findings} == {"LOG014", "LOG046"}
    assert four_gpus.verdict.outcome == "cannot_tell"
