"""GPUs and NICs of a node, each by itself: what its link carries, what others of its kind reach, what came back."""

import msgspec
import pytest

from busbw.check.judging import judge_nodes
from busbw.check.parts import link_limit
from busbw.limits.rates import narrowest
from busbw.model.check.screening import NodeReading, ScreenedNodes, SlotLink

from .made import node, profile

LINK = 'measure = "to_gpu"\nbelow_link_percent = 35'
PEERS = 'measure = "nic"\nbelow_peers_percent = 10'


def link(bus_id, speed="32.0 GT/s PCIe", lanes=16, *, now="32.0 GT/s PCIe"):
    return SlotLink(bus_id=bus_id, speed=now, width=lanes, most_speed=speed, most_width=lanes)


WAY = (link("0000:5d:00.0"), link("0000:5c:00.0"), link("0000:5a:01.0"))


def gpu(number, *rates_Bps, way=WAY):
    return NodeReading(measure="to_gpu", samples=rates_Bps, partner=f"GPU {number}", way=way)


def nic(number, rate_Bps):
    return NodeReading(measure="nic", samples=(rate_Bps,), partner=f"mlx5_{number}")


def answer(asked, *readings, others=()):
    found = judge_nodes(ScreenedNodes(nodes=(node("n0", None, *readings), *others)), asked, {})
    return found[0]


def test_a_gpu_far_below_its_link_is_named_and_its_neighbours_are_not():
    found = answer(profile(LINK), gpu(0, 50e9, 55e9), gpu(1, 25e9, 26e9), gpu(2, 42e9))

    assert [each.code for each in found.findings] == ["CHK006"]
    assert "copying to GPU 1 on n0" in found.findings[0].title
    assert "59 % below 63.0 GB/s (PCIe 5 x16, 32 GT/s x 16 x 128/130)" in found.findings[0].evidence
    assert found.outcome == "error"


def test_the_narrowest_link_on_the_way_is_the_limit_and_not_the_speed_it_runs_at():
    # A slot of generation 4 holds a card of generation 5: 25 GB/s are all that can be.
    slot = (link("0000:5d:00.0"), link("0000:5c:00.0", "16.0 GT/s PCIe"))
    assert answer(profile(LINK), gpu(0, 25e9, way=slot)).findings == ()
    # The link came up at a lower speed than both its ends could.
    trained = (link("0000:5d:00.0", now="8.0 GT/s PCIe"), link("0000:5c:00.0"))
    (made,) = answer(profile(LINK), gpu(0, 13e9, way=trained)).findings
    assert "its link runs at 8.0 GT/s PCIe x16" in made.evidence


@pytest.mark.parametrize(
    "way",
    [
        (),
        # A virtual machine shows the card and not what it stands in.
        WAY[:1],
        (WAY[0], SlotLink(bus_id="0000:5c:00.0")),
        (SlotLink(bus_id="0000:5d:00.0"), WAY[1]),
        (WAY[0], link("0000:5c:00.0", "99.0 GT/s PCIe")),
        (WAY[0], link("0000:5c:00.0", "fast")),
    ],
)
def test_where_both_ends_of_a_link_are_not_shown_there_is_no_limit(way):
    assert link_limit(way) is None
    assert answer(profile(LINK), gpu(0, 1e9, way=way)).findings == ()


def test_rates_of_links_are_those_of_their_generation():
    assert narrowest([("8.0 GT/s PCIe", 16)]).rate_Bps == pytest.approx(15.75e9, rel=1e-3)
    assert narrowest([("16.0 GT/s", 8), ("32.0 GT/s PCIe", 16)]).rate_Bps == pytest.approx(15.75e9, rel=1e-3)
    assert narrowest([]) is None


def test_one_nic_of_eight_that_sends_less_is_named_on_one_node_alone():
    found = answer(profile(PEERS), *(nic(number, 40e9 if number == 5 else 48e9) for number in range(8)))

    assert [each.title for each in found.findings] == [
        "sending through mlx5_5 on n0 is worse than on others of its kind"
    ]
    assert "320 Gb/s against 384 Gb/s, the median of 7 others of its kind: 17 % less" in found.findings[0].evidence


def test_a_node_with_one_nic_is_held_against_the_others():
    others = [node(f"n{number}", None, nic(0, 48e9)) for number in range(1, 5)]

    assert [each.code for each in answer(profile(PEERS), nic(0, 40e9), others=others).findings] == ["CHK002"]
    assert answer(profile(PEERS), nic(0, 40e9), others=others[:2]).findings == ()


def test_the_least_rate_is_asked_of_every_part():
    asked = profile('measure = "nic"\nat_least = "350Gb/s"')

    found = answer(asked, nic(0, 48e9), nic(1, 43e9))

    assert [each.code for each in found.findings] == ["CHK001"]
    assert "mlx5_1" in found.findings[0].title


def test_a_gpu_that_changes_what_is_copied_to_it_is_an_error():
    spoiled = msgspec.structs.replace(node("n0", 1e9), changed=("GPU 3 (0000:5d:00.0)",))

    (found,) = judge_nodes(ScreenedNodes(nodes=(spoiled,)), profile(), {})

    assert found.outcome == "error"
    assert [each.title for each in found.findings] == [
        "what was copied to GPU 3 (0000:5d:00.0) of n0 came back changed"
    ]
