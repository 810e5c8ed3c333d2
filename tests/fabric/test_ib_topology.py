"""What ibnetdiscover, iblinkinfo and opensm print: understood, placed, or refused with the line and the cause."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.base.errors import InputError
from busbw.cli.command import busbw
from busbw.fabric.ib_links import (
    described,
    hop_count,
    ib_hosts,
    link_speed,
    placed_by_links,
    placed_by_text,
    slow_links,
)
from busbw.fabric.ib_topology import IbFabric, is_ib_topology, read_ib_topology
from busbw.fabric.places import Endpoint, flat

SAMPLES = Path(__file__).parent / "samples"
SLURM = "SwitchName=leaf0 Nodes=n[0-1]\nSwitchName=leaf1 Nodes=n[2-3]\n"


def sample(name: str) -> IbFabric:
    return read_ib_topology((SAMPLES / name).read_text(), name)


def nodes(*names: str) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(node=name) for name in names)


def test_hosts_adapters_and_links_are_read_once_each() -> None:
    fabric = sample("ibnetdiscover-hdr.txt")
    assert len(fabric.links) == 14
    hosts = ib_hosts(fabric)
    assert list(hosts.adapters) == ["node01", "node02", "node03", "node04"]
    assert [each.device for each in hosts.adapters["node01"]] == ["mlx5_0", "mlx5_1"]
    # The aggregation node of the switch is no host; a card without a description is one that has no name.
    assert hosts.unnamed == 1


def test_two_rails_stand_below_two_leaves_and_a_whole_host_below_both() -> None:
    fabric = sample("ibnetdiscover-hdr.txt")
    rails = flat([Endpoint(node=name, rail=rail) for name in ("node01", "node02") for rail in ("mlx5_0", "mlx5_1")])
    placed = placed_by_links(rails, fabric)
    assert placed.leaves == (0, 1, 0, 1)
    assert placed.leaf_names == ("leaf1", "leaf2")
    assert [placed.hops(0, other) for other in (2, 1)] == [0, 1]
    whole = placed_by_links(flat(nodes("node01", "node02")), fabric)
    assert whole.leaves == (0, 0)
    assert whole.leaf_names == ("leaf1-and-1-more",)


def test_hops_are_cables_on_the_shortest_way() -> None:
    fabric = sample("opensm-subnet.lst")
    assert hop_count(fabric, "n0", "n1") == 2
    assert hop_count(fabric, "n0", "n3") == 4
    with pytest.raises(InputError, match="no host x"):
        hop_count(fabric, "n0", "x")


def test_a_link_with_fewer_lanes_or_a_lower_speed_than_most_at_its_ends_is_found() -> None:
    found = slow_links(sample("ibnetdiscover-hdr.txt"))
    assert [each.code for each in found] == ["FAB013", "FAB013"]
    assert (
        "node03 mlx5_0 port 1 to MF0;leaf1:MQM8700/U1 port 3 runs at 2x HDR, most like it at 4x HDR" in found[0].title
    )
    assert "leaf2" in found[1].title
    assert "4x EDR" in found[1].title
    (one,) = slow_links(sample("iblinkinfo-hdr.txt"))
    assert "node04 mlx5_0 port 1" in one.title
    assert "4x FDR" in one.title


def test_links_that_are_all_alike_are_no_finding_whatever_their_speed() -> None:
    text = (SAMPLES / "ibnetdiscover-hdr.txt").read_text().replace("2xHDR", "4xHDR").replace("4xEDR", "4xHDR")
    assert slow_links(read_ib_topology(text, "t")) == ()
    half = text.replace("4xHDR", "2xHDR")
    assert slow_links(read_ib_topology(half, "t")) == ()


def test_iblinkinfo_and_opensm_give_the_same_kind_of_value() -> None:
    fabric = sample("iblinkinfo-hdr.txt")
    assert len(fabric.links) == 4
    assert {link_speed(each) for each in fabric.links} == {"4x HDR", "4x FDR"}
    assert placed_by_links(flat(nodes("node01", "node02.example.org")), fabric).leaf_names == ("leaf1",)
    speeds = [link_speed(each) for each in sample("opensm-subnet.lst").links]
    assert sorted(speeds) == ["1x QDR", "4x EDR", *["4x QDR"] * 4, *["4x SDR"] * 2]


@pytest.mark.parametrize(
    ("description", "says"),
    [
        ("node07 mlx5_0", ("node07", "mlx5_0")),
        ("node07", ("node07", None)),
        ("'node07 HCA-1'", ("node07", "HCA-1")),
        ("MT4129 ConnectX7   Mellanox Technologies", None),
        ("Mellanox Technologies Aggregation Node", None),
        ("localhost mlx5_0", None),
        ("(none) mlx5_0", None),
        ("", None),
    ],
)
def test_a_description_names_a_host_or_nothing(description: str, says: tuple[str, str | None] | None) -> None:
    assert described(description) == says


def test_numbers_of_older_descriptions_are_those_of_devices() -> None:
    fabric = sample("opensm-subnet.lst")
    places = flat([Endpoint(node=name, rail="mlx5_0") for name in ("n0", "n2")])
    assert placed_by_links(places, fabric).leaves == (0, 1)


def test_a_host_that_is_missing_is_named_with_what_may_be_why() -> None:
    with pytest.raises(InputError, match="1 tested host not in the topology: node09") as caught:
        placed_by_links(flat(nodes("node01", "node09")), sample("ibnetdiscover-hdr.txt"))
    assert "1 adapter without a host's name" in (caught.value.hint or "")


def test_what_a_file_is_follows_from_its_content() -> None:
    places = flat(nodes("n0", "n3"))
    assert placed_by_text(places, SLURM, "fabric.txt").fabric is None
    known = placed_by_text(places, (SAMPLES / "opensm-subnet.lst").read_text(), "fabric.txt")
    assert known.fabric is not None
    assert known.places.leaves == placed_by_text(places, SLURM, "fabric.txt").places.leaves
    assert not is_ib_topology(SLURM)
    assert all(is_ib_topology(path.read_text()) for path in SAMPLES.iterdir() if not path.name.startswith("ethtool-"))


def test_a_sweep_is_planned_with_the_leaves_and_keeps_what_its_links_show() -> None:
    asked = ["fabric", "--hosts", "node[01-04]", "--topology", str(SAMPLES / "ibnetdiscover-hdr.txt")]
    done = CliRunner().invoke(busbw, [*asked, "--nics", "mlx5_0,mlx5_1", "--plan", "--json"])
    assert done.exit_code == 0, done.output
    planned = json.loads(done.stdout)["fabric"]
    assert planned["leaves"] == [0, 1] * 4
    assert planned["leaf_names"] == ["leaf1", "leaf2"]
    assert [each["code"] for each in planned["links"]] == ["FAB013", "FAB013"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no link in it"),
        ("vendid=0x0\n", "no link in it"),
        ('Switch\t8 "S-1"\t\t# "leaf" port 0\nhello\n', "no line of ibnetdiscover"),
        ('[1]\t"S-1"[2]\n', "no line of ibnetdiscover"),
        ('Switch\t8 "S-1"\n[1]\t"H-1"[1]\n', "which no line describes"),
        ('Switch\t8 "S-1"\n[1]\t"S-1"[1]\n', "linked to itself"),
        ('Switch\t8 "S-1"\n[1]\t"H-1"[1]\n[1]\t"H-2"[1]\n', "has two links"),
        ('Switch\t8 "S-1"\n[1]\t"H-1"[1]\n\nCa\t1 "H-1"\n[1]\t"S-1"[2]\n', "has two links"),
        (f'Switch\t8 "S-1"\t\t# "{"x" * 600}"\n', "a line of"),
        ("CA: n3 HCA-1:\n  garbage\n", "no line of iblinkinfo"),
    ],
)
def test_a_fabric_that_contradicts_itself_or_is_none_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_ib_topology(text, "fabric.txt")
