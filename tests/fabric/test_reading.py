"""Tables of pairs and Slurm's topologies: understood, or refused with the line and the cause."""

import contextlib
import json
import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cost import check_cost
from tests.warm import warm_busbw

from busbw.base.errors import InputError
from busbw.fabric.answers import evidence_line
from busbw.fabric.places import PairTest
from busbw.fabric.procedure import sweep
from busbw.fabric.simulation import Fault, Noise, Simulated, made_places
from busbw.fabric.slurm_topology import contradictions, placed, read_tree, tree_text
from busbw.fabric.table import pairs_text, quantity, read_pairs

TREE = """# two leaves
SwitchName=leaf0 Nodes=n[0-3] LinkSpeed=4
switchname=leaf1 \\
  Nodes=n[4-7]
SwitchName=top Switches=leaf[0-1]
"""


def test_a_table_is_read_in_the_units_that_it_names() -> None:
    places, tests = read_pairs(
        [b"sender,receiver,value,unit,round\n# osu\nn0,n1,380,Gb/s,2\nn1,n0,47000\n"], "bandwidth", "t"
    )
    assert [str(each) for each in places.endpoints] == ["n0", "n1"]
    assert tuple(tests) == (
        PairTest(sender=0, receiver=1, round=2, value=47.5e9),
        PairTest(sender=1, receiver=0, round=0, value=47e9),
    )


def test_tabs_and_nics_are_read() -> None:
    places, tests = read_pairs([b"n0:mlx5_1\tn1:mlx5_1\t1.65\n"], "latency", "t")
    assert places.endpoints[0].rail == "mlx5_1"
    assert tests[0].value == pytest.approx(1.65e-6)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no pairs in this table"),
        ("sender,receiver,value\n", "no pair below"),
        ("n0,n0,5,us\n", "paired with itself"),
        ("n0:a,n0:b,5,us\n", "paired with itself"),
        ("n0,n1\n", "2 cells"),
        ("n0,n1,fast,us\n", "not a number above 0"),
        ("n0,n1,-1,us\n", "not a number above 0"),
        ("n0,n1,nan,us\n", "not a number above 0"),
        ("n0,n1,5,GB/s\n", "not a unit of latency"),
        ("n0,n1,5,us,first\n", "no number of a round"),
        ("n0,n1,5,us,0\nn0,n1,5,us,000000000000999999999\n", "no number of a round"),
        ("n0,n1,5,s\nn1,n0,1e308,s\nn1,n0,1e-320,us\n", "is no latency"),
        ("n0,n1,5,us\nn0,n1,\u0665,us\n", "not a number above 0"),
        ("n0,n1,5,us\nn0,n1,1_0,us\n", "not a number above 0"),
        ("n0 n1 5 us\n", "commas, semicolons or tabs"),
        ("n0," + 70_000 * "x", "a line without an end"),
        ("n 0,n1,5,us\n", "is no host"),
        ("n0,,5,us\n", "is no host"),
    ],
)
def test_a_wrong_table_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_pairs([text.encode()], "latency", "t")


_CELLS = ["n0", "n1", "n2:a", " n1 ", "47", "+47", "0047.50", ".5", "4e1", "-", "GB/s", "Gb/s", "", "3", "007", "#"]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.sampled_from(_CELLS), min_size=2, max_size=6), max_size=8), st.integers(1, 40))
def test_lines_of_known_cells_read_the_same_in_blocks_and_by_themselves(rows: list[list[str]], size: int) -> None:
    """What the core reads is what is read line by line: a table of one line has no known cells."""
    lines = [["n0", "n1", "1"], ["n2:a", "n0", "2", "GB/s"], *rows]
    text = "".join(",".join(each) + "\r\n" for each in lines).encode()
    singles = []
    try:
        for each in lines:
            if not each[0].startswith("#"):
                places, tests = read_pairs([b"n9,n8,1\n" + ",".join(each).encode()], "bandwidth", "t")
                ends = [str(places.endpoints[end]) for end in (tests[1].sender, tests[1].receiver)]
                singles.append((*ends, tests[1].round, tests[1].value))
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(error.cause)):
            read_pairs([text], "bandwidth", "t")
        return
    places, tests = read_pairs([text[at : at + size] for at in range(0, len(text), size)], "bandwidth", "t")
    read = [
        (str(places.endpoints[each.sender]), str(places.endpoints[each.receiver]), each.round, each.value)
        for each in tests
    ]
    assert read == singles


def test_the_line_that_is_wrong_is_named_by_its_number_among_thousands() -> None:
    text = "# osu\n" + 5000 * "n0,n1,47,GB/s\nn1,n0,46,GB/s\n" + "n0,n1,0,GB/s\n"
    with pytest.raises(InputError) as raised:
        read_pairs([text.encode()], "bandwidth", "pairs.csv")
    assert raised.value.where == "pairs.csv:10002"


def test_a_large_table_costs_a_tenth_of_what_it_did_line_by_line() -> None:
    """A matrix of 4,096 hosts took over a minute, 4 us a line; 200,000 lines are 0.8 s by that."""
    names = [f"n{number:04d}" for number in range(448)]
    text = "".join(f"{one},{other},47.25,GB/s,0\n" for one in names for other in names if one != other).encode()
    _places, tests = check_cost(lambda: read_pairs([text], "bandwidth", "t"), most_s=0.08)
    assert len(tests) == 448 * 447


def test_what_is_expected_needs_a_unit_of_its_kind() -> None:
    assert quantity("380Gb/s", "bandwidth", "--expect") == 47.5e9
    for wrong in ("380", "2us", "fast"):
        with pytest.raises(InputError):
            quantity(wrong, "bandwidth", "--expect")


@pytest.mark.parametrize(("text", "rate"), [("3M/s", 3e6), ("812 kmsg/s", 812e3), ("1.5Mmsg/s", 1.5e6), ("7/s", 7.0)])
def test_a_message_rate_is_read_with_its_units(text: str, rate: float) -> None:
    assert quantity(text, "message-rate", "--expect") == rate
    with pytest.raises(InputError, match="not a unit of bandwidth"):
        quantity(text, "bandwidth", "--expect")


def test_a_table_of_message_rates_is_read_and_written_again() -> None:
    places, tests = read_pairs([b"n0,n1,3012346\nn1,n0,2.5,Mmsg/s\n"], "message-rate", "t")

    assert [each.value for each in tests] == [3012346.0, 2.5e6]
    assert "n0,n1,3.01235,Mmsg/s,0\n" in pairs_text(places, tests, "message-rate")
    with pytest.raises(InputError, match="one of msg/s"):
        read_pairs([b"n0,n1,5,GB/s\n"], "message-rate", "t")


def test_a_topology_is_read_placed_and_written_again() -> None:
    tree = read_tree(TREE, "topology.conf")
    assert tree.leaves["leaf1"] == ("n4", "n5", "n6", "n7")
    places, _ = read_pairs([b"n0,n5,2\nn1,n4,2\n"], "latency", "t")
    known = placed(places, tree)
    assert known.leaf_names == ("leaf0", "leaf1")
    assert known.hops(0, 1) == 1
    again = placed(places, read_tree(tree_text(known), "again"))
    assert again.leaves == known.leaves


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no switch with nodes"),
        ("SwitchName=a\n", "either Nodes= or Switches="),
        ("Nodes=n0\n", "without SwitchName="),
        ("SwitchName=a Nodes=n0 Nodes=n1\n", "once each"),
        ("SwitchName=a Nodes=n0\nSwitchName=a Nodes=n1\n", "there twice"),
        ("SwitchName=a Nodes=n0\nSwitchName=b Nodes=n0\n", "n0 is below a and below b"),
        ("SwitchName=a Nodes=n0\nSwitchName=b Switches=c\n", "no line describes"),
        ("SwitchName=a Nodes=n0\nSwitchName=b Switches=c\nSwitchName=c Switches=b\n", "above itself"),
        ("SwitchName=a Nodes=n0\nSwitchName=b Switches=a\nSwitchName=c Switches=a\n", "a is below b and below c"),
        ("BlockName=b1 Nodes=n0\n", "block topology"),
        ("SwitchName=a Nodes=n[0-\n", "bracket"),
    ],
)
def test_a_topology_that_contradicts_itself_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_tree(text, "topology.conf")


def test_a_host_that_the_topology_does_not_have_is_named() -> None:
    places, _ = read_pairs([b"n0,x9,2\n"], "latency", "t")
    with pytest.raises(InputError, match="x9"):
        placed(places, read_tree(TREE, "topology.conf"))


def test_a_host_below_the_wrong_leaf_is_told_from_latencies_and_a_right_topology_is_not_doubted() -> None:
    places = made_places("fat-tree-2", 16)
    draws = random.Random(1)
    fabric = Simulated(topology="fat-tree-2", places=places, faults=(), noise=Noise(), metric="latency", draws=draws)
    outcome = sweep(places, fabric.measure, "latency", draws, full=True)
    numbers = [0 if (each.value or 0) < 1.95e-6 else 1 for each in outcome.tests]
    right = tree_text(places)
    assert contradictions(placed(places, read_tree(right, "right")), outcome.tests, numbers) == ()
    wrong = right.replace("n[0000-0003]", "n[0000-0002]").replace("n[0004-0007]", "n[0003-0007]")
    assert contradictions(placed(places, read_tree(wrong, "wrong")), outcome.tests, numbers) == ("n0003",)


_PIECES = [
    "SwitchName=",
    "Nodes=",
    "Switches=",
    "a",
    "n[0-3]",
    " ",
    "\n",
    "\\\n",
    "#",
    "=",
    ",",
    "b",
    "[",
    "LinkSpeed=1",
    "\t",
    "1.5",
    "us",
]


@settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(_PIECES) | st.text(max_size=3), max_size=14).map("".join))
def test_any_text_is_understood_or_refused_in_words(text: str) -> None:
    for read in (lambda: read_tree(text, "t"), lambda: read_pairs([text.encode()], "latency", "t")):
        with contextlib.suppress(InputError):
            read()


@pytest.mark.parametrize(
    "line", ["SwitchName=a Nodes=n0\n", "SwitchName=", "\\\n", "n0,n1,5\n", "#", "SwitchName=s Switches=a\n"]
)
def test_a_long_text_takes_little_time(line: str) -> None:
    text = line * (200_000 // len(line))

    def read() -> None:
        for reader in (lambda: read_tree(text, "t"), lambda: read_pairs([text.encode()], "latency", "t")):
            try:
                reader()
            except InputError:
                continue

    check_cost(read, most_s=5)


def test_a_long_chain_of_switches_takes_little_time() -> None:
    links = "".join(f"SwitchName=s{each} Switches=s{each + 1}\n" for each in range(4000))
    check_cost(lambda: read_tree(links + "SwitchName=s4000 Nodes=n0\n", "t"), most_s=5)


def test_the_verb_reads_a_table_with_holes_and_names_the_node(tmp_path) -> None:
    draws = random.Random(1)
    places = made_places("fat-tree-2", 16)
    fault = Fault(kind="node", element=5)
    fabric = Simulated(
        topology="fat-tree-2", places=places, faults=(fault,), noise=Noise(), metric="bandwidth", draws=draws
    )
    outcome = sweep(places, fabric.measure, "bandwidth", draws, full=True)
    told = [each for at, each in enumerate(outcome.tests) if not each.retest and at % 7]
    (tmp_path / "pairs.csv").write_text(pairs_text(places, told, "bandwidth"))
    (tmp_path / "topology.conf").write_text(tree_text(places))
    done = warm_busbw("fabric", "pairs.csv", "--metric", "bandwidth", "--topology", "topology.conf", cwd=tmp_path)
    assert done.returncode == 1
    assert "consistent with: node n0005" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "no hosts, no results and no --simulate are given"),
        (("--simulate", "rail", "--nodes", "4"), "8 to 4096 nodes"),
        (("--simulate", "fat-tree-2", "--fault", "rail"), "one NIC a node"),
        (("--simulate", "fat-tree-2", "--fault", "node", "--effect", "99"), "below 95 percent"),
        (("--simulate", "fat-tree-2", "--rounds", "7"), "8 to 1000 rounds at most"),
        (("one.csv", "--metric", "bandwidth", "--rounds", "12"), "--rounds is of a sweep"),
        (("one.csv",), "--metric latency"),
        (("one.csv", "--metric", "bandwidth", "--expect", "2us"), "not a unit of bandwidth"),
        (("nothing.csv", "--metric", "latency"), "nothing.csv"),
        (("--simulate", "fat-tree-2", "--metric", "latency", "--blind", "--write-topology", "t.conf"), "not known"),
    ],
)
def test_bad_input_exits_with_2_and_says_why(tmp_path, arguments, says) -> None:
    (tmp_path / "one.csv").write_text("n0,n1,47,GB/s\n")
    done = warm_busbw(
        "fabric", *arguments, cwd=tmp_path, env={"BUSBW_RUNS": str(tmp_path / "runs"), "PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_rounds_go_on_as_long_as_something_is_open_and_no_longer_than_asked(tmp_path) -> None:
    for fault, most, made in (("none", (), 5), ("flapping", (), 8), ("flapping", ("--rounds", "11"), 11)):
        words = ("--simulate", "fat-tree-2", "--nodes", "16", "--fault", fault, "--seed", "1", *most, "--json")
        done = warm_busbw("fabric", *words, cwd=tmp_path)
        assert json.loads(done.stdout)["rounds"] == made, (fault, most)


def test_a_simulation_says_that_nothing_was_measured(tmp_path) -> None:
    text = warm_busbw("fabric", "--simulate", "fat-tree-2", "--nodes", "16", cwd=tmp_path)
    assert "simulated, nothing was measured" in text.stdout
    assert text.returncode == 4
    printed = warm_busbw("fabric", "--simulate", "fat-tree-2", "--nodes", "16", "--json", cwd=tmp_path)
    assert '"simulated": true' in printed.stdout


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (42.66e9, "B/s", "42.66 GB/s"),
        (1.5e6, "B/s", "1.50 MB/s"),
        (1.65e-6, "s", "1.65 us"),
        (2.62e6, "msg/s", "2.62 Mmsg/s"),
        (8350.0, "msg/s", "8.35 kmsg/s"),
        (None, "s", "no answer"),
    ],
)
def test_a_test_is_said_in_a_unit_in_which_it_can_be_read(value: float | None, unit: str, shown: str) -> None:
    places, _tests = read_pairs([b"n0,n1,1\n"], "latency", "t")

    line = evidence_line(PairTest(sender=0, receiver=1, round=0, value=value), places, unit)

    assert line == f"n0 -> n1: {shown} (round 1)"
