"""Bounds of a ring over all GPUs of a node, and the link that sets them."""

import msgspec
import pytest

from busbw.model.topology import Gpu, NvLink, Topology
from busbw.topo.paths.ceilings import _chain_Bps, ring_ceilings

from .nodes import GEN4, four_gh200, four_h200, make_device, make_numa, shared_switches, switched_links, two_sockets


def rate_of_ring(node: Topology) -> float:
    return ring_ceilings(node)[0].busbw_Bps / 1e9


def test_over_switched_nvlink_a_ring_carries_what_one_gpus_links_do():
    ring, tree = ring_ceilings(four_h200())
    assert ring.busbw_Bps == pytest.approx(370.8e9)
    assert "NVSwitches" in ring.formula
    # Chains may end at any GPU, and the ends send in one direction only.
    assert tree.busbw_Bps == pytest.approx(370.8e9)
    assert tree.formula == (
        "2(n-1)/n x 247.2 GB/s each way: chains through 4 parts leave all but two of them twice; NVLinks of GPU0"
    )


def test_where_every_pair_is_linked_a_ring_carries_the_sum_of_a_gpus_links():
    assert rate_of_ring(four_gh200()) == pytest.approx(3 * 6 * 20.6)


def test_without_nvlink_the_link_between_sockets_limits():
    ring = ring_ceilings(two_sockets(nvlinks=False))[0]
    assert ring.busbw_Bps == 22e9
    assert ring.limit == "links between NUMA node 0 and 1 other"
    assert ring.formula == "over PCIe alone: out of NUMA node 0: 22.0 GB/s between NUMA nodes"


def test_an_intel_cpu_takes_its_share_of_a_pcie_link():
    node = msgspec.structs.replace(four_h200(), nvlinks=())
    ring = ring_ceilings(node)[0]
    assert ring.busbw_Bps == pytest.approx(48e9 / 1.2)
    assert ring.limit == "PCIe link of GPU0"


def test_behind_an_amd_cpu_a_pcie_link_is_whole():
    numa = (make_numa(-1, vendor="AuthenticAMD", family=25, model=17),)
    node = msgspec.structs.replace(four_h200(), nvlinks=(), numa=numa)
    assert rate_of_ring(node) == 48


def test_a_shared_uplink_limits_all_below_it():
    node = shared_switches()
    slow = tuple(
        msgspec.structs.replace(device, link_width=4) if device.bus_id.endswith(":01:00.0") else device
        for device in node.devices
    )
    ring = ring_ceilings(msgspec.structs.replace(node, devices=slow))[0]
    assert ring.busbw_Bps == 6e9
    assert ring.limit == "PCIe link of switch 0000:01:00.0"
    assert rate_of_ring(node) == 16


def test_pairs_of_gpus_with_a_bridge_are_limited_by_what_joins_the_pairs():
    gpus = tuple(Gpu(bus_id=f"000{place}:00:00.0", dev=place, sm=80) for place in range(4))
    node = Topology(
        numa=tuple(make_numa(place, vendor="AuthenticAMD") for place in range(4)),
        devices=tuple(make_device(gpu.bus_id, "gpu", numa=place, link_speed=GEN4) for place, gpu in enumerate(gpus)),
        gpus=gpus,
        nvlinks=tuple(
            NvLink(gpu=gpus[one].bus_id, target=gpus[other].bus_id, count=12, target_class="0x030200")
            for one, other in ((0, 1), (1, 0), (2, 3), (3, 2))
        ),
    )
    ring = ring_ceilings(node)[0]
    assert ring.busbw_Bps == 48e9
    assert ring.limit == "PCIe links of GPU0, GPU1"


def test_pairs_with_many_links_are_limited_by_the_few_that_lead_out():
    gpus = tuple(Gpu(bus_id=f"000{place}:00:00.0", dev=place, gcn="gfx90a") for place in range(4))
    counts = {(0, 1): 4, (2, 3): 4, (0, 2): 1, (1, 3): 1}
    node = Topology(
        numa=(make_numa(0, vendor="AuthenticAMD"),),
        devices=tuple(make_device(gpu.bus_id, "gpu", numa=0, link_speed=GEN4) for gpu in gpus),
        gpus=gpus,
        nvlinks=tuple(
            NvLink(gpu=gpus[one].bus_id, target=gpus[other].bus_id, count=count, kind="xgmi")
            for pair, count in counts.items()
            for one, other in (pair, pair[::-1])
        ),
    )
    assert ring_ceilings(node)[0].formula == "XGMI links out of GPU0, GPU1: 72.0 GB/s"


def test_a_bridge_between_two_gpus_leads_to_one():
    node = msgspec.structs.replace(four_h200(), gpus=four_h200().gpus[:2], nvlinks=())
    one, two = (gpu.bus_id for gpu in node.gpus)
    links = tuple(NvLink(gpu=a, target=b, count=4, target_class="0x030000") for a, b in ((one, two), (two, one)))
    assert ring_ceilings(msgspec.structs.replace(node, nvlinks=links))[0].formula == (
        "NVLinks of one GPU to 1 GPU: 82.4 GB/s"
    )


def test_nvlinks_to_the_cpu_carry_what_pcie_does_not():
    gpus = tuple(Gpu(bus_id=f"000{place}:00:00.0", dev=place, sm=70) for place in range(4))
    node = Topology(
        numa=tuple(make_numa(place, architecture="ppc64", vendor=None) for place in range(2)),
        devices=tuple(
            make_device(gpu.bus_id, "gpu", numa=place // 2, link_speed="8 GT/s", link_width=4)
            for place, gpu in enumerate(gpus)
        ),
        gpus=gpus,
        nvlinks=tuple(NvLink(gpu=gpu.bus_id, target="0006:00:00.0", count=3, target_class="0x068001") for gpu in gpus),
    )
    assert rate_of_ring(node) == 32
    joined = tuple(
        NvLink(gpu=gpus[one].bus_id, target=gpus[other].bus_id, count=3, target_class="0x030200")
        for one, other in ((0, 1), (1, 0), (2, 3), (3, 2))
    )
    ring = ring_ceilings(msgspec.structs.replace(node, nvlinks=(*node.nvlinks, *joined)))[0]
    assert ring.formula == "out of NUMA node 0: 32.0 GB/s between NUMA nodes"


def test_links_to_the_gpu_itself_carry_nothing():
    node = msgspec.structs.replace(four_h200(), nvlinks=())
    own = tuple(NvLink(gpu=gpu.bus_id, target=gpu.bus_id, count=12, target_class="0x030200") for gpu in node.gpus)
    with_own = ring_ceilings(msgspec.structs.replace(node, nvlinks=own))
    assert [ceiling.busbw_Bps for ceiling in with_own] == [ceiling.busbw_Bps for ceiling in ring_ceilings(node)]


def test_a_single_gpu_and_none_have_no_ring():
    node = four_h200()
    assert ring_ceilings(msgspec.structs.replace(node, gpus=node.gpus[:1], devices=node.devices[:1])) == ()
    assert ring_ceilings(Topology()) == ()


def test_over_two_gpus_a_tree_is_as_good_as_a_ring():
    node = four_h200()
    two = msgspec.structs.replace(node, gpus=node.gpus[:2], nvlinks=node.nvlinks[:2])
    ring, tree = ring_ceilings(two)
    assert ring.busbw_Bps == tree.busbw_Bps


def pairs_on_two_sockets(model: int = 143) -> Topology:
    """Return two pairs of GPUs with bridges, a pair on each socket of Sapphire Rapids."""
    gpus = tuple(Gpu(bus_id=f"000{place}:00:00.0", dev=place, sm=90) for place in range(4))
    return Topology(
        numa=tuple(make_numa(place, model=model) for place in range(2)),
        devices=tuple(make_device(gpu.bus_id, "gpu", numa=place // 2) for place, gpu in enumerate(gpus)),
        gpus=gpus,
        nvlinks=tuple(
            NvLink(gpu=gpus[one].bus_id, target=gpus[other].bus_id, count=12, target_class="0x030200")
            for one, other in ((0, 1), (1, 0), (2, 3), (3, 2))
        ),
    )


def test_a_chain_crosses_the_link_between_sockets_once():
    ring, tree = ring_ceilings(pairs_on_two_sockets())
    assert ring.busbw_Bps == 22e9
    # 2(n-1)/n of the link; NCCL plans two channels of 20 there, which is 30 of bus bandwidth.
    assert tree.busbw_Bps == pytest.approx(33e9)
    assert tree.formula == (
        "2(n-1)/n x 22.0 GB/s each way: a chain crosses this once; out of NUMA node 0: 22.0 GB/s between NUMA nodes"
    )
    assert tree.limit == "links between NUMA node 0 and 1 other"


def test_a_wider_link_between_sockets_leaves_what_the_slots_carry():
    ring, tree = ring_ceilings(pairs_on_two_sockets(model=207))
    assert (ring.busbw_Bps, tree.busbw_Bps) == (40e9, pytest.approx(60e9))
    assert ring.limit == "links between NUMA node 0 and 1 other"


def test_a_weak_gpu_ends_every_chain_and_holds_up_every_ring():
    node = two_sockets(gpus_each=2)
    links = (*switched_links(node.gpus[:1], 6), *switched_links(node.gpus[1:], 18))
    ring, tree = ring_ceilings(msgspec.structs.replace(node, nvlinks=links))
    assert ring.busbw_Bps == pytest.approx(6 * 20.6e9)
    assert tree.busbw_Bps == pytest.approx(2 * 3 / 4 * 6 * 20.6e9)


def test_ways_that_nccl_does_not_take_do_not_count():
    # NVLinks in a row: only its ends reach each other over PCIe.
    node = two_sockets(gpus_each=2)
    row = tuple(
        NvLink(gpu=node.gpus[one].bus_id, target=node.gpus[other].bus_id, count=6, target_class="0x030200")
        for one, other in ((0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2))
    )
    ring = ring_ceilings(msgspec.structs.replace(node, nvlinks=row))[0]
    assert ring.formula == "out of GPU0: 22.0 GB/s between NUMA nodes + 123.6 GB/s of NVLinks"


@pytest.mark.parametrize("outs", [[1.0] * 2, [1.0] * 8, [4.0, 1.0, 1.0, 4.0], [3.0, 2.0, 1.5, 1.2, 1.0]])
def test_what_chains_carry_is_what_their_best_mixture_does(outs: list[float]):
    # Every part is the end of a share of all chains, in all twice; a part that ends a share e is left 2 - e times.
    def fits(rate: float) -> bool:
        shares = [max(0.0, 2 - out / rate) for out in outs]
        return sum(shares) <= 2 + 1e-9 and max(shares) <= 1 + 1e-9

    rate = _chain_Bps(outs)
    assert fits(rate)
    assert not fits(rate * 1.001)
