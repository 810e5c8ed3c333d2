"""What is drawn of a swept fabric: bounded, the same without colour, and with every suspect in every view."""

import random
from pathlib import Path

import pytest
from tests.warm import warm_busbw

from busbw.fabric.blocks import leaf_blocks
from busbw.fabric.drawing import ASCII, UNICODE, VIEW_NAMES, drawn_lines, report_lines
from busbw.fabric.named_parts import NamedParts
from busbw.fabric.places import Endpoint, PairTest, Places, flat
from busbw.fabric.procedure import analysed
from busbw.fabric.report import FabricReport, report
from busbw.fabric.simulation import drawn_faults, made_places
from busbw.fabric.table import pairs_text, read_pairs
from busbw.model import codec
from busbw.show.page.fabric import fabric_section_of
from busbw.show.page.html import report_html

from .made import made_report
from .test_procedure import swept

GOLDEN = Path(__file__).parent / "golden"
MOST_JSON_BYTES = 150_000
# Plotly, which every page carries, is 1.96 MB of it.
MOST_PAGE_BYTES = 2 * 2**20


def judged(topology, kind, seed, *, nodes=64, metric="bandwidth") -> FabricReport:
    faults = drawn_faults(kind, made_places(topology, nodes), random.Random(seed))
    return report(swept(topology, faults, seed, nodes=nodes, metric=metric), metric, "a simulation")


def words(made: FabricReport, view: str) -> str:
    """Return one view as a line, without what stands above it."""
    without = len(list(drawn_lines(made, (), ASCII)))
    lines = [each.text for each in drawn_lines(made, (view,), ASCII)][without:-2]
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize(
    ("topology", "kind", "metric"),
    [
        ("fat-tree-2", "node", "bandwidth"),
        ("fat-tree-2", "node", "latency"),
        ("fat-tree-2", "nic-send", "message-rate"),
        ("fat-tree-3", "leaf-uplink", "bandwidth"),
        ("fat-tree-2", "leaf-uplink", "latency"),
        ("fat-tree-2", "cable-static", "bandwidth"),
        ("fat-tree-2", "congestion", "bandwidth"),
        ("fat-tree-2", "flapping", "bandwidth"),
        ("dragonfly", "spine-link", "bandwidth"),
        ("dragonfly", "two", "bandwidth"),
        ("rail", "nic", "bandwidth"),
        ("rail", "rail", "bibandwidth"),
        ("rail", "node", "bandwidth"),
        ("rail", "leaf-uplink", "bandwidth"),
    ],
)
def test_every_suspect_that_is_named_is_in_every_view(topology, kind, metric) -> None:
    made = judged(topology, kind, 3, metric=metric, nodes=16 if topology == "rail" else 64)
    shown = str(fabric_section_of(made).values)
    assert made.answers
    for answer in made.answers[:3]:
        for view in VIEW_NAMES:
            assert answer.place in words(made, view)
        assert shown.count(answer.place) > len(VIEW_NAMES)
    check_marks(made)


def check_marks(made: FabricReport) -> None:
    """Check that each answer is marked where it stands, not only named in a caption."""
    views = made.views
    kinds = {each.kind for each in made.answers}
    of_ends = {"node", "nic", "nic_send", "nic_receive", "unsteady"}
    of_leaves = {"leaf", "leaf_uplink", "cable"}
    if kinds & of_ends:
        assert {part for each in made.answers if each.kind in of_ends for part in each.parts} <= {
            host.name for box in views.tree.boxes for host in box.hosts if host.suspect
        }
        assert any(each.suspect for each in views.matrix.lines)
        assert any(each.suspect for each in views.nodes)
    if kinds & of_leaves:
        assert any(each.suspect for each in views.leaves)
        assert any(each.suspect for each in views.tree.boxes)
    if "spine_link" in kinds:
        assert any(each.suspect for each in views.tree.links)
    if "rail" in kinds:
        assert any(each.suspect for each in views.rails)
    assert bool(made.answers) == any(each.suspects for each in views.histogram)
    assert {each.place for each in views.tests} <= {each.place for each in made.answers}


@pytest.mark.parametrize("view", ["fabric", "rails"])
def test_a_terminal_is_drawn_as_a_person_has_read_it(view) -> None:
    rails = () if view == "fabric" else ("mlx5_0", "mlx5_1")
    lines = report_lines(made_report(rails=rails))
    assert "\n".join(lines) + "\n" == (GOLDEN / f"{view}.txt").read_text()


@pytest.mark.parametrize("glyphs", [ASCII, UNICODE])
@pytest.mark.parametrize("longest", [4, 64])
def test_no_line_is_wider_than_a_terminal_whatever_hosts_are_called(glyphs, longest) -> None:
    names = tuple(f"n{number}".ljust(longest, "x") for number in range(4))
    lines = drawn_lines(made_report(names, f"node {names[1]}"), VIEW_NAMES, glyphs)
    assert max(len(each.text) for each in lines) <= 80


def test_marks_do_not_need_colour_and_ascii_is_enough() -> None:
    drawn = list(drawn_lines(made_report(), VIEW_NAMES, ASCII))
    assert all(each.text.isascii() for each in drawn)
    marked = [each for each in drawn if each.tone == "suspect" and "consistent" not in each.text]
    assert marked
    assert all(each.text.startswith(">") for each in marked)


def test_pairs_of_another_band_are_held_against_their_own() -> None:
    made = judged("fat-tree-2", "none", 3, metric="latency")
    cells = [each for row in made.views.matrix.typical for each in row if each is not None]
    assert made.bands[1].centre_s > 1.3 * made.bands[0].centre_s
    assert max(cells) < 0.03
    assert {each.band for each in made.views.histogram if each.tests} == {0, 1}


def test_bars_show_the_loss_of_the_verdict() -> None:
    made = judged("fat-tree-2", "node", 2)
    bar = next(each for each in made.views.nodes if each.suspect)
    assert bar.loss == pytest.approx(made.answers[0].loss, abs=0.02)
    assert made.views.nodes[0] == bar


def large(nodes: int, rails: int) -> tuple[Places, tuple[PairTest, ...]]:
    """Return a table of pairs of a large machine of which no leaf is known, with a node that is slow."""
    draws = random.Random(1)
    places = flat(
        each
        for node in range(nodes)
        for each in read_pairs(
            (f"node{node}:rail{rail},other:rail{rail},1\n".encode() for rail in range(rails)), "bandwidth", "t"
        )[0].endpoints
        if each.node != "other"
    )
    tests = []
    for turn in range(2):
        for rail in range(rails):
            order = sorted(range(nodes), key=lambda _each: draws.random())
            for one, other in zip(order[::2], order[1::2], strict=False):
                value = 47e9 * (0.8 if 7 in (one, other) else 1) * draws.gauss(1, 0.01)
                tests.append(
                    PairTest(sender=one * rails + rail, receiver=other * rails + rail, round=turn, value=value)
                )
    return places, tuple(tests)


@pytest.mark.parametrize(("nodes", "rails"), [(4096, 1), (512, 8)])
def test_views_and_pages_of_thousands_of_nodes_are_of_bounded_size(nodes, rails) -> None:
    places, tests = large(nodes, rails)
    made = report(analysed(places, tests, "bandwidth"), "bandwidth", "large")
    assert len(codec.encode(made)) < MOST_JSON_BYTES
    assert len(report_lines(made)) < 200
    assert len(report_html((), fabrics=(made,)).encode()) < MOST_PAGE_BYTES


def test_a_row_of_leaves_does_not_reach_over_what_has_a_row_of_its_own_nor_stand_under_one_of_its_groups() -> None:
    places = made_places("dragonfly", 1024)
    draws = random.Random(2)
    order = sorted(range(1024), key=lambda _each: draws.random())
    tests = [
        PairTest(sender=one, receiver=other, round=turn, value=47e9 * (0.6 if 500 in (one, other) else 1))
        for turn in range(3)
        for one, other in zip(order[turn:], order[turn + 1 :], strict=False)
    ]
    tree = report(analysed(places, tests, "bandwidth"), "bandwidth", "large").views.tree
    numbers = [[int(leaf.removeprefix("leaf")) for leaf in box.name.split(" to ")] for box in tree.boxes]
    assert [31] in numbers
    assert sum((each[-1] - each[0] + 1 for each in numbers), 0) == 64
    assert tree.groups == ("",)


def test_hosts_without_known_leaves_stand_in_the_order_of_their_numbers() -> None:
    places, tests = large(64, 1)
    made = report(analysed(places, tests, "bandwidth"), "bandwidth", "t")
    assert [each.name for each in made.views.tree.boxes[:2]] == ["node0 to node15", "node16 to node31"]
    assert all(each.group is None for each in made.views.tree.boxes)


def test_a_table_that_is_written_reads_the_same_with_what_did_not_answer() -> None:
    outcome = swept("fat-tree-2", (), 1, nodes=16)
    tests = [
        PairTest(
            sender=each.sender, receiver=each.receiver, round=each.round, value=None if at % 9 == 0 else each.value
        )
        for at, each in enumerate(outcome.tests)
    ]
    text = pairs_text(outcome.places, tests, "bandwidth")
    places, again = read_pairs([text.encode()], "bandwidth", "t")
    assert pairs_text(places, again, "bandwidth") == text
    assert [each.value is None for each in again] == [each.value is None for each in tests]


def test_a_node_that_does_not_answer_is_drawn(tmp_path) -> None:
    lines = ["sender,receiver,value,unit,round"]
    for turn in range(1, 8):
        for one in range(8):
            other = (one + turn) % 8
            lines.append(f"n{one},n{other},{'-' if 5 in (one, other) else '47'},GB/s,{turn}")
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")
    done = warm_busbw("fabric", "pairs.csv", "--metric", "bandwidth", "--view", "matrix", cwd=tmp_path)
    assert "n5, which does not answer" in done.stdout
    assert "!!!!! !!" in done.stdout
    (tmp_path / "none.csv").write_text("n0,n1,-\n")
    refused = warm_busbw("fabric", "none.csv", "--metric", "latency", cwd=tmp_path)
    assert refused.returncode == 2
    assert "none of these tests has an answer" in refused.stderr


def test_the_verb_writes_a_page_and_a_table_that_it_reads_again(tmp_path) -> None:
    simulated = ("--simulate", "fat-tree-2", "--nodes", "16", "--fault", "node")
    files = ("--html", "fabric.html", "--write-table", "pairs.csv", "--view", "none")
    first = warm_busbw("fabric", *simulated, *files, cwd=tmp_path)
    assert first.returncode == 1
    assert "sender (row)" not in first.stdout
    assert "busbw fabric</h1>" in (tmp_path / "fabric.html").read_text()
    again = warm_busbw("fabric", "pairs.csv", "--metric", "bandwidth", "--view", "bars", cwd=tmp_path)
    assert again.returncode == 1
    # Read again, all tests have a part in how much slower it is, retests too.
    assert again.stdout.partition(",")[0] == first.stdout.partition(",")[0]
    assert "slowest first" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("--view", "none", "--view", "bars"), "stands alone"), (("--html", "."), "not a file")],
)
def test_what_cannot_be_shown_or_written_is_refused_before_anything_is_done(tmp_path, arguments, says) -> None:
    done = warm_busbw("fabric", "--simulate", "fat-tree-2", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""


def test_of_very_many_tests_some_are_drawn_of_every_endpoint_and_all_of_the_suspect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [Endpoint(node=f"n{number}") for number in range(33)]
    tests = [
        # Sorted by sender and receiver, as a matrix is written down: 32 tests a row.
        PairTest(sender=one, receiver=other, round=0, value=(7e9 if 5 in (one, other) else 1e10))
        for one in range(33)
        for other in range(33)
        if one != other
    ]
    monkeypatch.setattr("busbw.fabric.views._MOST_READ", len(tests) // 4)

    made = report(analysed(flat(names), tests, "bandwidth"), "bandwidth", "a matrix")

    rows = made.views.matrix.tests
    suspect = next(at for at, line in enumerate(made.views.matrix.lines) if line.suspect)
    assert [each.place for each in made.answers] == ["node n5"]
    assert made.views.every == 4
    assert sum(rows[suspect]) == sum(row[suspect] for row in rows) == 32
    assert sum(map(sum, rows)) < len(tests) // 2
    others = [row for at, row in enumerate(rows) if at != suspect]
    assert all(map(sum, others))
    assert all(map(sum, zip(*others, strict=True)))


def test_a_fabric_with_a_suspect_below_each_leaf_has_a_row_for_each_and_no_other() -> None:
    places = made_places("fat-tree-2", 16)
    below_each = {number: number // 4 for number in (0, 4, 8, 12)}

    rows = leaf_blocks(places, NamedParts(places=places, endpoints=below_each), 24)

    assert [each.name for each in rows.blocks] == ["leaf0", "leaf1", "leaf2", "leaf3"]
    assert [len(each.members) for each in leaf_blocks(places, NamedParts(places=places), 24).blocks] == [4] * 4
