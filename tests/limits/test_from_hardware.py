"""Rates of captured hosts, and of GPUs by their names."""

from pathlib import Path

import pytest
from msgspec import structs

from busbw.api.machine import limit_of_host
from busbw.base.errors import InputError
from busbw.facts.platforms import all_platforms, facts_of_gpu, facts_of_gpus
from busbw.limits.rates import rates_of_gpus, rates_of_hardware
from busbw.machine.named import hardware_of_file
from busbw.model.host import Hardware, HostGpu, HostNvLink, HostPort

PLATFORMS = all_platforms()
FACTS = facts_of_gpus(PLATFORMS)
H100 = "NVIDIA H100 80GB HBM3"
HOST = Path(__file__).parents[1] / "hosts" / "vm-h100-x4" / "host.tar.gz"


def captured():
    return hardware_of_file(HOST)


def test_links_of_a_captured_host_are_counted_and_rated_as_published():
    rates = rates_of_hardware(captured(), FACTS[H100])
    assert rates.gpus == rates.island_gpus == 4
    # 18 links of 25 GB/s; the driver prints 26.56, the raw rate.
    assert rates.nvlink.rate_Bps == pytest.approx(450e9)
    assert "26.56" in rates.nvlink.figures
    assert [seen.share for seen in rates.attained if seen.part == "nvlink" and seen.algorithm is None] == [0.816]


def test_a_link_that_is_down_takes_its_part_away_and_is_named():
    hardware = captured()
    links = tuple(structs.replace(link, active=link.link != 3) for link in hardware.gpus[2].nvlinks)
    gpus = (*hardware.gpus[:2], structs.replace(hardware.gpus[2], nvlinks=links), hardware.gpus[3])
    rates = rates_of_hardware(structs.replace(hardware, gpus=gpus), FACTS[H100])
    assert rates.nvlink.rate_Bps == pytest.approx(17 * 25e9)
    assert "17 links up (GPU 2; others have 18)" in rates.nvlink.figures


def test_without_published_rates_those_of_the_driver_are_taken():
    rates = rates_of_hardware(captured(), None)
    assert rates.nvlink.rate_Bps == pytest.approx(18 * 26.562e9)
    assert "as the driver prints" in rates.nvlink.figures


def test_gpus_without_links_are_islands_of_one():
    gpus = tuple(HostGpu(index=number, bus_id=f"0000:0{number}:00.0") for number in range(4))
    rates = rates_of_hardware(Hardware(hostname="h", gpus=gpus), None)
    assert rates.island_gpus == 1
    assert rates.nvlink is None


def test_gpus_that_are_linked_in_pairs_only_are_not_joined():
    pairs = {0: 1, 1: 0, 2: 3, 3: 2}
    gpus = tuple(
        HostGpu(
            index=number,
            bus_id=f"0000:0{number}:00.0",
            nvlinks=(HostNvLink(link=0, rate_Bps=25e9, target=f"0000:0{other}:00.0", target_kind="gpu"),),
        )
        for number, other in pairs.items()
    )
    assert rates_of_hardware(Hardware(hostname="h", gpus=gpus), None).island_gpus == 1


def test_ports_that_are_down_and_ordinary_ethernet_do_not_count():
    ports = [
        HostPort(name=f"mlx5_{number}", port=1, bus_id=None, kind="InfiniBand", rate_bps=400e9, up=number != 3)
        for number in range(8)
    ]
    ports.append(HostPort(name="eth0", port=1, bus_id=None, kind="Ethernet", rate_bps=100e9, up=True))
    rates = rates_of_hardware(structs.replace(captured(), ports=tuple(ports)), FACTS[H100])
    assert rates.ports == 7
    assert rates.nic.rate_Bps == pytest.approx(50e9)


@pytest.mark.parametrize(
    ("name", "gpus", "rate_Bps"),
    [
        ("NVIDIA H200", 4, 450e9),
        ("NVIDIA GH200 120GB", 4, 450e9),
        ("NVIDIA GH200 120GB", 2, 150e9),
        ("NVIDIA A100-SXM4-80GB", 8, 300e9),
    ],
)
def test_a_name_tells_the_links(name, gpus, rate_Bps):
    rates = rates_of_gpus(FACTS[name], gpus)
    assert rates.nvlink.rate_Bps == pytest.approx(rate_Bps)
    assert rates.nic is None
    assert rates.assumptions


def test_a_name_that_nobody_has_tells_nothing():
    assert facts_of_gpu("NVIDIA Z1000", PLATFORMS) is None


def test_platforms_that_contradict_each_other_tell_nothing():
    h100 = [each for each in PLATFORMS if H100 in each.match.gpu_names]
    other = structs.replace(h100[0], nvlink=structs.replace(h100[0].nvlink, gpu_Bps=1e9))
    assert facts_of_gpu(H100, [*h100, other]) is None


def test_a_name_does_not_tell_how_a_rack_is_partitioned():
    facts = FACTS["NVIDIA GB200"]
    assert (facts.nvlink.domain_gpus, facts.across_nodes) == (None, True)
    assert (FACTS["NVIDIA B200"].nvlink.domain_gpus, FACTS["NVIDIA B200"].across_nodes) == (None, False)
    assert rates_of_gpus(facts, 4).nvlink.rate_Bps == pytest.approx(900e9)
    whole = [each for each in PLATFORMS if each.nvlink.domain_gpus == 72]
    assert facts_of_gpu("NVIDIA GB200", whole).nvlink.domain_gpus == 72


def test_what_was_seen_of_b200_is_not_what_was_seen_of_a_rack():
    shares = {
        name: {seen.algorithm: seen.share for seen in rates_of_gpus(FACTS[name], 4).attained if seen.part == "nvlink"}
        for name in ("NVIDIA B200", "NVIDIA GB200")
    }
    assert shares["NVIDIA B200"][None] == shares["NVIDIA GB200"]["ring"] == 0.755
    assert shares["NVIDIA B200"]["nvls"] > shares["NVIDIA GB200"]["nvls"]


def test_the_limit_of_a_captured_host_is_that_of_its_links():
    limit = limit_of_host(HOST, collective="all_reduce")
    assert {bound.busbw_Bps for bound in limit.bounds} == {450e9}
    with pytest.raises(InputError, match="5 of the GPUs of host1"):
        limit_of_host(HOST, gpus=5)
