"""What `busbw doctor --here` says of the network's features: the three answers, and what each rests on."""

import shlex

import msgspec
import pytest
from tests.probe.network_texts import SETTINGS, devinfo, transports

from busbw.api.diagnoses import examine_captured
from busbw.base.errors import InputError
from busbw.cli.compare import compare
from busbw.facts.network import fabric_features
from busbw.machine.health.network import takes_transport
from busbw.model.finding import NetworkFeature
from busbw.model.host import FoundLibrary, Snapshot
from busbw.store.snapshots import write_snapshot

from .nodes import BARE, EFA, SUPERCHIP, VIRTUAL, codes, examined, healthy, with_answer, with_files

_SHARP = FoundLibrary(name="libsharp_coll", path="/opt/sharp/lib/libsharp_coll.so.5", version=None, found_by="loader")


def devices(snapshot: Snapshot) -> list[str]:
    return sorted(
        {link.path.split("/")[4] for link in snapshot.links if link.path.startswith("/sys/class/infiniband/")}
    )


def told(snapshot: Snapshot, folder, **settings: str) -> dict[str, NetworkFeature]:
    node = msgspec.structs.replace(snapshot, environment={**snapshot.environment, **settings})
    return {feature.id: feature for feature in examined(node, folder).network}


def answers(feature: NetworkFeature) -> tuple[str, str, str]:
    return feature.available.answer, feature.switched_on.answer, feature.used.answer


@pytest.fixture
def node() -> Snapshot:
    """Return a virtual machine on InfiniBand whose tools say everything."""
    found = healthy(VIRTUAL)
    found = with_answer(found, "ibv_devinfo", devinfo(*devices(found)))
    found = with_answer(found, "ucx_info-devices", transports("rc_mlx5", "dc_mlx5", "ud_mlx5"))
    found = with_answer(found, "ucx_info-settings", SETTINGS)
    keys = {f"/sys/class/infiniband/{name}/ports/1/pkeys/0": "0x8023\n" for name in devices(found)}
    keys |= {f"/sys/class/infiniband/{name}/ports/1/pkeys/1": "0x7fff\n" for name in devices(found)}
    return with_files(found, keys)


def test_every_feature_is_told_with_its_evidence_and_nothing_is_found_wrong(node, tmp_path):
    diagnosis = examined(node, tmp_path)

    assert [feature.id for feature in diagnosis.network] == [each.id for each in fabric_features()]
    assert all(
        each.because for feature in diagnosis.network for each in (feature.available, feature.switched_on, feature.used)
    )
    assert codes(diagnosis) == []


def test_the_dc_transport_is_what_ucx_lists_and_what_its_setting_takes(node, tmp_path):
    assert answers(told(node, tmp_path)["dct"]) == ("yes", "yes", "cannot_tell")
    assert told(node, tmp_path, UCX_TLS="dc,sm,self")["dct"].used.answer == "yes"
    assert told(node, tmp_path, UCX_TLS="rc,sm,self")["dct"].used.answer == "no"
    assert told(node, tmp_path, UCX_TLS="rc,dc,sm,self")["dct"].used.answer == "cannot_tell"


def test_a_setting_in_a_file_of_ucx_counts_where_the_environment_has_none(node, tmp_path):
    filed = with_answer(node, "ucx_info-settings", SETTINGS.replace("UCX_TLS=all", "UCX_TLS=rc_x,self"))

    used = told(filed, tmp_path)["dct"].used

    assert (used.answer, used.because) == ("no", 'UCX_TLS = "rc_x,self" (ucx_info -c)')


@pytest.mark.parametrize(
    ("value", "takes"),
    [
        ("all", True), ("ib", True), ("dc", True), ("dc_x,self", True), ("\\dc_mlx5", True), ("rc,self", False),
        ("^dc", False), ("^ib", False), ("^tcp", True), ("", False),
    ],
)  # fmt: skip
def test_a_list_of_transports_is_read_as_ucx_does(value, takes):
    assert takes_transport(value, ("dc", "dc_x", "dc_mlx5")) is takes


def test_tag_matching_is_the_adapters_and_off_until_somebody_asks_for_it(node, tmp_path):
    found = told(node, tmp_path)["tag_matching"]

    assert answers(found) == ("yes", "no", "no")
    assert "max_num_tags 127" in found.available.because
    assert answers(told(node, tmp_path, UCX_RC_MLX5_TM_ENABLE="y")["tag_matching"]) == ("yes", "yes", "yes")


def test_sharp_is_the_fabrics_and_its_daemon_is_not_looked_for(node, tmp_path):
    without = told(node, tmp_path)["sharp"]
    there = msgspec.structs.replace(node, libraries=(*node.libraries, _SHARP))
    having = told(there, tmp_path, NCCL_COLLNET_ENABLE="1")["sharp"]

    assert answers(without) == ("cannot_tell", "no", "no")
    assert answers(having) == ("cannot_tell", "cannot_tell", "yes")
    assert "sharp_am" in (having.ask or "")


def test_of_shield_nothing_can_be_told_but_whom_to_ask(node, tmp_path):
    found = told(node, tmp_path)["shield"]

    assert answers(found) == ("cannot_tell",) * 3
    assert "shield_mode" in (found.ask or "")
    assert found.compare == ()


def test_a_partition_of_its_own_is_told_by_its_key(node, tmp_path):
    found = told(node, tmp_path)["partition_keys"]
    plain = with_files(node, {f"/sys/class/infiniband/{name}/ports/1/pkeys/0": "0xffff\n" for name in devices(node)})

    assert answers(found) == ("yes", "yes", "yes")
    assert "0x8023" in found.used.because
    assert answers(told(plain, tmp_path)["partition_keys"]) == ("yes", "no", "no")


def test_virtual_functions_are_told_by_their_adapters(node, tmp_path):
    pci = "/sys/bus/pci/devices"
    bare = healthy(BARE)
    addresses = {link.target.rpartition("/")[2] for link in bare.links if link.path.endswith("/device")}
    shown = {f"{pci}/{each}/device": "0x101b\n" for each in addresses}
    shown |= {f"{pci}/{each}/sriov_totalvfs": "8\n" for each in addresses}
    shown |= {f"{pci}/{each}/sriov_numvfs": "0\n" for each in addresses}

    assert answers(told(node, tmp_path)["sriov"]) == ("yes", "yes", "yes")
    assert answers(told(with_files(bare, shown), tmp_path)["sriov"]) == ("yes", "no", "no")


@pytest.mark.parametrize("name", [EFA, SUPERCHIP])
def test_other_fabrics_have_no_dc_transport_and_no_sharp(name, tmp_path):
    found = told(healthy(name), tmp_path)

    assert answers(found["dct"]) == ("no", "no", "no")
    assert answers(found["sharp"]) == ("no", "no", "no")
    assert answers(found["adaptive_routing"]) == ("yes", "yes", "yes")
    assert all("UCX" not in command for feature in found.values() for command in feature.compare)


def test_slingshot_matches_tags_in_hardware_unless_told_otherwise(tmp_path):
    assert answers(told(healthy(SUPERCHIP), tmp_path)["tag_matching"]) == ("yes", "yes", "yes")
    soft = told(healthy(SUPERCHIP), tmp_path, FI_CXI_RX_MATCH_MODE="software")["tag_matching"]
    assert answers(soft) == ("yes", "no", "no")


def test_what_the_tools_did_not_say_cannot_be_told(node, tmp_path):
    silent = node
    for name in ("ibv_devinfo", "ucx_info-devices", "ucx_info-settings"):
        silent = with_answer(silent, name, "")

    found = told(silent, tmp_path)

    assert found["multicast"].available.answer == "cannot_tell"
    assert found["dct"].switched_on.answer == "cannot_tell"
    assert found["tag_matching"].available.answer == "cannot_tell"


FAULTS = {
    "GPUDirect RDMA forbidden to NCCL": ("HOST026", {"NCCL_NET_GDR_LEVEL": "LOC"}),
    "GPUDirect RDMA forbidden to UCX": ("HOST026", {"UCX_IB_GPU_DIRECT_RDMA": "n"}),
    "SHARP without its library": ("HOST027", {"NCCL_COLLNET_ENABLE": "1"}),
    "GDRCopy without its module": ("HOST027", {"NCCL_GDRCOPY_ENABLE": "1"}),
    "an empty partition": ("HOST028", {"NCCL_IB_PKEY": "5"}),
    "a partition that it is a limited member of": ("HOST028", {"NCCL_IB_PKEY": "1"}),
    "a key that no port has": ("HOST028", {"NCCL_IB_PKEY_VALUE": "0x1234"}),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_setting_that_does_not_fit_the_network_is_found_and_nothing_else(fault, node, tmp_path):
    code, settings = FAULTS[fault]
    planted = msgspec.structs.replace(node, environment={**node.environment, **settings})

    assert set(codes(examined(planted, tmp_path))) == {code}


@pytest.mark.parametrize(
    "settings",
    [
        {"NCCL_NET_GDR_LEVEL": "SYS"},
        {"UCX_IB_GPU_DIRECT_RDMA": "try"},
        {"NCCL_COLLNET_ENABLE": "0", "HCOLL_ENABLE_SHARP": "0"},
        {"NCCL_GDRCOPY_ENABLE": "0"},
        {"NCCL_IB_PKEY": "0"},
        {"NCCL_IB_PKEY_VALUE": "0x0023"},
        {"UCX_TLS": "dc,sm,self", "UCX_RC_MLX5_TM_ENABLE": "y", "MV2_USE_MCAST": "1"},
    ],
)
def test_settings_that_fit_are_no_fault(settings, node, tmp_path):
    planted = msgspec.structs.replace(node, environment={**node.environment, **settings})

    assert codes(examined(planted, tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "output", "settings", "what"),
    [
        ("ibv_devinfo", devinfo("mlx5_ib0", tags=0), {"UCX_RC_MLX5_TM_ENABLE": "y"}, "hardware tag matching"),
        ("ibv_devinfo", devinfo("mlx5_ib0", groups=0), {"MV2_USE_MCAST": "1"}, "multicast"),
        ("ucx_info-devices", transports("rc_verbs", "ud_verbs"), {"UCX_TLS": "dc,sm,self"}, "the DC transport"),
    ],
)
def test_what_an_adapter_or_ucx_lacks_is_asked_for_in_vain(name, output, settings, what, node, tmp_path):
    planted = with_answer(node, name, output)
    planted = msgspec.structs.replace(planted, environment={**planted.environment, **settings})

    found = [each for check in examined(planted, tmp_path).checks for each in check.findings if each.code == "HOST027"]

    assert [what in each.title for each in found] == [True]


def test_every_comparison_that_is_offered_is_one_that_compare_takes():
    commands = [each.command for feature in fabric_features() for each in feature.compare]

    assert len(commands) > 8
    for command in commands:
        program, verb, *words = shlex.split(command)
        assert (program, verb) == ("busbw", "compare")
        made = compare.make_context("compare", words)
        assert len(made.params["settings"]) == 2


LOG = (
    "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
    "gpu34:23654:23684 [0] NCCL INFO CollNet 00/0 : 0 [receive] via COLLNET/SHARP/1/GDRDMA\n"
    "[1750940428.181226] [n1:2814548:0]      ucp_worker.c:1903 UCX  INFO    ucp_context_0 inter-node cfg#8 "
    "tag(dc_mlx5/mlx5_2:1 dc_mlx5/mlx5_0:1)\n"
)


def used(node: Snapshot, folder, text: str) -> dict[str, str]:
    (folder / "job.log").write_text(text)
    write_snapshot(folder / "host.tar", node)
    found = examine_captured(folder / "host.tar", logs=(str(folder / "job.log"),))
    return {feature.id: feature.used.answer for feature in found.network}


def test_a_log_says_what_its_job_used(node, tmp_path):
    found = used(node, tmp_path, LOG)

    assert (found["gpudirect"], found["sharp"], found["dct"]) == ("yes", "yes", "yes")


def test_a_log_of_other_ways_says_that_they_were_not_used(node, tmp_path):
    found = used(node, tmp_path, LOG.replace("/GDRDMA", "").replace("dc_mlx5", "rc_mlx5").replace("COLLNET", "X"))

    assert (found["gpudirect"], found["sharp"], found["dct"]) == ("no", "no", "no")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing of NCCL\n",
        "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0\n",
        "[1.2] [n:1:0] ucp_worker.c:1783 UCX  INFO  ep_cfg[1]: tag(sysv/memory cma/memory)\n",
    ],
)
def test_a_log_that_does_not_tell_leaves_it_to_the_settings(text, node, tmp_path):
    found = used(node, tmp_path, text)

    assert (found["gpudirect"], found["dct"]) == ("cannot_tell", "cannot_tell")


def test_a_log_that_is_not_there_is_said(node, tmp_path):
    write_snapshot(tmp_path / "host.tar", node)

    with pytest.raises(InputError, match="there is no"):
        examine_captured(tmp_path / "host.tar", logs=(str(tmp_path / "none.log"),))
