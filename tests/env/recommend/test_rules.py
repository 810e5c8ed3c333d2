"""Single rules, each on the machine or the job that it is about."""

from typing import Any

import pytest
from msgspec import structs

from busbw.base.errors import InputError
from busbw.env.recommend import recommend
from busbw.machine.named import platform, platforms
from busbw.model.platform import FabricKind, GpuKind, NvLinkKind, Platform, PlatformSetting
from busbw.model.recommendation import LeftOut, Recommendation, Recommended


def of(name: str, **job: Any) -> Recommendation:
    return recommend(platform(name).platform, siblings=tuple(each.platform for each in platforms()), **job)


def made(*settings: PlatformSetting, **parts: Any) -> Platform:
    """A platform that is not in the catalogue."""
    about = {
        "gpu": GpuKind(model="H100", count=8, sm=90),
        "nvlink": NvLinkKind(nvls=True),
        "fabric": FabricKind(kind="InfiniBand"),
    } | parts
    return Platform(id="made", names=("made",), provider="me", kind="gpu", settings=settings, **about)


def published(name: str, value: str | None, **more: Any) -> PlatformSetting:
    return PlatformSetting(name=name, value=value, scope="nccl", source=("me",), **more)


def taken(found: Recommendation, name: str) -> Recommended:
    return next(each for each in found.settings if each.name == name)


def left(found: Recommendation, name: str) -> LeftOut:
    return next(each for each in found.left_out if each.name == name)


def test_the_two_lists_of_oci_go_to_the_shapes_of_the_script_and_not_of_the_bullets():
    small, large = (taken(of(name), "NCCL_IB_HCA").value for name in ("oci-bm-gpu4-8", "oci-bm-gpu-b4-8"))

    assert small is not None
    assert large is not None
    assert small.startswith("=mlx5_0,mlx5_2,")
    assert large.startswith("=mlx5_5,mlx5_6,")
    for listed in (small, large):
        ports = listed.removeprefix("=").split(",")
        assert len(ports) == len(set(ports)) == 16


def test_a_deprecated_name_is_replaced_where_the_version_has_the_new_one():
    old, new = of("azure-ndv4", nccl="2.16.2"), of("azure-ndv4", nccl="2.17.1")

    assert taken(old, "NCCL_MIN_NCHANNELS").published_as is None
    assert taken(new, "NCCL_MIN_CTAS").published_as == "NCCL_MIN_NCHANNELS"
    assert "NCCL_MIN_CTAS" not in old.env()
    assert "NCCL_MIN_NCHANNELS" not in new.env()


def test_a_name_that_nothing_reads_is_named_with_what_was_meant():
    assert left(of("azure-ndv4"), "NCCL_MIN_CHANNELS").kind == "unread"
    assert "NCCL_MIN_NCHANNELS" in left(of("azure-ndv4"), "NCCL_MIN_CHANNELS").reason


def test_channels_cost_multiprocessors_of_the_gpu_at_hand():
    assert "of the GPU's 108" in (taken(of("azure-ndv4"), "NCCL_MIN_CTAS").cost or "")
    assert "of the GPU's 132" in (taken(of("azure-nd-h100-v5"), "NCCL_MIN_CTAS").cost or "")


def test_a_training_job_measures_channels_first():
    assert taken(of("azure-nd-h100-v5"), "NCCL_MIN_CTAS").need == "helps"
    assert taken(of("azure-nd-h100-v5", goal="training"), "NCCL_MIN_CTAS").need == "check_first"


@pytest.mark.parametrize(("nccl", "hangs"), [("2.29.3", False), ("2.29.7", True), ("2.30.4", True), ("2.30.7", False)])
def test_pxn_is_off_where_nccl_hangs_with_it(nccl: str, hangs: bool):
    needs = {each.name: each.need for each in of("azure-nd-h100-v5", nccl=nccl).settings}

    assert (needs["NCCL_PXN_DISABLE"] == "needed") == hangs


def test_pxn_is_left_alone_by_calls_that_do_not_send():
    assert "NCCL_PXN_DISABLE" not in of("azure-nd-h100-v5", collective="all_reduce", nccl="2.28.9").env()
    assert "NCCL_PXN_DISABLE" in of("azure-nd-h100-v5", collective="alltoall", nccl="2.28.9").env()


@pytest.mark.parametrize("job", [{"goal": "latency"}, {"size_bytes": 65536}])
def test_short_messages_get_neither_channels_nor_queue_pairs_nor_chunks(job: dict[str, Any]):
    found = of("azure-nd-h100-v5", **job).env()

    assert not found.keys() & {"NCCL_MIN_CTAS", "NCCL_IB_QPS_PER_CONNECTION", "NCCL_P2P_NET_CHUNKSIZE"}
    assert "NCCL_IGNORE_CPU_AFFINITY" in found


def test_a_topology_file_comes_with_ways_to_check_it():
    file = taken(of("azure-nd-h100-v5"), "NCCL_TOPO_FILE")

    assert "busbw topo check /opt/microsoft/ndv5/topo.xml --here" in file.checks
    assert "busbw topo diff /opt/microsoft/ndv5/topo.xml azure-nd-h100-v5" in file.checks
    assert any("NCCL_TOPO_FILE=" in check for check in file.checks)


def test_a_topology_file_that_nobody_measured_is_to_be_checked_first():
    found = recommend(made(published("NCCL_TOPO_FILE", "/etc/my topo.xml", reason="mine")))

    assert taken(found, "NCCL_TOPO_FILE").need == "check_first"
    assert taken(found, "NCCL_TOPO_FILE").checks[0] == "busbw topo check '/etc/my topo.xml' --here"


def test_gpudirect_is_not_asked_for_where_gpu_and_nic_share_a_switch():
    assert left(of("azure-nd-h100-v5"), "NCCL_NET_GDR_LEVEL").kind == "no_effect"


def test_the_old_number_of_a_level_becomes_its_name():
    found = recommend(made(published("NCCL_NET_GDR_LEVEL", "5")))

    assert taken(found, "NCCL_NET_GDR_LEVEL").value == "SYS"


def test_a_level_that_allows_less_than_nccl_does_is_left_out():
    assert left(recommend(made(published("NCCL_NET_GDR_LEVEL", "PIX"))), "NCCL_NET_GDR_LEVEL").kind == "unreasoned"


def test_the_list_of_algorithms_for_sharp_is_for_all_reduce_where_other_calls_would_fail():
    strict, lax = (of("azure-nd-h100-v5", goal="sharp", nccl=nccl) for nccl in ("2.24.3", "2.23.4"))

    assert taken(strict, "NCCL_ALGO").value == "allreduce:CollnetDirect,CollnetChain,NVLS"
    assert taken(lax, "NCCL_ALGO").value == "CollnetDirect,CollnetChain,NVLS"
    assert taken(of("azure-ndv4", goal="sharp"), "NCCL_ALGO").value == "allreduce:CollnetDirect,CollnetChain"


def test_sharp_is_not_to_be_had_without_infiniband():
    found = of("oci-bm-gpu-h100-8", goal="sharp")

    assert "NCCL_COLLNET_ENABLE" not in found.env()
    assert any("RoCE" in words for words in found.cannot_tell)


def test_sharp_needs_a_second_node():
    with pytest.raises(InputError, match="SHARP"):
        of("azure-nd-h100-v5", goal="sharp", nodes=1)


def test_the_plugin_of_sharp_is_not_turned_off_with_all_others():
    assert "NCCL_NET_PLUGIN" in of("coreweave-h100").env()
    assert "NCCL_NET_PLUGIN" not in of("coreweave-h100", goal="sharp").env()


@pytest.mark.parametrize("name", ["azure-nd-h100-v5", "oci-bm-gpu-h100-8", "isambard-ai-phase2", "nvidia-dgx-h100"])
def test_a_check_of_the_nics_turns_every_other_way_off(name: str):
    found = of(name, goal="nic-check", nodes=64)

    assert found.nodes == 1
    assert found.env() | {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"} == found.env()
    nvls = platform(name).platform.nvlink.nvls
    assert (found.env().get("NCCL_NVLS_ENABLE") == "0") == (nvls is not False)


def test_a_check_of_nvlink_sets_nothing_for_the_network():
    found = of("isambard-ai-phase2", goal="nvlink-check").env()

    assert "NCCL_NET" not in found
    assert not [name for name in found if name.startswith("FI_")]


def test_the_source_to_follow_decides_where_sources_disagree():
    ours, theirs = of("azure-nd-h100-v5"), of("azure-nd-h100-v5", follow="ai-hopper")

    assert taken(ours, "NCCL_P2P_NET_CHUNKSIZE").reason.startswith("Better send and receive")
    assert taken(theirs, "NCCL_P2P_NET_CHUNKSIZE").reason.startswith("2097152 is published")
    assert theirs.follow == "ai-hopper"


def test_no_chunk_is_offered_that_nccl_would_cap():
    for follow in (None, "ai-hopper"):
        chunk = taken(of("azure-nd-h100-v5", follow=follow), "NCCL_P2P_NET_CHUNKSIZE")

        assert [chunk.value, *(other.value for other in chunk.alternatives)] == ["524288"]


def test_a_source_to_follow_brings_what_is_left_out_as_risky_but_not_what_changes_nothing():
    found = of("oci-bm-gpu4-8", follow="oci-samples")

    assert taken(found, "NCCL_ALGO").need == "check_first"
    assert taken(found, "NCCL_ALGO").cost
    assert "NCCL_IB_SL" not in found.env()


def test_part_of_a_source_is_enough_unless_several_have_it():
    assert of("azure-nd-h100-v5", follow="pinning").follow == "pinning-article"
    with pytest.raises(InputError, match="part of 2 sources"):
        of("azure-nd-h100-v5", follow="article")
    with pytest.raises(InputError, match="says nothing"):
        of("azure-nd-h100-v5", follow="x" * 1000)


def test_the_site_of_the_same_node_is_asked_and_its_settings_are_to_be_checked():
    found = of("isambard-ai-phase2", nccl="2.27.7")

    assert taken(found, "NCCL_PROTO").need == "check_first"
    assert "alps-gh200" in taken(found, "NCCL_PROTO").reason
    assert [other.value for other in taken(found, "FI_CXI_RX_MATCH_MODE").alternatives] == ["software"]


def test_what_a_site_keeps_for_jobs_that_hang_is_unset_where_that_site_is_followed():
    followed = of("isambard-ai-phase2", follow="cscs")

    assert "FI_CXI_RDZV_GET_MIN" in of("isambard-ai-phase2").env()
    assert "FI_CXI_RDZV_GET_MIN" not in followed.env()
    assert taken(followed, "FI_CXI_DEFAULT_TX_SIZE").value == "16384"


def test_the_protocol_that_slingshot_loses_by_is_only_turned_off_where_nccl_uses_it():
    assert "NCCL_PROTO" in of("alps-gh200", nccl="2.27.3").env()
    assert "NCCL_PROTO" not in of("alps-gh200", nccl="2.26.5").env()


def test_settings_of_one_place_are_to_be_checked_until_it_is_named():
    unsaid, said = of("gcp-a3-high"), of("gcp-a3-high", follow="gke")

    assert taken(unsaid, "NCCL_SOCKET_IFNAME").need == "check_first"
    assert any("--follow gke" in words for words in unsaid.cannot_tell)
    assert taken(said, "NCCL_SOCKET_IFNAME").value == "eth0"
    assert not any("--follow" in words for words in said.cannot_tell)


def test_rdma_ports_are_not_named_to_a_transport_over_tcp():
    found = of("oci-bm-gpu4-8", follow="oci-article")

    assert found.env()["UCX_TLS"] == "tcp"
    assert left(found, "UCX_NET_DEVICES").kind == "risky"


def test_what_the_plugin_sets_itself_is_left_to_it():
    assert left(of("aws-p5"), "NCCL_BUFFSIZE").kind == "set_already"


def test_what_a_site_publishes_with_a_reason_is_to_be_checked_and_without_is_left_out():
    found = recommend(
        made(published("NCCL_P2P_LEVEL", "NVL", reason="Our switches are slow."), published("NCCL_NTHREADS", "512"))
    )

    assert taken(found, "NCCL_P2P_LEVEL").need == "check_first"
    assert left(found, "NCCL_NTHREADS").kind == "unreasoned"


@pytest.mark.parametrize("value", ["", "many", "-3", "9" * 5000, "٣"])
def test_a_number_of_channels_that_is_none_is_left_out(value: str):
    assert left(recommend(made(published("NCCL_MIN_CTAS", value))), "NCCL_MIN_CTAS").kind == "risky"


def test_a_setting_to_unset_is_what_happens_anyway():
    found = recommend(made(published("NCCL_TOPO_FILE", None, reason="It hurts here.")))

    assert left(found, "NCCL_TOPO_FILE").kind == "default"
    assert "It hurts here." in left(found, "NCCL_TOPO_FILE").reason


def test_a_gpu_that_cannot_have_so_many_channels_is_not_asked_to():
    blackwell = made(published("NCCL_MIN_CTAS", "32", reason="more"), gpu=GpuKind(model="B200", count=8, sm=100))

    assert left(recommend(blackwell, nccl="2.28.9"), "NCCL_MIN_CTAS").kind == "no_effect"
    assert taken(recommend(blackwell, nccl="2.27.7"), "NCCL_MIN_CTAS").value == "32"


def test_the_flush_stays_on_where_the_gpu_needs_it():
    older = made(published("NCCL_NET_FORCE_FLUSH", "0"), gpu=GpuKind(model="A100", count=8, sm=80))

    assert left(recommend(older, nccl="2.18.3"), "NCCL_NET_FORCE_FLUSH").kind == "risky"
    assert taken(recommend(made(*older.settings), nccl="2.18.3"), "NCCL_NET_FORCE_FLUSH").need == "helps"
    assert left(recommend(older, nccl="2.19.3"), "NCCL_NET_FORCE_FLUSH").kind == "default"


def test_what_an_rdma_network_over_ethernet_needs_and_nobody_publishes_is_asked_for():
    bare = structs.replace(made(), fabric=FabricKind(kind="RoCE"))

    assert [
        words.split(":")[0] for words in recommend(bare, nccl="2.20.5").cannot_tell if words.startswith("NCCL_")
    ] == [
        "NCCL_IB_GID_INDEX",
        "NCCL_IB_TC",
    ]


@pytest.mark.parametrize("nodes", [0, -1, 10**9])
def test_a_number_of_nodes_that_cannot_be_is_refused(nodes: int):
    with pytest.raises(InputError, match="nodes"):
        recommend(made(), nodes=nodes)
