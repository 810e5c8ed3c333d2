"""The real ibnetdiscover, iblinkinfo, opensm and perfquery over a simulated fat tree: read, and the bad port named."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from busbw.cli.command import busbw
from busbw.fabric.ib_links import hop_count, ib_hosts, placed_by_links, slow_links
from busbw.fabric.ib_topology import read_ib_topology
from busbw.fabric.places import Endpoint, flat

from .ibsim import SimulatedFabric, fat_tree, simulated

LEAVES, HOSTS, SPINES = 3, 4, 2
NARROW = "n6"
NAMES = [f"n{number}" for number in range(LEAVES * HOSTS)]


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedFabric]:
    with simulated(tmp_path_factory.mktemp("ibsim"), fat_tree(LEAVES, HOSTS, SPINES, NARROW)) as made:
        yield made


@pytest.mark.parametrize("tool", ["ibnetdiscover", "iblinkinfo", "opensm"])
def test_hosts_leaves_hops_and_the_narrow_link_are_read_from_what_each_tool_prints(
    fabric: SimulatedFabric, tool: str
) -> None:
    said = (fabric.folder / "opensm-subnet.lst").read_text() if tool == "opensm" else fabric.ask(tool)
    found = read_ib_topology(said, tool)
    assert sorted(ib_hosts(found).adapters) == sorted(NAMES)
    assert len(found.links) == LEAVES * (HOSTS + SPINES)
    for one, other in (("n0", "n3"), ("n0", "n4"), ("n11", "n1")):
        same_leaf = int(one[1:]) // HOSTS == int(other[1:]) // HOSTS
        assert hop_count(found, one, other) == (2 if same_leaf else 4)
    placed = placed_by_links(flat(Endpoint(node=name) for name in NAMES), found)
    assert [placed.leaf_names[leaf] for leaf in placed.leaves if leaf is not None] == [
        f"leaf{number // HOSTS}" for number in range(len(NAMES))
    ]
    assert len(set(placed.groups)) == 1
    (narrow,) = slow_links(found)
    assert narrow.title.startswith(f"the link {NARROW} mlx5_0 port 1 to leaf1 port 3 runs at 1x")


def test_errors_on_one_port_are_named_beside_the_slow_tests_of_its_host(
    fabric: SimulatedFabric, tmp_path: Path
) -> None:
    bad = "n9"
    lid = {name: 1 + LEAVES + SPINES + number for number, name in enumerate(NAMES)}

    def counters(name: str) -> str:
        path = tmp_path / name
        hosts = [("perfquery", str(lid[each]), "1") for each in NAMES]
        leaves = [("perfquery", "-l", str(1 + leaf), f"1-{HOSTS}") for leaf in range(LEAVES)]
        path.write_text("".join(fabric.ask(*asked) for asked in (*hosts, *leaves)))
        return str(path)

    topology = tmp_path / "fabric.txt"
    topology.write_text(fabric.ask("ibnetdiscover"))
    before = counters("before.txt")
    fabric.inject(f"H-{bad}", 1, "SymbolErrorCounter", 412)
    after = counters("after.txt")
    pairs = tmp_path / "pairs.csv"
    lines = []
    for shift in range(1, 6):
        for at, one in enumerate(NAMES):
            other = NAMES[(at + shift) % len(NAMES)]
            value = 160 if bad in (one, other) else 190 + at % 3
            lines += [f"{one},{other},{value},Gb/s,{shift}", f"{other},{one},{value},Gb/s,{shift}"]
    pairs.write_text("\n".join(lines) + "\n")
    asked = ["fabric", str(pairs), "--metric", "bandwidth", "--topology", str(topology), "--counters", before, after]
    done = CliRunner().invoke(busbw, [*asked, "--json"])
    assert done.exit_code == 1, done.output
    report = json.loads(done.stdout)
    (answer,) = report["answers"]
    assert answer["nodes"] == [bad]
    expected = f"{bad} mlx5_0 port 1 (to leaf2 port 2): symbol errors +412; the other {2 * len(NAMES) - 1} ports none"
    assert answer["evidence"][-1] == expected
    assert report["verdict"]["sentence"].endswith("1 link below its neighbours' width or speed")
    # The narrow link is a finding of its own, and the errors are told once.
    assert [each["code"] for each in report["findings"][1:]] == ["FAB013"]
    assert expected[:40] in CliRunner().invoke(busbw, asked).stdout.replace("\n", " ")
