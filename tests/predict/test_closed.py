"""The closed form: nothing above what arithmetic allows, monotone, and what the write-ups print."""

import math
import random
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from busbw.base.errors import InputError
from busbw.facts.nccl_model import nccl_constants
from busbw.facts.platforms import all_platforms
from busbw.facts.predictor import predictor_constants
from busbw.model.predict.nccl_choice import NcclGraphs, NcclJob, SearchedGraph
from busbw.model.predict.prediction import HeldOut, Kinship, PredictedCall, Scope
from busbw.predict.closed import predicted
from busbw.predict.intervals import reach_of, stretch_of
from busbw.predict.machines import CannotTellError, MachineClass, machine_of
from busbw.predict.nccl import choice
from busbw.predict.rising import ways_of
from busbw.predict.shares import share_of

TOLD = ("azure-nd-h100-v5", "aws-p5", "aws-p4de", "gcp-a3-ultra", "gcp-a3-mega", "isambard-ai-phase2", "aws-p6-b200")


@cache
def machine(name: str, gpus: int | None = None) -> MachineClass:
    return machine_of(next(each for each in all_platforms(()) if each.id == name), gpus=gpus)


def first(name: str, nodes: int, size_bytes: int, algorithm: str | None = None) -> PredictedCall:
    found = predicted(machine(name), nodes=nodes, collective="all_reduce", size_bytes=size_bytes, algorithm=algorithm)
    return found[0]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(TOLD),
    nodes=st.integers(1, 3000),
    collective=st.sampled_from(("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")),
    size_bytes=st.integers(1, 2**40),
)
def test_nothing_is_above_its_bound_and_parts_sum_to_the_time(
    name: str, nodes: int, collective: str, size_bytes: int
) -> None:
    try:
        calls = predicted(machine(name), nodes=nodes, collective=collective, size_bytes=size_bytes)
    except CannotTellError:
        return
    for call in calls:
        assert 0 < call.low_Bps <= call.busbw_Bps <= call.high_Bps <= call.bound_Bps * (1 + 1e-9)
        assert math.isclose(call.latency_s + call.filling_s + call.flags_s + call.wire_s, call.time_s, rel_tol=1e-9)
        assert call.basis
        assert call.documents


@settings(max_examples=40, deadline=None, derandomize=True)
@given(name=st.sampled_from(TOLD), nodes=st.integers(1, 500), size_bytes=st.integers(1, 2**38))
def test_a_larger_message_takes_longer_by_each_way(name: str, nodes: int, size_bytes: int) -> None:
    calls = {}
    for size in (size_bytes, size_bytes + max(1, size_bytes // 7)):
        for call in predicted(machine(name), nodes=nodes, collective="all_reduce", size_bytes=size):
            calls.setdefault(call.algorithm, []).append(call.time_s)
    assert calls
    assert all(shorter < longer for shorter, longer in calls.values())


@pytest.mark.parametrize("size_bytes", [2**10, 2**20, 2**26, 2**30, 2**34])
def test_faster_nics_and_links_never_take_longer(size_bytes: int) -> None:
    slow = machine("azure-nd-h100-v5")
    assert slow.rates.nic is not None
    assert slow.rates.nvlink is not None
    for part in ("nic", "nvlink"):
        own = getattr(slow.rates, part)
        faster = structs.replace(own, rate_Bps=1.2 * own.rate_Bps)
        fast = replace(slow, name=f"a faster {part}", rates=structs.replace(slow.rates, **{part: faster}))
        asked = {"nodes": 4, "collective": "all_reduce", "size_bytes": size_bytes}
        before = {call.algorithm: call.time_s for call in predicted(slow, **asked)}
        after = {call.algorithm: call.time_s for call in predicted(fast, **asked)}
        assert before.keys() == after.keys()
        assert all(after[name] <= before[name] * (1 + 1e-9) for name in before)


@pytest.mark.parametrize("algorithm", ["ring", "nvlstree"])
def test_more_nodes_take_longer(algorithm: str) -> None:
    times = [first("azure-nd-h100-v5", nodes, 2**26, algorithm).time_s for nodes in (4, 8, 16, 64, 256, 1024)]
    assert times == sorted(times)


def test_table_2_comes_out_of_one_constant_and_the_fall_is_not_fitted() -> None:
    measured = {4: 361.06, 8: 366.12, 16: 367.39, 32: 365.51, 64: 366.63}
    for nodes, busbw in measured.items():
        call = first("azure-nd-h100-v5", nodes, 2**34, "nvlstree")
        assert call.busbw_Bps / 1e9 == pytest.approx(busbw, rel=0.015)
        assert call.limited_by == "NICs of a node"
        assert call.low_Bps < busbw * 1e9 < call.high_Bps
    thousand = first("azure-nd-h100-v5", 128, 2**34, "nvlstree")
    # 354.2 GB/s: the algorithm gives nothing to fall by, and the difference is left to the fabric.
    assert 1.03 < thousand.busbw_Bps / 354.2e9 < 1.06
    assert thousand.low_Bps < 354.2e9


def test_table_1_and_isambard_are_near() -> None:
    assert first("azure-nd-h100-v5", 1, 2**34, "nvls").busbw_Bps / 1e9 == pytest.approx(481.42, rel=0.02)
    assert first("isambard-ai-phase2", 2, 2**33).busbw_Bps / 1e9 == pytest.approx(162.69, rel=0.035)
    assert first("isambard-ai-phase2", 2, 2**33).algorithm == "tree"


def test_both_modes_of_the_ring_are_inside_of_its_interval() -> None:
    call = first("azure-nd-h100-v5", 4, 2**34, "ring")
    assert call.low_Bps < 330e9 < call.high_Bps
    assert call.low_Bps < 381.8e9 < call.high_Bps


@pytest.mark.parametrize(
    ("name", "nodes", "collective", "algorithm", "words"),
    [
        ("azure-nd-h100-v5", 4, "all_reduce", "collnet", "SHARP"),
        ("azure-nd-h100-v5", 4, "alltoall", "two-level", "the two-level alltoall is no part of NCCL"),
        ("azure-nd-mi300x-v5", 1, "alltoall", None, "no measurement of linear"),
        ("gb200-nvl72", 360, "all_reduce", None, "between racks"),
        ("azure-ndv4", 2, "all_reduce", "collnet", "SHARP"),
        ("azure-hbv4", 2, "all_reduce", None, "these nodes have none"),
        ("gcp-a2", 2, "all_reduce", None, "over Ethernet"),
        ("azure-nc24rs-v3", 2, "all_reduce", None, "not known|nobody"),
    ],
)
def test_where_no_data_applies_it_cannot_tell(
    name: str, nodes: int, collective: str, algorithm: str | None, words: str
) -> None:
    with pytest.raises(CannotTellError, match=words):
        predicted(machine(name), nodes=nodes, collective=collective, size_bytes=2**30, algorithm=algorithm)


def test_what_cannot_be_is_refused() -> None:
    for nodes, size_bytes, algorithm in ((0, 1, None), (100_001, 1, None), (4, 0, None), (4, 1, "nonsense")):
        with pytest.raises(InputError):
            predicted(
                machine("aws-p5"), nodes=nodes, collective="all_reduce", size_bytes=size_bytes, algorithm=algorithm
            )


def test_beyond_twice_the_nodes_that_were_seen_the_interval_grows_and_says_so() -> None:
    near, far = (first("aws-p5", nodes, 2**34, "nvlstree") for nodes in (32, 64))
    assert not near.extrapolated
    assert far.widened == 1.5
    assert "more than twice the most that were measured over EFA, 16" in far.extrapolated[0]
    grown = math.log(far.busbw_Bps / far.low_Bps) / math.log(near.busbw_Bps / near.low_Bps)
    assert grown == pytest.approx(1.5 * stretch_of(far.loose) / stretch_of(near.loose))


def held(
    document: str, residuals: tuple[float, ...], kinship: Kinship = "across", scope: Scope = "one node"
) -> HeldOut:
    return HeldOut(band="large", kinship=kinship, scope=scope, document=document, residuals=residuals)


def test_documents_count_alike_in_the_interval_whatever_number_of_cells_they_have() -> None:
    few = tuple(held(f"D{number}", (0.1,)) for number in range(4))
    once, often = (reach_of((*few, held("M", (0.9,) * cells)), "large", "across", "one node") for cells in (1, 10))
    assert once[0] == pytest.approx(often[0])


def test_few_documents_of_a_kind_are_drawn_towards_all_and_many_are_not() -> None:
    far = tuple(held(f"A{number}", (0.2,), scope="several nodes") for number in range(9))
    reaches = []
    for count in (1, 3, 30):
        near = tuple(held(f"F{number}", (0.03,), "in family") for number in range(count))
        reaches.append(reach_of((*near, *far), "large", "in family", "one node")[0])
    assert reaches == sorted(reaches, reverse=True)
    assert reaches[0] > 0.15
    assert reaches[-1] < 0.07
    with pytest.raises(CannotTellError, match="an interval cannot be told"):
        reach_of((), "large", "across", "one node")


def test_an_interval_reaches_farther_where_hops_are_more_of_a_call() -> None:
    assert stretch_of(0.0) == 1.0
    assert stretch_of(0.5) == pytest.approx(2**0.5)
    hops, rate = (first("aws-p5", 2, size, "nvlstree") for size in (2**20, 2**29))
    assert hops.busbw_Bps / hops.low_Bps > 1.5 * rate.busbw_Bps / rate.low_Bps


def test_a_rack_is_told_by_gpus_of_its_kind_before_others_and_wider() -> None:
    """A constant of the rack itself, or else those of nodes with its GPUs."""
    known = predictor_constants()
    without = structs.replace(
        known,
        share=tuple(row for row in known.share if row.generation != "blackwell rack"),
        curve=tuple(row for row in known.curve if row.generation != "blackwell rack"),
    )
    asked = {"nodes": 18, "collective": "all_reduce", "size_bytes": 2**33, "algorithm": "nvls"}
    own, kin = (predicted(machine("gb200-nvl72"), **asked, constants=each)[0] for each in (known, without))
    assert (own.kinship, kin.kinship) == ("in family", "across")
    assert kin.share == next(
        row.share for row in known.share if (row.algorithm, row.generation) == ("nvls", "blackwell")
    )
    assert kin.widened == 1.5


def test_documents_that_agree_by_chance_are_not_known_better_than_nodes_of_a_kind_differ() -> None:
    by_chance, alike = (
        reach_of(tuple(held(f"D{number}", (each,)) for number in range(9)), "large", "across", "one node")[0]
        for each in (0.001, 0.03)
    )
    assert by_chance == pytest.approx(alike) == pytest.approx(0.03)


def test_four_of_five_further_documents_are_inside_with_all_of_their_cells_and_nine_of_ten_cells() -> None:
    """Documents whose own scatter is 4 %, give or take a factor of two."""
    drawn = random.Random(19)

    def document() -> tuple[float, ...]:
        scatter = 0.04 * math.exp(drawn.gauss(0, 0.7))
        return tuple(abs(drawn.gauss(0, scatter)) for _ in range(8))

    whole = cells = 0
    for _ in range(2000):
        rows = tuple(held(f"D{number}", document()) for number in range(8))
        reach = reach_of(rows, "large", "across", "one node")[0]
        further = document()
        whole += max(further) <= reach
        cells += sum(each <= reach for each in further)
    assert 0.75 < whole / 2000 < 0.87
    assert 0.87 < cells / 16000 < 0.97


def test_of_two_ranks_each_writes_a_part_of_its_own_that_a_broadcast_does_not() -> None:
    """GB/s at 2 GiB of two H100, which no constant was fitted to (docs/measurements/2026-11-22-two-h100.md)."""
    for name, measured in (("all_reduce", 339), ("all_gather", 274.5), ("reduce_scatter", 276.7), ("broadcast", 367.3)):
        asked = {"nodes": 1, "collective": name, "size_bytes": 2**31, "algorithm": "ring"}
        call = predicted(machine("oci-bm-gpu-h200-8", 2), **asked)[0]
        assert call.busbw_Bps / 1e9 == pytest.approx(measured, rel=0.08)


def test_over_infiniband_hops_are_nccls_and_over_others_more_is_fitted() -> None:
    of = {
        name: predicted(machine(name), nodes=4, collective="all_gather", size_bytes=1024, algorithm="ring")[0]
        for name in ("azure-nd-h100-v5", "gcp-a3-ultra")
    }
    # 28 hops of 0.6 us within nodes, 3 of 2.7 us between them, and 6.6 us.
    assert of["azure-nd-h100-v5"].latency_s == pytest.approx(1e-6 * (6.6 + 28 * 0.6 + 3 * 2.7), rel=0.01)
    assert of["gcp-a3-ultra"].latency_s > 2 * of["azure-nd-h100-v5"].latency_s


def test_a_call_of_mostly_hops_goes_the_fastest_way_and_a_large_one_a_measured_way() -> None:
    """Over RoCE only rings were measured: 16 nodes have 255 hops twice, and NCCL would not take them for 64 KiB."""
    asked = {"nodes": 16, "collective": "all_reduce"}
    small, large = (predicted(machine("gcp-a3-ultra"), **asked, size_bytes=size) for size in (2**16, 2**34))
    assert small[0].algorithm == "nvlstree"
    assert small[0].time_s == min(call.time_s for call in small)
    assert small[0].kinship == "across"
    assert (large[0].algorithm, large[0].kinship) == ("ring", "in family")


@pytest.mark.parametrize(
    ("name", "nodes"), [("aws-p5", 16), ("aws-p5", 64), ("aws-p6-b200", 128), ("aws-p6-b200", 512)]
)
def test_where_a_measured_way_takes_over_the_time_of_twice_the_size_does_not_jump(name: str, nodes: int) -> None:
    """A ring over 64 nodes takes 2.6 times as long for 2 GiB as a tree for 1 GiB, though a ring was measured there."""
    sizes = [2**power for power in range(23, 36)]
    calls = [predicted(machine(name), nodes=nodes, collective="all_reduce", size_bytes=size)[0] for size in sizes]
    assert {call.algorithm for call in calls} == {"nvlstree", "ring"}
    assert calls[-1].kinship == "in family"
    assert all(before.time_s < after.time_s < 2.5 * before.time_s for before, after in pairwise(calls))


@pytest.mark.parametrize("nodes", [2, 9, 17])
def test_within_a_rack_a_larger_call_takes_longer_whichever_way_is_told(nodes: int) -> None:
    sizes = [2**power for power in range(10, 35)]
    calls = [
        predicted(machine("gb200-nvl72"), nodes=nodes, collective="all_gather", size_bytes=size)[0] for size in sizes
    ]
    assert {call.algorithm for call in calls} == {"nvls", "ring"}
    assert all(before.time_s < after.time_s < 3.1 * before.time_s for before, after in pairwise(calls))


def test_a_tree_of_blackwell_is_held_by_its_channels_and_one_of_hopper_is_not() -> None:
    """GB/s of 32 GiB in tests/scaling/samples/together-b200.csv, which no constant is fitted to."""
    for nodes, measured in ((2, 339), (4, 192), (16, 196), (64, 196)):
        asked = {"nodes": nodes, "collective": "all_reduce", "size_bytes": 2**35, "algorithm": "tree"}
        call = predicted(machine("nvidia-dgx-b200"), **asked)[0]
        assert call.limited_by == "channels of NCCL's tree"
        assert call.share is None
        assert call.busbw_Bps / 1e9 == pytest.approx(measured, rel=0.06)
    asked = {"nodes": 4, "collective": "all_reduce", "size_bytes": 2**35, "algorithm": "tree"}
    assert predicted(machine("azure-nd-h100-v5"), **asked)[0].limited_by == "NICs of a node"


def test_a_tree_that_the_links_of_a_node_limit_takes_what_a_ring_reaches_of_them() -> None:
    asked = {"nodes": 2, "collective": "all_reduce", "size_bytes": 2**34, "algorithm": "tree"}
    call = predicted(machine("azure-nd-h100-v5"), **asked)[0]
    assert call.limited_by == "links of a GPU"
    ring = share_of(machine("azure-nd-h100-v5"), "nvlink", "ring", predictor_constants())
    assert ring is not None
    assert call.share == ring.share
    # Of NVLSTree the switch's own share counts, never a ring's.
    told = share_of(machine("azure-nd-h100-v5"), "nvlink", "nvlstree", predictor_constants())
    assert told is not None
    assert told.algorithm == "nvlstree"


def test_of_two_trees_that_take_as_long_the_one_of_the_switch_is_told() -> None:
    told = predicted(machine("azure-nd-h100-v5"), nodes=32, collective="all_reduce", size_bytes=2**34)
    assert [call.algorithm for call in told[:2]] == ["nvlstree", "tree"]
    assert told[0].time_s == pytest.approx(told[1].time_s)


def test_a_tree_fills_by_what_its_stages_hold_and_not_longer_for_larger_calls() -> None:
    """Isambard's 162.69 GB/s at 8 GiB, and Alps' sweep that ends at 128 MiB, from one constant near 1."""
    chunk = predictor_constants().chunk
    assert chunk is not None
    assert 0.7 < chunk.chunks < 1.5
    asked = {"nodes": 2, "collective": "all_reduce", "algorithm": "tree"}
    large, larger = (predicted(machine("isambard-ai-phase2"), **asked, size_bytes=size)[0] for size in (2**30, 2**33))
    assert larger.filling_s == pytest.approx(large.filling_s, rel=0.03)
    assert larger.busbw_Bps / 1e9 == pytest.approx(162.69, rel=0.03)
    # One chunk after the other through all stages: a small call takes each stage's time.
    small = predicted(machine("isambard-ai-phase2"), **asked, size_bytes=2**16)[0]
    assert small.filling_s > 2 * small.wire_s


def within(gpus: int, collective: str, size_bytes: int) -> PredictedCall:
    """Return what a ring over some GPUs of a node of H200 is predicted to take."""
    here = machine("oci-bm-gpu-h200-8", gpus)
    return predicted(here, nodes=1, collective=collective, size_bytes=size_bytes, algorithm="ring")[0]


def test_a_ring_within_a_node_has_the_protocol_that_nccl_takes_and_a_chain_the_fastest() -> None:
    before, after = (within(2, "all_reduce", size_bytes) for size_bytes in (2**20, 2**21))
    assert before.flags_s > 0
    # Simple, which has no flags: measured on five machines, 29.2 to 30.4 us.
    assert after.flags_s == 0
    assert after.time_s == pytest.approx(29.6e-6, rel=0.15)
    assert within(4, "all_reduce", 2**21).flags_s > 0
    assert within(4, "all_gather", 2**22).flags_s == 0
    assert within(2, "broadcast", 2**21).flags_s > 0


@pytest.mark.parametrize("gpus", [2, 4])
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter"])
def test_that_protocol_is_what_nccl_takes_with_the_graph_that_it_printed(gpus: int, collective: str) -> None:
    ring = SearchedGraph(
        channels=12, intra_GBps=30.0, inter_GBps=30.0, intra_type="NVL", inter_type="PIX", same_channels=True
    )
    graphs = NcclGraphs(ring=ring, tree=ring, origin="four H200")
    job, constants = NcclJob(nodes=1, ranks=gpus, sm=90), nccl_constants("2.28.9")
    for power in range(10, 34):
        asked = {"release": "2.28.9", "collective": collective, "size_bytes": 2**power, "algorithm": "ring"}
        taken = choice(job, graphs, constants, **asked).chosen.protocol
        ways = ways_of(machine("oci-bm-gpu-h200-8", gpus), 1, collective, "ring", 0.0)
        assert min(ways, key=lambda way: way.counted_s(2**power)).protocol == taken


def test_every_constant_names_its_documents() -> None:
    constants = predictor_constants()
    assert all(row.documents for row in (*constants.share, *constants.curve, *constants.hop, *constants.own))
    assert all(0 < row.share <= 1 for row in constants.share)
    assert all(row.full_s > 0 and row.slope > 0 for row in constants.curve)
