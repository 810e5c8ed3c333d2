"""Platforms in plain numbers."""

import json
import re

import pytest
from click.testing import CliRunner

from busbw.api.machine import limit_of_platform
from busbw.base.errors import BusbwError, ExitCode, InputError
from busbw.cli.command import busbw
from busbw.facts.expectations import AttainedRow, attained_on, attained_rows
from busbw.facts.platforms import find_platform
from busbw.limits.rates import rates_of_platform
from busbw.model.platform import Cpu, GpuKind, GpuPlace, NicKind, NvLinkKind, PcieKind, Platform, Variant


def make_platform(**changes: object) -> Platform:
    fields: dict[str, object] = {"id": "made", "names": ("Made",), "provider": "test", "kind": "gpu"}
    return Platform(**{**fields, "gpu": GpuKind(count=8), **changes})  # type: ignore[arg-type]


def places(*links: dict[str, int]) -> tuple[GpuPlace, ...]:
    return tuple(GpuPlace(gpu=number, bus_id=f"{number}", nvlinks=each) for number, each in enumerate(links))


@pytest.mark.parametrize(
    ("changes", "island"),
    [
        ({"nvlink": NvLinkKind(switched=True)}, 8),
        ({"nvlink": NvLinkKind(gpu_Bps=450e9, pair_Bps=150e9)}, 4),
        ({"nvlink": NvLinkKind(links_per_gpu=7, links_per_pair=1)}, 8),
        ({"nvlink": NvLinkKind(gpu_Bps=300e9)}, 8),
        ({"nvlink": NvLinkKind(generation=3)}, 2),
        ({}, 1),
        ({"gpu": GpuKind(count=4), "gpus": places({"1": 4}, {"0": 4}, {"3": 4}, {"2": 4})}, 2),
        ({"gpu": GpuKind(count=3), "gpus": places({"1": 4}, {"0": 4, "2": 4}, {"1": 4})}, 3),
        ({"gpu": GpuKind(count=2), "nvlink": NvLinkKind(generation=4), "gpus": places({"nvs": 4}, {"nvs": 4})}, 2),
    ],
)
def test_gpus_that_are_linked_are_found(changes: dict[str, object], island: int) -> None:
    assert rates_of_platform(make_platform(**changes)).island_gpus == island


def test_some_gpus_bring_the_nics_that_are_nearest_to_them() -> None:
    near = tuple(GpuPlace(gpu=number, nics=(f"nic{number // 2}",)) for number in range(8))
    rates = rates_of_platform(make_platform(gpus=near, nic=NicKind(ports=4, port_bps=200e9)), gpus=3)
    assert rates.ports == 2
    assert any("nearest to GPUs 0 to 2" in words for words in rates.assumptions)
    shared = rates_of_platform(make_platform(nic=NicKind(ports=4, port_bps=200e9)), gpus=3)
    assert shared.ports == 2
    assert any("3/8 of 4" in words for words in shared.assumptions)


def test_some_gpus_of_a_mesh_have_links_to_each_other_only() -> None:
    mesh = NvLinkKind(gpu_Bps=450e9, pair_Bps=150e9, switched=False)
    rates = rates_of_platform(make_platform(gpu=GpuKind(count=4), nvlink=mesh), gpus=2)
    assert rates.nvlink is not None
    assert rates.nvlink.rate_Bps == 150e9


def test_a_size_is_known_by_its_name_and_else_the_largest_is_assumed() -> None:
    sizes = (Variant(sku="Small", gpus=1, nic_bps=40e9), Variant(sku="Big", gpus=8))
    made = make_platform(variants=sizes, nic=NicKind(ports=1, port_bps=80e9), nvlink=NvLinkKind(switched=True))
    small = rates_of_platform(made, name="small")
    assert small.gpus == 1
    assert small.nic is not None
    assert small.nic.rate_Bps == 5e9
    assert any("Small, Big" in words for words in rates_of_platform(made).assumptions)


def test_ports_of_one_card_share_its_slot() -> None:
    limit = limit_of_platform("oci-bm-gpu4-8", nodes=2)
    (slots,) = (part for part in limit.parts if part.name == "nic_slot")
    assert slots.rate_Bps == pytest.approx(8 * 31.508e9, rel=1e-3)


@pytest.mark.parametrize(
    ("platform", "gpus", "cause"),
    [
        (make_platform(), 9, "9 of the GPUs"),
        (make_platform(), 0, "0 of the GPUs"),
        (make_platform(gpu=GpuKind()), None, "is not known"),
        (make_platform(kind="cpu", cpu=Cpu(cores=4)), 2, "has no GPUs"),
    ],
)
def test_gpus_that_there_are_not_are_refused(platform: Platform, gpus: int | None, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        rates_of_platform(platform, gpus=gpus)


def test_a_slot_that_nobody_knows_is_none() -> None:
    assert rates_of_platform(make_platform(pcie=PcieKind(generation=9, width=16))).slot is None


def test_every_constant_says_what_was_seen_and_where() -> None:
    for row in attained_rows():
        assert 0 < row.share < 1
        assert row.source
        assert any(character.isdigit() for character in row.words)


@pytest.mark.parametrize("row", attained_rows(), ids=lambda row: f"{row.part}-{row.algorithm}-{row.share}")
def test_a_share_is_the_quotient_that_its_words_give(row: AttainedRow) -> None:
    found = re.match(r"(?:([\d.]+) to )?([\d.]+) of ([\d.]+) G", row.words)
    assert found is not None
    low, high, whole = (float(each) for each in (found[1] or found[2], found[2], found[3]))
    assert low / whole - 0.002 <= row.share <= high / whole + 0.002


# What was fitted to the best figure of a platform's own network, and the platform.
FITTED = ["aws-p5en", "aws-p6-b200", "gcp-a3-high", "gcp-a3-mega", "gcp-a3-ultra"]


@pytest.mark.parametrize("name", FITTED)
def test_a_fitted_rate_of_nics_gives_the_figure_that_it_was_taken_from(name: str) -> None:
    platform = find_platform(name).platform
    assert platform.nic.ports
    assert platform.nic.port_bps
    seen = next(each for each in attained_on(platform) if each.part == "nic")
    best = max(rate for sweep in platform.sweeps if sweep.nodes > 1 for _, rate in sweep.points)
    assert seen.fitted
    assert seen.share * platform.nic.ports * platform.nic.port_bps / 8e9 == pytest.approx(best, rel=1e-3)


def test_each_generation_of_efa_has_its_own_rate() -> None:
    names = ("aws-p4de", "aws-p5", "aws-p5en", "aws-p6-b200")
    shares = [
        [seen.share for seen in attained_on(find_platform(name).platform) if seen.part == "nic"] for name in names
    ]
    assert shares == [[0.85], [0.9776], [0.9247], [0.9545]]


def test_nothing_is_expected_of_trees_between_racks_by_what_one_rack_reached() -> None:
    one, twenty = (
        {bound.algorithm: bound.attained_Bps for bound in limit_of_platform("gb200-nvl72", nodes=nodes).bounds}
        for nodes in (18, 360)
    )
    assert one["nvls"]
    assert twenty["nvlstree"] is None


def test_physical_and_attained_never_mix() -> None:
    for bound in limit_of_platform("azure-nd-h100-v5", nodes=2).bounds:
        if bound.attained_Bps is not None and bound.busbw_Bps is not None:
            assert bound.attained_Bps < bound.busbw_Bps
        if bound.algorithm == "collnet":
            assert bound.attained_Bps is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["azure-nd-h100-v5", "--nodes", "2"], ExitCode.OK),
        (["azure-nd-h100-v5", "--nodes", "2", "--collective", "all_reduce", "--algorithm", "tree"], ExitCode.OK),
        (["azure-hbv4", "--nodes", "2"], ExitCode.OK),
        (["azure-hbv4"], ExitCode.CANNOT_TELL),
        (["Standard_NC80adis_H100_v5"], ExitCode.CANNOT_TELL),
        (["generic", "--gpus", "8", "--nodes", "2"], ExitCode.CANNOT_TELL),
    ],
)
def test_the_exit_code_says_whether_it_can_be_told(arguments: list[str], code: ExitCode) -> None:
    for extra in ([], ["--json"]):
        done = CliRunner().invoke(busbw, ["limit", "--platform", *arguments, *extra])
        assert done.exit_code == code, done.output
        if extra:
            assert json.loads(done.stdout)["bounds"]
        else:
            assert "cannot tell" in done.stdout or code == ExitCode.OK


def test_what_nccl_plans_stands_below_the_table_and_is_said_to_be_no_limit() -> None:
    done = CliRunner().invoke(busbw, ["limit", "--platform", "azure-nd-h100-v5", "--collective", "all_reduce"])
    assert (
        "NCCL 2.28.9 plans for ring: 12 channels x 30 GB/s, 360.0 GB/s of bus bandwidth, over paths up to NVL "
        "(its own rates, no limit)" in done.stdout
    )
    several = CliRunner().invoke(busbw, ["limit", "--platform", "azure-nd-h100-v5", "--nodes", "2"])
    assert "plans for" not in several.stdout


@pytest.mark.parametrize("arguments", [["nonsense"], ["azure-ndv4", "--nodes", "0"], ["azure-ndv4", "--gpus", "99"]])
def test_bad_arguments_are_one_clear_error(arguments: list[str]) -> None:
    done = CliRunner().invoke(busbw, ["limit", "--platform", *arguments])
    assert isinstance(done.exception, BusbwError)
    assert done.exception.exit_code == ExitCode.BAD_INPUT


@pytest.mark.parametrize(
    ("name", "nodes", "hint"), [("azure-ndv4", 2, "--collective sendrecv"), ("azure-hbv4", 1, "--nodes 2")]
)
def test_a_table_without_a_row_is_an_error_that_says_why(name: str, nodes: int, hint: str):
    with pytest.raises(InputError, match="no bound is known for bandwidth on") as raised:
        limit_of_platform(name, nodes=nodes, collective="bandwidth")
    assert hint in (raised.value.hint or "")
