"""Settings that together do something else than each says, and recipes in which nothing does."""

import pytest

from busbw.env.rules.combinations import interactions
from busbw.facts.platforms import all_platforms
from busbw.model.envvar import Interaction
from busbw.model.platform import Platform

SHARP = {
    "NCCL_COLLNET_ENABLE": "1",
    "NCCL_ALGO": "CollnetDirect,CollnetChain,NVLS",
    "NCCL_NVLS_ENABLE": "1",
    "NCCL_IB_HCA": "^mlx5_an0:1",
}
# What a correct recipe may be told, and not be called wrong for.
HARMLESS = {"misleading", "no effect", "clipped"}


def found(
    values: dict[str, str], *, version: tuple[int, ...] | None = None, nodes: int | None = None
) -> dict[str, Interaction]:
    return {each.id: each for each in interactions(values, version=version, nodes=nodes)}


def test_nothing_set_does_nothing() -> None:
    assert interactions({}) == ()


def test_a_minimum_of_ctas_above_the_maximum_becomes_the_maximum() -> None:
    each = found({"NCCL_MIN_CTAS": "32", "NCCL_MAX_CTAS": "16"})["minimum above maximum"]

    assert each.effect.endswith("both become 16")


def test_a_minimum_of_channels_above_the_maximum_wins() -> None:
    each = found({"NCCL_MIN_NCHANNELS": "32", "NCCL_MAX_NCHANNELS": "16"})["minimum above maximum"]

    assert each.effect.endswith("both become 32")


def test_a_fixed_number_of_channels_is_no_contradiction() -> None:
    assert found({"NCCL_MIN_NCHANNELS": "16", "NCCL_MAX_NCHANNELS": "16"}) == {}


def test_more_than_64_sockets_are_clipped() -> None:
    each = found({"NCCL_SOCKET_NTHREADS": "8", "NCCL_NSOCKS_PERTHREAD": "16"})["too many sockets"]

    assert each.fix == "NCCL_NSOCKS_PERTHREAD=8"
    assert found({"NCCL_SOCKET_NTHREADS": "8", "NCCL_NSOCKS_PERTHREAD": "8"}) == {}


def test_nvls_alone_fails_on_several_nodes_without_collnet() -> None:
    alone = {"NCCL_ALGO": "NVLS"}

    assert found(alone, nodes=2)["no algorithm"].kind == "fails"
    assert "no algorithm" not in found(alone, nodes=1)
    assert found(alone)["NVLS alone"].kind == "misleading"
    assert found(alone, nodes=2, version=(2, 20, 5))["no algorithm"].kind == "misleading"


def test_trees_leave_nothing_to_other_collectives() -> None:
    each = found({"NCCL_ALGO": "Tree"}, nodes=2)["some without algorithm"]

    assert "AllGather" in each.condition
    assert each.fix == 'NCCL_ALGO="allreduce:Tree" holds for all_reduce alone'
    assert found({"NCCL_ALGO": "allreduce:Tree"}, nodes=2) == {}


@pytest.mark.parametrize("value", ["Ring", "Ring,Tree", "^Tree", "^NVLS,NVLSTree"])
def test_choices_that_leave_something_to_all_are_fine(value: str) -> None:
    assert found({"NCCL_ALGO": value}, nodes=2) == {}


def test_collnet_asked_for_and_turned_off_contradict() -> None:
    assert found({**SHARP, "NCCL_COLLNET_ENABLE": "0"})["CollNet asked for and off"].kind == "contradiction"


def test_sharp_as_it_is_published_is_not_called_wrong() -> None:
    assert {each.kind for each in found(SHARP, nodes=4).values()} <= HARMLESS


def test_peer_to_peer_off_leaves_nvls_on_nvlink() -> None:
    both = {"NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "1", "NCCL_SHM_DISABLE": "1"}

    assert found(both)["peer-to-peer off, NVLS on"].kind == "contradiction"
    assert found({**both, "NCCL_NVLS_ENABLE": "0"}) == {}


def test_no_way_within_a_node_fails() -> None:
    values = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NET_DISABLE_INTRA": "1"}

    assert found(values)["no way within a node"].kind == "fails"


def test_ib_settings_do_nothing_over_sockets() -> None:
    assert found({"NCCL_IB_HCA": "mlx5_0", "NCCL_IB_DISABLE": "1"})["IB settings without IB"].kind == "no effect"
    assert found({"NCCL_IB_HCA": "mlx5_0", "NCCL_NET": "Socket"})["IB settings without IB"].kind == "no effect"
    assert found({"NCCL_NET": "IB", "NCCL_IB_DISABLE": "1"})["IB asked for and off"].kind == "fails"
    assert found({"NCCL_IB_HCA": "mlx5_0", "NCCL_NET": "IB"}) == {}


def test_a_plugin_that_is_needed_and_turned_off_fails() -> None:
    values = {"NCCL_NET": "AWS Libfabric", "NCCL_NET_PLUGIN": "none"}

    assert found(values)["plug-in needed and off"].kind == "fails"
    assert found({"NCCL_NET": "AWS Libfabric"}) == {}


def test_ll128_that_is_named_is_forced() -> None:
    assert "LL128 forced" in found({"NCCL_PROTO": "LL,LL128,Simple"})
    assert "LL128 forced" in found({"NCCL_PROTO": "^LL"})
    assert found({"NCCL_PROTO": "^LL128"}) == {}
    assert found({"NCCL_PROTO": "Simple"}) == {}
    assert found({"NCCL_PROTO": "allreduce:Simple"}) == {}


def test_nvls_has_no_protocol_but_simple() -> None:
    assert found({"NCCL_ALGO": "NVLSTree", "NCCL_PROTO": "LL"}, nodes=2)["no protocol"].kind == "fails"


def test_a_list_of_subsystems_replaces_the_default() -> None:
    assert "log without start" in found({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "TUNING"})
    assert found({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,TUNING"}) == {}
    assert found({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "^COLL"}) == {}
    assert "NCCL_DEBUG_SUBSYS alone" in found({"NCCL_DEBUG": "WARN", "NCCL_DEBUG_SUBSYS": "NET"})


def test_a_switch_that_needs_another_does_nothing_alone() -> None:
    assert "NCCL_GDRCOPY_FLUSH_ENABLE alone" in found({"NCCL_GDRCOPY_FLUSH_ENABLE": "1"})
    assert found({"NCCL_GDRCOPY_FLUSH_ENABLE": "1", "NCCL_GDRCOPY_ENABLE": "1"}) == {}


def test_ucx_and_nccl_on_different_gids_are_told() -> None:
    assert "NCCL_IB_GID_INDEX unlike UCX_IB_GID_INDEX" in found({"NCCL_IB_GID_INDEX": "3", "UCX_IB_GID_INDEX": "1"})
    assert found({"NCCL_IB_GID_INDEX": "3", "UCX_IB_GID_INDEX": "3"}) == {}


@pytest.mark.parametrize("platform", all_platforms(), ids=lambda each: each.id)
def test_what_a_platform_is_published_to_set_is_not_called_wrong(platform: Platform) -> None:
    settings = platform.settings
    for goal in {None, *(setting.goal for setting in settings)}:
        chosen = {each.name: each.value for each in settings if each.value is not None and each.goal in (None, goal)}
        kinds = {each.kind for each in interactions(chosen)}
        assert kinds <= HARMLESS, (goal, kinds)
