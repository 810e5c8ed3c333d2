"""The plan of a step: its collectives, groups and links, what is measured or expected of them, and changes."""

from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.warm import warm_busbw

from busbw.api.training.planning import TrainRequest, plan_training
from busbw.base.errors import InputError
from busbw.model import codec
from busbw.model.train.plan import GroupKind, GroupPlace, TrainPlan
from busbw.train.layout import DIMENSIONS, RankLayout, Seats, group_of, layout_of, members, place_of
from busbw.train.predicting import Asked, MeasuredCollective, by_measurements, first_of
from busbw.train.workloads import configuration_for, workload_named

AZURE = "azure-nd-h100-v5"


def planned(workload: str = "grok1-314b", platform: str = AZURE, **asked: object) -> TrainPlan:
    return plan_training(TrainRequest(workload=workload, platform=platform, **asked))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def grok() -> TrainPlan:
    return planned(gpus=512, what_if=("nic=800G", "tp=8,pp=4", "ep=4", "ep=3"))


def test_a_step_of_grok_1_communicates_what_its_sizes_say(grok: TrainPlan) -> None:
    tokens, hidden, bf16, micro_batches, layers = 8192 // 2, 6144, 2, 128, 8
    calls = {(call.name): call for call in grok.collectives}
    to_experts = calls["tokens to experts and back"]
    assert (to_experts.collective, to_experts.group) == ("alltoall", "EP")
    assert to_experts.size_bytes == 2 * tokens // 4 * hidden * bf16
    assert to_experts.calls == 4 * layers * micro_batches
    assert calls["activations gathered"].size_bytes == tokens * hidden * bf16
    # The slowest stage is the last: 8 layers, whose attention alone is shared so, and the head.
    assert calls["activations gathered"].calls == micro_batches * (3 * layers + 2)
    assert calls["experts' tokens gathered"].size_bytes == 2 * tokens * hidden * bf16
    assert calls["activations to the next stage, gradients back"].size_bytes == tokens * hidden * bf16 // 4
    experts = layers * 3 * hidden * 32768 // 4
    assert calls["gradients of experts"].size_bytes == experts * 2
    assert calls["gradients of experts"].group == "expert-DP x CP"
    assert all(call.formula and call.source and call.time.words for call in grok.collectives)


def test_tensor_parallelism_stays_within_nvlink_and_experts_on_a_rail(grok: TrainPlan) -> None:
    places = {call.group: call.place for call in grok.collectives}
    assert places["TP"] == GroupPlace(nodes=1, ranks_per_node=4, links="NVLink", spine=False)
    assert places["EP"] == GroupPlace(nodes=8, ranks_per_node=1, links="rail")
    assert {each.code for each in grok.findings} == {"TRN002", "TRN003", "TRN006"}


def test_groups_cross_the_spine_where_their_nodes_are_below_several_leaves() -> None:
    layout = layout_of(workload_named("grok1-314b").model, configuration_for(workload_named("grok1-314b"), 512)[0])
    told = {
        leaf: place_of(layout, group_of(layout, "EP"), Seats(node_gpus=8, leaf_nodes=leaf)).spine
        for leaf in (None, 4, 8, 64)
    }
    assert told == {None: None, 4: True, 8: False, 64: False}
    assert place_of(layout, group_of(layout, "PP"), Seats(node_gpus=8, leaf_nodes=32)).spine is True
    assert place_of(layout, group_of(layout, "TP"), Seats(node_gpus=8, leaf_nodes=1)).spine is False


def test_an_order_that_takes_tensor_parallelism_off_nvlink_costs_more() -> None:
    other = planned(gpus=512, order="pp-cp-ep-dp-tp")
    assert "TRN005" in {each.code for each in other.findings}
    costs = {each.order: each for each in other.orders}
    assert costs["tp-cp-ep-dp-pp"].change_s < 0
    assert costs["tp-cp-ep-dp-pp"].tp_links == "NVLink"
    assert costs["pp-cp-ep-dp-tp"].tp_links == "rail"


def test_parts_add_up_to_the_step_and_published_steps_stand_beside_it(grok: TrainPlan) -> None:
    found = grok.estimate
    assert found is not None
    assert found.step_s == pytest.approx(found.layers_s + found.outside_s + found.bubble_s)
    assert found.inside_s + found.outside_s == pytest.approx(sum(call.exposed_s or 0.0 for call in grok.collectives))
    residuals = {held.machine: held.residual for held in grok.published}
    assert residuals["DGX H100 (NVIDIA)"] == pytest.approx(found.step_s / 20.83 - 1)
    assert residuals["Azure ND H100 v5"] == pytest.approx(found.step_s / 22.0 - 1)


def test_changes_are_ranked_by_what_they_give(grok: TrainPlan) -> None:
    shares = [each.change_share for each in grok.what_if if each.change_share is not None]
    assert shares == sorted(shares)
    found = {each.change: each for each in grok.what_if}
    assert set(found) == {"nic=800G", "tp=8,pp=4", "ep=4", "ep=3", "nic=2x", "nvlink=2x"}
    assert found["nic=800G"].step_s == pytest.approx(found["nic=2x"].step_s)
    faster = found["nic=2x"]
    assert faster.exposed_before_s is not None
    assert faster.exposed_s is not None
    assert faster.exposed_before_s / 2 < faster.exposed_s < faster.exposed_before_s
    assert found["ep=3"].step_s is None
    assert found["ep=3"].words == "cannot be: experts 8 do not divide by EP 3 (the nearest that can: ep = 2 or 4)"


@pytest.mark.parametrize(
    "text", ["nik=2x", "nic=", "nic=0x", "nic=2y", "tp=0", "tp=٣", "tp=" + "9" * 40, "tp=2,tp=4", "", "zero=4"]
)
def test_a_change_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        planned(gpus=512, what_if=(text,))
    assert refused.value.hint is not None


def test_without_a_published_step_only_communication_is_told_until_one_is_given() -> None:
    bare = planned("deepseek-v3-like", "nvidia-dgx-b200")
    assert bare.estimate is None
    assert "--step-time" in (bare.no_estimate or "")
    assert all(each.step_s is None for each in bare.what_if)
    told = planned("deepseek-v3-like", "nvidia-dgx-b200", step_s=30.0)
    assert told.estimate is not None
    assert told.estimate.step_s == pytest.approx(30.0)
    assert "your own step of 30 s" in told.estimate.fitted_on


def test_a_measured_collective_goes_before_what_is_expected() -> None:
    place = GroupPlace(nodes=8, ranks_per_node=1, links="rail")
    own = MeasuredCollective(
        collective="alltoall", ranks=8, nodes=8, points=((2**20, 1e-4), (2**24, 1e-3)), name="log of tonight"
    )
    answer = first_of([by_measurements([own]), lambda _asked: None])

    def asked(size_bytes: int, ranks: int = 8) -> Asked:
        return Asked(collective="alltoall", size_bytes=size_bytes, ranks=ranks, place=place)

    assert answer(asked(2**24)).time_s == 1e-3
    assert answer(asked(2**22)).time_s == pytest.approx(10**-3.5)
    assert answer(asked(2**25)).time_s == pytest.approx(2e-3)
    assert answer(asked(2**22)).words == "measured: log of tonight"
    assert answer(asked(2**10)).time_s is None
    assert answer(asked(2**24, ranks=16)).time_s is None


LOGS = Path(__file__).parents[1] / "formats" / "samples"


def test_a_log_of_ones_own_is_used_where_its_ranks_are_those_of_a_group() -> None:
    log = str(LOGS / "nccl-tests-2.9-alltoall.log")
    told = planned("llama3-70b", "azure-ndv4", measured=(log,), dtype="bf16")
    assert told.notes == (f"{Path(log).name} has nothing that this step calls: alltoall of 8 ranks on 1 node",)
    with pytest.raises(InputError, match="A100") as refused:
        planned("llama3-70b", AZURE, measured=(log,))
    assert refused.value.where == "--measured nccl-tests-2.9-alltoall.log"
    gathered = planned(platform="azure-ndv4", measured=(str(LOGS / "nccl-tests-2.9-all_gather.log"),))
    call = next(each for each in gathered.collectives if each.name == "activations gathered")
    assert call.time.basis == "measured"
    assert call.size_bytes == 48 * 2**20
    assert 31.42e-6 < (call.time.time_s or 0.0) < 512.3e-6


def test_a_gpu_without_fp8_is_refused() -> None:
    with pytest.raises(InputError, match="no FP8"):
        planned(platform="azure-ndv4", dtype="fp8")


SIZES = st.tuples(*[st.sampled_from((1, 2, 3, 4, 8))] * 5)
KINDS: tuple[GroupKind, ...] = ("TP", "CP", "EP", "PP", "DP", "expert-DP", "DP x CP", "expert-DP x CP", "all")


@settings(max_examples=40, deadline=None)
@given(SIZES, st.sampled_from(list(permutations(DIMENSIONS))), st.sampled_from(KINDS))
def test_the_groups_of_a_kind_hold_every_rank_once(
    sizes: tuple[int, ...], order: tuple[str, ...], kind: GroupKind
) -> None:
    tp, cp, ep, expert_dp, pp = sizes
    layout = RankLayout(
        gpus=tp * cp * ep * expert_dp * pp, tp=tp, cp=cp, ep=ep, pp=pp, vp=1, dp=ep * expert_dp, expert_dp=expert_dp,
        accumulation=1, stages=(1,) * pp, order="-".join(order),
    )  # fmt: skip
    group = group_of(layout, kind)
    assert group.size * group.groups == layout.gpus
    seats = [rank for base in range(layout.gpus) for rank in _group_from(group, layout, base)]
    assert Counter(seats) == Counter(range(layout.gpus))
    assert group.examples[0][0] == 0
    assert place_of(layout, group, Seats(node_gpus=layout.gpus)).nodes == 1


def _group_from(group: object, layout: RankLayout, base: int) -> list[int]:
    """Return the group that begins at a rank; none where the rank is not the first of one."""
    sizes, strides = group.sizes, group.strides  # type: ignore[attr-defined]
    if any(base // stride % size for size, stride in zip(sizes, strides, strict=True)):
        return []
    return list(members(sizes, strides, base))


def test_a_plan_is_written_as_json_and_read_back() -> None:
    done = warm_busbw("train", "plan", "toy-moe", "--platform", "nvidia-dgx-h100", "--json")
    assert done.returncode == 0
    found = codec.decode(done.stdout.encode(), TrainPlan, where="stdout")
    assert (found.workload, found.gpus, found.dp, found.accumulation) == ("toy-moe", 2, 2, 2)


def test_list_show_and_plan_say_what_they_should() -> None:
    assert "grok1-314b" in warm_busbw("train", "list").stdout
    shown = warm_busbw("train", "show", "grok1-314b").stdout
    assert "4.27e+15" in shown
    assert "CheckPointing" in shown
    text = warm_busbw("train", "plan", "llama3-70b", "--platform", "nvidia-dgx-h100").stdout
    assert text.startswith("14.72 s a step of llama3-70b on 64 GPUs")
    refused = warm_busbw("train", "plan", "grok1-314b", "--platform", AZURE, "--gpus", "100000")
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        "error: 100000 GPUs do not divide by 64 (TP 4 x PP 8 x CP 2)", "hint: the nearest that can: 99968 or 100032",
    ]  # fmt: skip
