"""`busbw predict` as it is called: what it prints, and its exit codes."""

import csv
import io
import json
from pathlib import Path

import pytest
from tests.warm import warm_busbw

from busbw.base.errors import InputError
from busbw.facts.nccl_model import release_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
AZURE = ("all_reduce", "--platform", "azure-nd-h100-v5", "--nodes", "4", "--size", "1G")


def test_a_table_has_sizes_intervals_and_what_it_rests_on(tmp_path: Path) -> None:
    done = warm_busbw("predict", "all_reduce", "--platform", "azure-nd-h100-v5", "--nodes", "32", cwd=tmp_path)
    assert done.returncode == 0
    assert "predicted, nothing of it is measured" in done.stdout
    assert "16 GiB" in done.stdout
    assert "documents lay off when left out of the fit; 2 of them are like this (between nodes, " in done.stdout
    assert "in family: the constant that counts most is from such GPUs and such a network; 3 documents" in done.stdout
    assert "widest part of the interval of 16 GiB on 32 nodes: how far documents lay off" in done.stdout
    assert "one measured size on 32 nodes (--calibrate RUN) would make it" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if "iB " in line[:10])


def test_inputs_are_ranked_by_what_they_are_worth_and_what_others_measured_stands_apart(tmp_path: Path) -> None:
    found = json.loads(warm_busbw("predict", *AZURE, "--json", cwd=tmp_path).stdout)
    inputs = found["sensitivity"]["inputs"]
    assert inputs[0]["name"] == "rate of a NIC"
    assert inputs[0]["less_Bps"] < found["sensitivity"]["busbw_Bps"] < inputs[0]["more_Bps"]
    spans = [abs(each["more_Bps"] - each["less_Bps"]) for each in inputs]
    assert spans == sorted(spans, reverse=True)
    assert {each["nodes"] for each in found["elsewhere"]} > {1, 32}


def test_csv_has_a_row_a_size_and_number_of_nodes(tmp_path: Path) -> None:
    asked = ("predict", "all_gather", "--platform", "azure-ndv4", "--nodes", "4,16,64", "--size", "1G", "--csv")
    rows = list(csv.DictReader(io.StringIO(warm_busbw(*asked, cwd=tmp_path).stdout)))
    assert [row["nodes"] for row in rows] == ["4", "16", "64"]
    assert all(float(row["low_GBps"]) < float(row["busbw_GBps"]) < float(row["high_GBps"]) for row in rows)


def test_csv_has_what_steps_make_of_a_call_or_why_they_cannot(tmp_path: Path) -> None:
    asked = ("predict", "all_reduce", "--platform", "azure-nd-h100-v5", "--nodes", "1,4", "--size", "1G", "--csv")
    alone, four = csv.DictReader(io.StringIO(warm_busbw(*asked, "--tier", "steps", cwd=tmp_path).stdout))
    assert (alone["tier"], alone["tier_time_s"], four["tier"], four["cannot_tier"]) == ("steps", "", "steps", "")
    assert "no schedule of nvls" in alone["cannot_tier"]
    assert float(four["tier_time_s"]) == pytest.approx(float(four["time_s"]), rel=0.2)
    (plain, _) = csv.DictReader(io.StringIO(warm_busbw(*asked, cwd=tmp_path).stdout))
    assert (plain["tier"], plain["cannot_tier"]) == ("", "")


def test_an_interval_that_says_next_to_nothing_is_called_so(tmp_path: Path) -> None:
    words = "spans more than a factor of 100"
    asked = ("predict", "all_reduce", "--platform", "azure-nd-h100-v5", "--nodes")
    assert words in warm_busbw(*asked, "1344", "--size", "1M", cwd=tmp_path).stdout
    assert words not in warm_busbw(*asked, "32", "--size", "1M", cwd=tmp_path).stdout


@pytest.mark.parametrize("release", ["2.26.5", "v2.26.5-1", "2.26.5+cuda12.4", "NCCL version 2.26.5+cuda12.4"])
def test_a_release_is_read_as_tags_and_logs_have_it(release: str) -> None:
    assert release_of(release) == "2.26.5"


@pytest.mark.parametrize("release", ["", "x", "2", "2.26.5.1", "2.26.5 ", "\u0662.26.5", "2.9999.1", "v"])
def test_what_is_no_release_is_refused(release: str) -> None:
    with pytest.raises(InputError, match="is no release of NCCL"):
        release_of(release)


def test_of_a_node_whose_topology_is_known_nccls_choice_is_taken(tmp_path: Path) -> None:
    asked = ("predict", "all_reduce", "--platform", "azure-nd-h100-v5", "--size", "64K", "--size", "16G", "--json")
    rows = json.loads(warm_busbw(*asked, cwd=tmp_path).stdout)["rows"]
    assert [row["choice"]["chosen"]["algorithm"] for row in rows] == ["ring", "nvls"]
    assert [row["expected"]["algorithm"] for row in rows] == ["ring", "nvls"]
    assert rows[0]["choice"]["chosen"]["protocol"] == "LL"


@pytest.mark.parametrize("nodes", ["1", "2"])
@pytest.mark.parametrize(
    ("platform", "nccl", "why"),
    [
        ("azure-nd-h100-v5", "2.26.5", None),
        ("azure-nd-h100-v5", "2.20.3", "the search of releases before 2.25.1 is not known"),
        ("azure-ndv2", "2.26.5", "which GPUs the NVLinks join is not known"),
        ("aws-p5", "2.26.5", "which switches the GPUs of aws-p5 share with their NICs is not published"),
    ],
)
def test_nccls_choice_is_told_where_its_search_is_redone_and_else_why_not(
    platform: str, nccl: str, why: str | None, nodes: str, tmp_path: Path
) -> None:
    asked = ("all_reduce", "--platform", platform, "--nodes", nodes, "--nccl", nccl, "--size", "1G", "--json")
    found = json.loads(warm_busbw("predict", *asked, cwd=tmp_path).stdout)
    assert (found["rows"][0]["choice"] is not None) == (why is None)
    told = [note for note in found["notes"] if "what NCCL takes cannot be told" in note]
    assert [why in note for note in told if why is not None] == ([True] if why is not None else [])
    assert bool(told) == (why is not None)


def test_several_nodes_with_a_map_have_nccls_choice_and_a_line_where_another_way_is_faster(tmp_path: Path) -> None:
    asked = ("predict", "all_reduce", "--platform", "azure-nd-h100-v5", "--nodes", "32", "--nccl", "2.28.9")
    sizes = ("--size", "1M", "--size", "16M", "--size", "1G")
    rows = json.loads(warm_busbw(*asked, *sizes, "--json", cwd=tmp_path).stdout)["rows"]
    taken = [(row["choice"]["chosen"]["algorithm"], row["choice"]["chosen"]["protocol"]) for row in rows]
    assert taken == [("tree", "LL128"), ("tree", "LL128"), ("nvlstree", "Simple")]
    assert [row["expected"]["algorithm"] for row in rows] == ["tree", "tree", "nvlstree"]
    assert all(row["choice"]["others"] for row in rows)
    printed = warm_busbw(*asked, *sizes, cwd=tmp_path).stdout
    assert "by NCCL 2.28.9's choice, from NCCL's search over the topology of azure-nd-h100-v5" in printed
    assert "rows NCCL's own model takes a way that is not the fastest predicted: for 16 MiB on 32 nodes" in printed


def test_an_algorithm_that_is_asked_for_comes_before_nccls_choice(tmp_path: Path) -> None:
    asked = ("all_reduce", "--platform", "azure-nd-h100-v5", "--nodes", "32", "--size", "16M", "--algorithm", "ring")
    row = json.loads(warm_busbw("predict", *asked, "--json", cwd=tmp_path).stdout)["rows"][0]
    assert (row["expected"]["algorithm"], row["chosen_by"]) == ("ring", "as asked for")


def test_a_graph_file_decides_what_nccl_would_take(tmp_path: Path) -> None:
    graph = HERE / "samples" / "four-h200-graph.xml"
    asked = ("predict", "all_reduce", "--platform", "oci-bm-gpu-h200-8", "--gpus", "4", "--graph", str(graph))
    done = warm_busbw(*asked, "--size", "1K", "--nccl", "2.28.9", "--explain", cwd=tmp_path)
    assert done.returncode == 0
    assert "NCCL 2.28.9 counts 10.2 us for 1 KiB by ring LL" in done.stdout


def test_a_log_says_the_graph_and_the_channels(tmp_path: Path) -> None:
    log = HERE / "samples" / "four-h200-2.28.9.log"
    asked = ("predict", "all_gather", "--platform", "oci-bm-gpu-h200-8", "--gpus", "4", "--log", str(log), "--json")
    (row,) = json.loads(warm_busbw(*asked, "--size", "1G", "--nccl", "2.28.9", cwd=tmp_path).stdout)["rows"]
    assert row["choice"]["chosen"]["channels"] == 24
    assert row["chosen_by"].endswith(f"from the log {log}")


SIZES = (("64", "MiB"), ("256", "MiB"), ("1", "GiB"))


def test_changes_and_other_algorithms_are_tables_of_a_row_a_size(tmp_path: Path) -> None:
    asked = (
        "predict",
        "all_reduce",
        "--platform",
        "azure-nd-h100-v5",
        "--nodes",
        "2,8",
        "-b",
        "64M",
        "-e",
        "1G",
        "-f",
        "4",
    )
    found = warm_busbw(*asked, "--what-if", "nic=800G", "--explain", cwd=tmp_path).stdout.splitlines()
    first = found.index("what if nic=800G")
    assert found[first + 1].split() == ["nodes", "size", "ratio", "90", "%", "busbw", "algorithm"]
    changed = [line.split() for line in found[first + 2 : first + 8]]
    assert [row[:3] for row in changed] == [[nodes, size, unit] for nodes in "28" for size, unit in SIZES]
    assert all(float(row[4]) >= 1 for row in changed)
    others = found[found.index("by other algorithms") + 2 :]
    assert {row.split()[-1] for row in others[: others.index("")]} == {"tree", "ring"}


def test_a_slow_nic_and_leaves_take_schedules_which_are_named(tmp_path: Path) -> None:
    slow = warm_busbw("predict", *AZURE, "--what-if", "slow-nic=node3:0.5,oversubscription=2,leaf=2", cwd=tmp_path)
    assert slow.returncode == 0
    assert "what if slow-nic=node3:0.5, oversubscription=2, leaf=2, tier steps\n" in slow.stdout
    assert "what if: between: nodes in order, adaptive routing;" in slow.stdout
    beside = json.loads(warm_busbw("predict", *AZURE, "--tier", "events", "--json", cwd=tmp_path).stdout)
    (row,) = beside["rows"]
    assert beside["beside"] == row["simulated"]["tier"] == "events"
    # Its pipeline is all that keeps it from what is reached of large messages.
    assert row["expected"]["busbw_Bps"] < row["simulated"]["busbw_Bps"] < row["expected"]["bound_Bps"]


def test_sharp_is_shown_at_line_rate_by_a_schedule_and_never_predicted(tmp_path: Path) -> None:
    asked = ("predict", *AZURE, "--tier", "events")
    told = {}
    for name in ("sharp", "CollNetDirect", "collnetchain"):
        done = warm_busbw(*asked, "--algorithm", name, "--json", cwd=tmp_path)
        assert done.returncode == 4
        (row,) = json.loads(done.stdout)["rows"]
        assert "expected" not in row or row["expected"] is None
        told[name] = row["at_line_rate"]
    assert [call["algorithm"] for call in told["sharp"]] == ["collnetdirect", "collnetchain"]
    assert told["sharp"] == told["CollNetDirect"] + told["collnetchain"]
    words = warm_busbw(*asked, "--algorithm", "sharp", "--explain", cwd=tmp_path).stdout
    assert words.count("no prediction: latency, software and losses are left out") == 2
    assert "collnetchain: one of 8 identical lanes" in words
    assert "not known to be offered" not in words
    # Nobody says that AWS has it; without a schedule's tier nothing is shown.
    other = ("all_reduce", "--platform", "aws-p5", "--nodes", "4", "--size", "1G", "--algorithm", "sharp")
    assert "not known to be offered here" in warm_busbw("predict", *other, "--tier", "steps", cwd=tmp_path).stdout
    assert "at line rate" not in warm_busbw("predict", *other, cwd=tmp_path).stdout
    changed = warm_busbw(*asked, "--algorithm", "sharp", "--what-if", "nic=800G", cwd=tmp_path)
    assert changed.returncode == 4
    assert "without --what-if" in changed.stdout


def test_what_sharp_would_give_cannot_be_told(tmp_path: Path) -> None:
    done = warm_busbw("predict", *AZURE, "--what-if", "nic=200G,sharp=on", "--json", cwd=tmp_path)
    assert done.returncode == 0
    (row,) = json.loads(done.stdout)["rows"]
    assert row["expected"]["busbw_Bps"] > 0
    assert "changed" not in row or row["changed"] is None
    # With half of the NICs' rate: 2(n-1)/n x 200 GB/s.
    assert "it is bounded by 387.5 GB/s" in row["cannot_change"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "no collective is named"),
        (("alltoall_2dh", "--platform", "aws-p5", "--nodes", "2"), 4, "the two-level alltoall is no part of NCCL"),
        (("bandwidth", "--platform", "aws-p5", "--nodes", "2"), 4, "no published table of bandwidth"),
        (("alreduce", "--platform", "aws-p5"), 2, "'alreduce' is not a collective\nhint: maybe: all_reduce"),
        (("nonsense", "--platform", "aws-p5"), 2, "one of: all_reduce, all_gather"),
        (("latency", "--platform", "aws-p5"), 4, "no published table of latency"),
        (("all_reduce",), 2, "neither a platform, a machine nor a host is named"),
        (("all_reduce", "--platform", "nonsense"), 2, "nonsense"),
        (("all_reduce", "--platform", "aws-p5", "--nodes", "0"), 2, "0 nodes"),
        (("all_reduce", "--platform", "aws-p5", "--nodes", "100001"), 2, "100001 nodes"),
        (("all_reduce", "--platform", "aws-p5", "--nodes", "two"), 2, "no numbers of nodes"),
        (("all_reduce", "--platform", "aws-p5", "--nccl", "2.17.1"), 2, "2.17.1 is not known"),
        (("all_reduce", "--platform", "aws-p5", "--algorithm", "mesh"), 2, "'mesh'"),
        (("broadcast", "--platform", "aws-p5", "--nodes", "2", "--algorithm", "tree"), 2, "tree is not an algorithm"),
        (("all_reduce", "--platform", "aws-p5", "-b", "1G", "-e", "1M"), 2, "no sizes"),
        (("all_reduce", "--platform", "aws-p5", "--size", "1M", "-f", "2"), 2, "--size and -b"),
        (("all_reduce", "--platform", "aws-p5", "--graph", "missing.xml"), 2, "missing.xml"),
        (("all_reduce", "--platform", "aws-p5", "--channels", "ring=8"), 2, "is no graph"),
        (("alltoall", "--platform", "gcp-a2", "--nodes", "2"), 4, "cannot tell"),
        (("all_reduce", "--platform", "aws-p5", "--nodes", "2", "--algorithm", "sharp"), 4, "SHARP"),
        ((*AZURE, "--algorithm", "collnetdirect", "--schedule-out", "s.goal"), 2, "a switch is no rank"),
        ((*AZURE, "--what-if", "sharp=off"), 2, "only sharp=on"),
        ((*AZURE, "--what-if", "slow-nic=node7:0.5"), 2, "no node 7 of 4"),
        ((*AZURE, "--what-if", "slow-nic=node1:2"), 2, "no slow NIC"),
        ((*AZURE, "--what-if", "leaf=4"), 2, "take oversubscription too"),
        ((*AZURE, "--what-if", "oversubscription=2,leaf=4,routing=best"), 2, "no routing"),
        ((*AZURE, "--what-if", "slow-nic=node1:0.5", "--tier", "closed"), 2, "closed form cannot tell"),
        (("--against", "missing.csv"), 2, "missing.csv"),
        (("all_reduce", "--against", "cells.csv"), 2, "a collective is not used with --against"),
    ],
)
def test_exit_codes_and_their_words(arguments: tuple[str, ...], code: int, words: str, tmp_path: Path) -> None:
    done = warm_busbw("predict", *arguments, cwd=tmp_path)
    assert done.returncode == code
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert code != 2 or len(done.stderr.splitlines()) <= 4


def test_measured_cells_are_held_against_it(tmp_path: Path) -> None:
    head = "document,platform_id,nodes,gpus,collective,size_bytes,busbw_GBps,algorithm\n"
    (tmp_path / "good.csv").write_text(f"{head}A,aws-p5,2,16,all_reduce,17179869184,480,default\n")
    (tmp_path / "slow.csv").write_text(f"{head}A,aws-p5,2,16,all_reduce,17179869184,100,default\n")
    (tmp_path / "sharp.csv").write_text(f"{head}A,aws-p5,2,16,all_reduce,17179869184,100,SHARP\n")
    codes = [
        warm_busbw("predict", "--against", name, cwd=tmp_path).returncode
        for name in ("good.csv", "slow.csv", "sharp.csv")
    ]
    assert codes == [0, 1, 4]
    assert "outside: A" in warm_busbw("predict", "--against", "slow.csv", cwd=tmp_path).stdout


def test_a_cell_above_what_any_way_can_reach_is_named_and_left_out(tmp_path: Path) -> None:
    head = "document,platform_id,nodes,gpus,collective,size_bytes,busbw_GBps,algorithm\n"
    rows = "A,aws-p5,2,16,all_reduce,17179869184,480,default\nA,aws-p5,2,16,all_reduce,8589934592,9999,default\n"
    (tmp_path / "cells.csv").write_text(f"{head}{rows}")
    done = warm_busbw("predict", "--against", "cells.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert "1 cell of 1 document" in done.stdout
    assert "left out: A: 9999 GB/s of 8 GiB on 2 nodes is above what nvlstree can reach" in done.stdout


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--against", "cells.csv", "--csv"), "--csv is not used with --against"),
        (("--against", "cells.csv", "--what-if", "nic=800G"), "--what-if is not used with --against"),
        (("--workload", "plan.json", "--nodes", "4"), "--nodes is not used with --workload"),
        ((*AZURE, "--csv", "--json"), "--csv and --json are given"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(asked: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = warm_busbw("predict", *asked, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) <= 4


def test_a_way_that_would_take_less_and_was_not_measured_there_is_named(tmp_path: Path) -> None:
    asked = ("predict", "all_gather", "--platform", "aws-p6e-gb200x36", "--nodes", "4", "--size", "1G", "--json")
    found = json.loads(warm_busbw(*asked, cwd=tmp_path).stdout)
    (row,) = found["rows"]
    assert [row["expected"]["algorithm"], row["others"][0]["algorithm"]] == ["nvls", "ring"]
    assert row["others"][0]["time_s"] < row["expected"]["time_s"]
    assert any(note.startswith("ring would take less in 1 row (") for note in found["notes"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--graph", "GRAPH"), "is of 4 GPUs a node, and asked are 8"),
        (("--gpus", "4", "--nodes", "1,2", "--graph", "GRAPH"), "is of one node, whose channels end in it, and asked"),
        (("--gpus", "4", "--nodes", "2", "--graph", "between.xml"), ""),
        (("--gpus", "4", "--graph", "between.xml"), "is of several nodes, and asked is 1 node"),
        (("--nodes", "2", "--log", "between.log"), ""),
        (("--nodes", "2", "--gpus", "4", "--log", "between.log"), "is of 8 GPUs a node, and asked are 4"),
        (("--nodes", "2", "--channels", "ring=8x0/48"), "channels of 0 GB/s"),
    ],
)
def test_a_graph_of_other_nodes_than_those_that_are_asked_about_is_refused(
    asked: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    graph = HERE / "samples" / "four-h200-graph.xml"
    text = graph.read_text().replace("<channel>", '<channel><net dev="0"/>')
    (tmp_path / "between.xml").write_text(text)
    said = "h:1:2 [0] NCCL INFO comm 0x5 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0\n"
    (tmp_path / "between.log").write_text(said + (HERE / "samples" / "four-h200-2.28.9.log").read_text())
    arguments = [str(graph) if each == "GRAPH" else each for each in asked]
    done = warm_busbw(
        "predict", "all_reduce", "--platform", "azure-nd-h200-v5", "--size", "1M", *arguments, cwd=tmp_path
    )
    assert done.returncode == (2 if words else 0)
    assert words in done.stderr


def test_csv_says_why_a_change_cannot_be_told(tmp_path: Path) -> None:
    done = warm_busbw("predict", *AZURE, "--what-if", "sharp=on", "--csv", cwd=tmp_path)
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert row["ratio"] == ""
    assert "how much of its bound it reaches can only be measured" in row["cannot_change"]


def test_a_protocol_is_predicted_where_it_is_near_the_fastest_and_not_told_elsewhere(tmp_path: Path) -> None:
    asked = ("all_reduce", "--platform", "azure-nd-h100-v5", "--nodes", "4", "--algorithm", "ring", "--size", "16G")
    free, slower, far = (
        json.loads(warm_busbw("predict", *asked, *more, "--json", cwd=tmp_path).stdout)["rows"][0]
        for more in ((), ("--protocol", "LL128"), ("--protocol", "LL"))
    )
    # 8 of 128 bytes are flags.
    assert slower["expected"]["busbw_Bps"] == pytest.approx(0.9375 * free["expected"]["busbw_Bps"], rel=0.01)
    assert far["expected"] is None
    assert far["cannot"] == "nobody has published LL at sizes where another protocol takes less time"


def test_cells_of_the_machine_shift_its_predictions_and_those_of_another_are_refused(tmp_path: Path) -> None:
    cells = str(ROOT / "docs" / "data" / "two-p5.csv")
    asked = ("--nodes", "2", "--size", "256M", "--size", "8G", "--json", "--calibrate", cells)
    done = warm_busbw("predict", "all_reduce", "--platform", "aws-p5", *asked, cwd=tmp_path)
    rows = json.loads(done.stdout)["rows"]
    assert [row["expected"]["busbw_Bps"] / 1e9 for row in rows] == pytest.approx([342.81, 479.28], rel=1e-3)
    assert {row["expected"]["kinship"] for row in rows} == {"calibrated"}
    other = warm_busbw("predict", "all_reduce", "--platform", "aws-p5en", *asked, cwd=tmp_path)
    assert other.returncode == 2
    assert "was measured on aws-p5, not on aws-p5en" in other.stderr


def test_where_the_nearest_cell_is_impossible_another_one_calibrates(tmp_path: Path) -> None:
    head = "document,platform_id,nodes,gpus,collective,size_bytes,busbw_GBps,algorithm\n"
    cells = "A,aws-p5,16,128,all_reduce,8589934592,900,default\nA,aws-p5,16,128,all_reduce,4294967296,340,default\n"
    (tmp_path / "mine.csv").write_text(f"{head}{cells}")
    asked = (
        "predict",
        "all_reduce",
        "--platform",
        "aws-p5",
        "--nodes",
        "16",
        "--size",
        "8G",
        "--calibrate",
        "mine.csv",
    )
    done = warm_busbw(*asked, cwd=tmp_path)
    assert done.returncode == 0
    assert "not used: 8 GiB on 16 nodes: 900.0 GB/s is above" in done.stdout
    assert "calibrated: 4 GiB on 16 nodes: measured 340.0 GB/s" in done.stdout


def test_a_calibrating_cell_above_the_bound_is_named_and_not_used(tmp_path: Path) -> None:
    head = "document,platform_id,nodes,gpus,collective,size_bytes,busbw_GBps,algorithm\n"
    (tmp_path / "mine.csv").write_text(f"{head}A,aws-p5,16,128,all_reduce,8589934592,900,default\n")
    asked = ("predict", "all_reduce", "--platform", "aws-p5", "--nodes", "16", "--calibrate", "mine.csv")
    done = warm_busbw(*asked, cwd=tmp_path)
    assert done.returncode == 2
    assert "the bound" in done.stderr
