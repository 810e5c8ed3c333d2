"""What NCCL counts for PCIe links, NVLinks and links between CPUs."""

import pytest

from busbw.model.topology import NumaNode
from busbw.topo.buses import generation, is_known_speed, lane_units, link_Bps, speed_text, transfer_GTps
from busbw.topo.paths.graph import LOCAL_Bps, cpu_link_Bps, nvlink_Bps


@pytest.mark.parametrize(
    ("speed", "width", "rate"),
    [
        ("8.0 GT/s PCIe", 16, 12),
        ("16.0 GT/s PCIe", 16, 24),
        ("16 GT/s", 16, 24),
        ("32.0 GT/s PCIe", 16, 48),
        ("32.0 GT/s PCIe", 8, 24),
        ("64.0 GT/s PCIe", 16, 96),
        ("2.5 GT/s PCIe", 4, 0.75),
        ("2.5 GT/s", 1, 0.1875),
    ],
)
def test_a_link_counts_its_width_times_its_generation(speed: str, width: int, rate: float) -> None:
    assert link_Bps(speed, width) == pytest.approx(rate * 1e9)


@pytest.mark.parametrize("width", [0, None])
def test_a_link_without_a_width_counts_as_sixteen_lanes(width: int | None) -> None:
    assert link_Bps("32.0 GT/s PCIe", width) == 48e9


@pytest.mark.parametrize("speed", ["16.0 GT/s", "64 GT/s", "Unknown", "", " 16 GT/s", "Gen4", None])
def test_a_text_that_nccl_does_not_know_counts_as_the_third_generation(speed: str | None) -> None:
    assert lane_units(speed) == 60
    assert speed is None or not is_known_speed(speed)


@pytest.mark.parametrize("speed", ["16 GT/s", "16.0 GT/s", "16.0 GT/s PCIe"])
def test_every_spelling_of_a_rate_is_the_same_rate(speed: str) -> None:
    assert transfer_GTps(speed) == 16.0
    assert generation(16.0) == 4


@pytest.mark.parametrize("speed", ["Unknown", "", "16 GB/s", "16.0 GT/s PCIe 4", "1e9 GT/s", "١٦ GT/s x"])
def test_a_text_that_is_no_rate_has_none(speed: str) -> None:
    assert transfer_GTps(speed) is None


@pytest.mark.parametrize("rate_GTps", [2.5, 5.0, 8.0, 16.0, 32.0, 64.0])
def test_a_written_rate_is_one_that_nccl_knows(rate_GTps: float) -> None:
    assert is_known_speed(speed_text(rate_GTps))
    assert transfer_GTps(speed_text(rate_GTps)) == rate_GTps


@pytest.mark.parametrize(
    ("sm", "nccl", "rate"),
    [
        (60, (2, 28, 9), 18),
        (70, (2, 28, 9), 20),
        (80, (2, 28, 9), 20),
        (86, (2, 28, 9), 12),
        (89, (2, 28, 9), 20),
        (90, (2, 19, 4), 20),
        (90, (2, 20, 3), 20.6),
        (100, (2, 26, 5), 40),
        (100, (2, 27, 5), 40.1),
        (120, (2, 28, 9), 40.1),
        (None, (2, 28, 9), 20),
    ],
)
def test_an_nvlink_counts_what_its_gpu_and_its_nccl_say(sm: int | None, nccl: tuple[int, int, int], rate: float):
    assert nvlink_Bps(sm, nccl) == rate * 1e9


@pytest.mark.parametrize(
    ("vendor", "family", "model", "nccl", "rate"),
    [
        ("GenuineIntel", 6, 0x4F, (2, 28, 9), 6),
        ("GenuineIntel", 6, 0x55, (2, 28, 9), 10),
        ("GenuineIntel", 6, 143, (2, 28, 9), 22),
        ("GenuineIntel", 6, 207, (2, 28, 9), 40),
        ("GenuineIntel", 6, 207, (2, 25, 1), 10),
        ("GenuineIntel", None, None, (2, 28, 9), 6),
        ("AuthenticAMD", 25, 17, (2, 28, 9), 16),
        ("AuthenticAMD", 143, 49, (2, 18, 6), 5000),
        ("AuthenticAMD", 23, 49, (2, 31, 2), 16),
        ("AuthenticAMD", 25, 17, (2, 31, 2), 24),
        ("AuthenticAMD", 26, 2, (2, 31, 2), 32),
        ("AuthenticAMD", 175, 1, (2, 31, 2), 32),
        ("  Shanghai  ", 7, 0x5B, (2, 28, 9), 9),
        ("CentaurHauls", 7, 1, (2, 28, 9), 6),
        ("Somebody", 1, 1, (2, 28, 9), 5000),
    ],
)
def test_the_link_between_x86_processors_counts_by_vendor_and_model(
    vendor: str, family: int | None, model: int | None, nccl: tuple[int, int, int], rate: float
) -> None:
    numa = NumaNode(id=0, architecture="x86_64", vendor=vendor, family=family, model=model)
    assert cpu_link_Bps(numa, nccl) == rate * 1e9


def test_the_link_between_other_processors_counts_by_architecture():
    assert cpu_link_Bps(NumaNode(id=0, architecture="arm64")) == 6e9
    assert cpu_link_Bps(NumaNode(id=0, architecture="ppc64")) == 32e9
    assert cpu_link_Bps(NumaNode(id=0)) == LOCAL_Bps
