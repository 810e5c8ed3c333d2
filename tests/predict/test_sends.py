"""Sends and receives: NCCL's rule for channels, what was measured of them, and intervals where nothing was."""

import math
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.cli.command import busbw
from busbw.facts.platforms import all_platforms
from busbw.facts.predictor import predictor_constants
from busbw.limits.algorithms import shape_of
from busbw.model.predict.prediction import PredictedCall
from busbw.predict.closed import predicted
from busbw.predict.machines import CannotTellError, MachineClass, machine_of
from busbw.predict.sends import SENDS, channels_of, send_time

GiB, MiB = 2**30, 2**20
TOLD = ("azure-nd-h100-v5", "aws-p5", "aws-p4d", "gcp-a3-ultra", "gcp-a3-mega", "isambard-ai-phase2", "aws-p6-b200")
HEAD = "document,platform_id,nodes,gpus,collective,size_bytes,busbw_GBps,algorithm\n"


@cache
def machine(name: str, gpus: int | None = None) -> MachineClass:
    return machine_of(next(each for each in all_platforms(()) if each.id == name), gpus=gpus)


def call_of(name: str, nodes: int, size_bytes: int, collective: str = "alltoall", **asked: int) -> PredictedCall:
    return predicted(machine(name, **asked), nodes=nodes, collective=collective, size_bytes=size_bytes)[0]


def test_a_peer_s_part_takes_more_channels_from_16_mib_a_channel_on() -> None:
    """Sendrecv of four H200 nearly doubles its rate from 128 to 256 MiB, of two from 256 to 512 MiB."""
    assert [channels_of(size * MiB, 4) for size in (1, 128, 256, 512, 8192)] == [8, 8, 16, 32, 32]
    assert [channels_of(size * MiB, 2) for size in (1, 256, 512)] == [16, 16, 32]
    assert [channels_of(MiB, ranks) for ranks in (8, 16, 32, 64)] == [4, 2, 1, 1]


@pytest.mark.parametrize(
    ("collective", "measured"),
    [("alltoall", {256 * MiB: 266.2, 2 * GiB: 315.6}), ("sendrecv", {256 * MiB: 300.3, 2 * GiB: 363.2})],
)
def test_two_h100_that_no_constant_was_fitted_to_are_near(collective: str, measured: dict[int, float]) -> None:
    """GB/s, docs/measurements/2026-11-22-two-h100.md."""
    for size_bytes, busbw_GBps in measured.items():
        call = call_of("oci-bm-gpu-h100-8", 1, size_bytes, collective, gpus=2)
        assert call.kinship == "in family"
        assert call.documents == ("M1", "M2")
        assert call.busbw_Bps / 1e9 == pytest.approx(busbw_GBps, rel=0.08)
        assert call.low_Bps < busbw_GBps * 1e9 < call.high_Bps


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(TOLD),
    nodes=st.integers(1, 2000),
    collective=st.sampled_from(sorted(SENDS)),
    size_bytes=st.integers(1, 2**38),
)
def test_nothing_is_above_its_bound_and_parts_sum_to_the_time(
    name: str, nodes: int, collective: str, size_bytes: int
) -> None:
    call = call_of(name, nodes, size_bytes, collective)
    assert 0 < call.low_Bps < call.busbw_Bps <= call.high_Bps <= call.bound_Bps * (1 + 1e-9)
    parts = (call.latency_s, call.filling_s, call.flags_s, call.wire_s)
    assert min(parts) >= 0
    assert math.isclose(sum(parts), call.time_s, rel_tol=1e-9)
    assert call.basis
    assert call.documents


@settings(max_examples=40, deadline=None, derandomize=True)
@given(nodes=st.integers(2, 500), collective=st.sampled_from(sorted(SENDS)), size_bytes=st.integers(1, 2**36))
def test_between_nodes_a_larger_message_and_more_nodes_take_longer(
    nodes: int, collective: str, size_bytes: int
) -> None:
    here = call_of("azure-nd-h100-v5", nodes, size_bytes, collective).time_s
    assert here < call_of("azure-nd-h100-v5", nodes, size_bytes + size_bytes // 7 + 1, collective).time_s
    assert here <= call_of("azure-nd-h100-v5", nodes + 1, size_bytes, collective).time_s * (1 + 1e-9)


def test_within_a_node_a_larger_message_takes_longer_while_its_channels_are_as_many() -> None:
    sizes = [2**power for power in range(4, 27)]
    for collective in sorted(SENDS):
        times = [call_of("azure-nd-h100-v5", 1, size, collective).time_s for size in sizes]
        assert times == sorted(times)


def test_no_document_has_it_between_nodes_and_the_words_and_the_interval_say_so() -> None:
    near, far = (call_of("azure-nd-h100-v5", nodes, 16 * GiB) for nodes in (2, 16))
    assert near.kinship == far.kinship == "across"
    assert near.unmeasured == "no document has alltoall between nodes"
    assert (near.widened, far.widened) == (1.5 * 1.5, 1.5 * 3.0)
    # A ring over such nodes is told by documents that have rings between nodes.
    ring = predicted(machine("azure-nd-h100-v5"), nodes=2, collective="all_gather", size_bytes=16 * GiB)[0]
    assert ring.unmeasured is None
    assert near.busbw_Bps / near.low_Bps > ring.busbw_Bps / ring.low_Bps


def test_order_of_messages_is_not_published_and_both_ends_are_in_the_interval_of_a_small_call() -> None:
    whole = machine("azure-nd-h100-v5")
    timed = send_time(whole, 4, "alltoall", 2**16, 6e10, predictor_constants())
    ranks, group = shape_of(whole.rates, 4).ranks, 8
    # Simple: 8.4 us, and 14 us a hop (NCCL's cost model), once or once for each rank of the other nodes.
    assert timed.least_s == pytest.approx(1e-6 * (8.4 + 14), rel=0.1)
    assert timed.most_s == pytest.approx(1e-6 * (8.4 + (ranks - group) * 14), rel=0.1)
    call = call_of("azure-nd-h100-v5", 4, 2**16)
    ends = [call.busbw_Bps * call.time_s / end for end in (call.low_Bps, call.high_Bps)]
    assert ends[1] < timed.least_s < timed.most_s < ends[0]
    assert "wait for each other is not published" in call.widest


def test_a_chain_and_pat_between_nodes_are_told_by_others_and_wider() -> None:
    chain = call_of("azure-nd-h100-v5", 4, GiB, "broadcast")
    assert chain.unmeasured == "no document has a chain (broadcast) between nodes"
    # Each further node holds a chunk of each channel before it sends.
    more = [call_of("azure-nd-h100-v5", nodes, 64 * MiB, "broadcast").filling_s for nodes in (2, 4, 8)]
    assert more[0] * 3 == pytest.approx(more[1])
    assert more[0] * 7 == pytest.approx(more[2])
    pat = predicted(
        machine("isambard-ai-phase2", 1), nodes=8, collective="all_gather", size_bytes=GiB, algorithm="pat"
    )[0]
    assert pat.unmeasured == "no document has PAT (all_gather) between nodes"
    # Nor has any more than two nodes over that network.
    assert pat.widened == 1.5 * 1.5


def run(*arguments: str) -> str:
    done = CliRunner().invoke(busbw, ["predict", *arguments], catch_exceptions=False)
    assert done.exit_code in (0, 4)
    return " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("platform", "collective", "cell_GBps"), [("gcp-a2", "alltoall", 1.9), ("azure-nd-mi300x-v5", "alltoall", 200.0)]
)
def test_a_measured_cell_makes_what_no_document_tells_a_prediction(
    platform: str, collective: str, cell_GBps: float, tmp_path: Path
) -> None:
    nodes = 2 if platform == "gcp-a2" else 1
    table = tmp_path / "mine.csv"
    table.write_text(f"{HEAD}mine,{platform},{nodes},{8 * nodes},{collective},{GiB},{cell_GBps},\n")
    asked = (collective, "--platform", platform, "--nodes", str(nodes), "--size", "64M", "--size", "1G")
    assert "cannot tell: no measurement of linear" in run(*asked)
    told = run(*asked, "--calibrate", str(table))
    assert f"{cell_GBps:g}" in told.split("1 GiB", 1)[1].split("linear")[0]
    assert "calibrated: no document tells its links or network; cells of the machine itself do" in told
    # What was presumed before is no prediction, and is not shown.
    assert "->" not in told


def test_a_cell_of_the_same_collective_moves_its_other_sizes_and_nodes_alike(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text(f"{HEAD}mine,azure-nd-h100-v5,4,32,alltoall,{GiB},47.2,\n")
    asked = ("alltoall", "--platform", "azure-nd-h100-v5", "--nodes", "4,16", "--size", "1G", "--calibrate", str(table))
    told = run(*asked)
    assert "0.926 -> 0.734 of line rate" in told
    # On other nodes no more than where it was measured, though more of it is open there.
    assert "0.926 -> 0.735 of line rate" in told


def test_what_rccl_sends_is_not_told_by_nccls_channels() -> None:
    with pytest.raises(CannotTellError, match="no measurement of neighbour"):
        call_of("azure-nd-mi300x-v5", 1, GiB, "sendrecv")
