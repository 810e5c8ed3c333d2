"""Published tables: each row that was collected stands in the catalogue, and a table that cannot be one is refused."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.base.collectives import COLLECTIVES
from busbw.base.errors import InputError
from busbw.facts import platform_resolution
from busbw.facts.platforms import all_platforms, find_platform
from busbw.limits.algorithms import NAMES
from busbw.model.platform import Platform, PublishedSweep

from .files import platform_file

CELLS = Path(__file__).parents[2] / ".." / "shared" / "facts" / "busbw_training_cells.csv"
ROOT = Path(__file__).parents[2]
# Cells that are in no table, by document, and why.
LEFT_OUT = {
    "T13": "a rounded peak in a user's text, of a machine that no platform is",
    "T14": "a typical value in a user's text, rounded, of a machine without a name",
    "T15": "two H100 of hosts with four RoCE ports, of which one was used: no platform is such a machine",
}
# Machines that the collected cells give no platform for, by the words they begin with.
PLATFORM_OF = {
    "AWS p6-b200": "aws-p6-b200",
    "HGX H200": "azure-nd-h200-v5",
    "8x A100": "azure-ndv4",
    "8x MI300X": "azure-nd-mi300x-v5",
}
# The heading says 144 ranks, and the ratio of the printed rates says 128.
RANKS = {("gb200-nvl72", 36, 144): (32, 128)}
# Times that PyTorch took hold the time of the host, which decides below this.
TORCH_TIMED_FROM = 2**20
TABLE = """
[[sweeps]]
test = "all_reduce"
nodes = 2
gpus = 16
points = [[1024, 0.5], [2048, 1]]
document = "wiki"
"""


def cells() -> list[dict[str, str]]:
    return list(csv.DictReader(CELLS.read_text().splitlines())) if CELLS.is_file() else []


def machine(cell: dict[str, str]) -> Platform:
    named = cell["platform_id"] or next(
        each for start, each in PLATFORM_OF.items() if cell["platform"].startswith(start)
    )
    return find_platform(named).platform


def algorithm_of(cell: dict[str, str]) -> tuple[str | None, bool | None]:
    """Return the algorithm and whether NVLS was on; None: not said."""
    return {"Ring": ("ring", None), "Ring (NVLS off)": ("ring", False), "NVLS": ("nvls", True)}.get(
        cell["algorithm"], (None, None)
    )


def holds(sweep: PublishedSweep, cell: dict[str, str]) -> bool:
    nodes, gpus = int(cell["nodes"]), int(cell["gpus"])
    nodes, gpus = RANKS.get((cell["platform_id"], nodes, gpus), (nodes, gpus))
    of_tcp = "OFF" in cell["platform"]
    return (
        (sweep.test, sweep.nodes, sweep.gpus) == (cell["collective"], nodes, gpus)
        and (sweep.algorithm, sweep.nvls) == algorithm_of(cell)
        and (sweep.network == "fallback") is of_tcp
        and (int(cell["size_bytes"]), float(cell["busbw_GBps"])) in sweep.points
    )


@pytest.mark.skipif(not CELLS.is_file(), reason=f"the collected cells are not at {CELLS}: nothing to compare with")
def test_every_collected_cell_stands_in_a_table_of_its_platform_or_is_left_out_for_a_reason() -> None:
    missing, found = [], 0
    for cell in cells():
        of_the_host = "torch" in cell["notes"] and int(cell["size_bytes"]) < TORCH_TIMED_FROM
        if cell["document"] in LEFT_OUT or of_the_host:
            continue
        found += 1
        tables = [each for each in machine(cell).sweeps if holds(each, cell)]
        if len(tables) != 1:
            missing.append((cell["document"], cell["platform"], cell["gpus"], cell["size_bytes"], len(tables)))
    assert missing == []
    assert found == 275


@pytest.mark.skipif(not CELLS.is_file(), reason=f"the collected cells are not at {CELLS}: nothing to compare with")
def test_the_version_in_a_table_is_the_collected_one() -> None:
    wrong = [
        (cell["document"], cell["nccl_version"], sweep.nccl)
        for cell in cells()
        if cell["document"] not in LEFT_OUT
        for sweep in machine(cell).sweeps
        if holds(sweep, cell) and not cell["nccl_version"].startswith(sweep.nccl or ("n/a", "RCCL"))
    ]
    assert wrong == []


def test_tables_of_one_node_hold_for_every_platform_with_the_gpu() -> None:
    for name in ("aws-p5en", "azure-nd-h200-v5", "gcp-a3-ultra"):
        assert [each.gpus for each in find_platform(name).platform.sweeps if each.nccl == "2.30.7"] == [8]


def test_no_figure_stands_twice() -> None:
    """A single figure that a table of the same source holds is not there beside the table."""
    twice = [
        (platform.id, figure.value)
        for platform in all_platforms()
        for figure in platform.published
        if figure.metric == "busbw" and figure.kind == "measured"
        for sweep in platform.sweeps
        if (sweep.test, sweep.nodes, sweep.gpus, sweep.source)
        == (figure.test, figure.nodes, figure.gpus, figure.source)
        and any(size == figure.size_bytes and abs(rate - figure.value) < 0.5 for size, rate in sweep.points)
    ]
    assert twice == []


def test_algorithms_are_those_with_a_bound() -> None:
    assert set(platform_resolution.ALGORITHMS) == set(NAMES)


def test_a_site_adds_its_own_table_to_those_it_takes_over() -> None:
    ours = find_platform("ours", (platform_file("ours", TABLE, head='extends = ["aws-p5"]\n'),))
    taken = find_platform("aws-p5").platform.sweeps
    assert [each.document for each in ours.platform.sweeps] == ["wiki", *(each.document for each in taken)]
    (origin,) = [each for each in ours.origins if each.path == "sweeps[0]"]
    assert origin.file.endswith("/ours.toml")


def test_a_site_drops_the_tables_it_takes_over() -> None:
    ours = find_platform("ours", (platform_file("ours", head='extends = ["aws-p5"]\nunknown = ["sweeps"]\n'),))
    assert ours.platform.sweeps == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[[1024, 0.5], [2048, 1]]", "[]", "no point"),
        ("[2048, 1]", "[1024, 1]", "do not ascend"),
        ("[1024, 0.5]", "[0, 0.5]", "do not ascend"),
        ("[2048, 1]", "[2048, 0]", "a bus bandwidth of 0 GB/s"),
        ("[2048, 1]", "[2048, 1, 2]", "expected `array` of length 2"),
        ("gpus = 16", "gpus = 15", "15 GPUs are not the same number on each of 2 nodes"),
        ("nodes = 2", "nodes = 0", "on each of 0 nodes"),
        ('"all_reduce"', '"allreduce"', "'allreduce' is not a collective"),
        ('"wiki"', '" "', "`document` is empty"),
        ('"wiki"', '"wiki"\nalgorithm = "Ring"', "'Ring' is not an algorithm: one of ring, tree"),
        ('"wiki"', '"wiki"\nnetwork = "tcp"', "invalid enum value 'tcp'"),
        ('"wiki"', '"wiki"\nsize_bytes = 8', "unknown key 'size_bytes'"),
        ('document = "wiki"', "", "missing required field `document`"),
    ],
)
def test_a_table_that_cannot_be_one_is_refused_with_its_file_and_place(old: str, new: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        find_platform("ours", (platform_file("ours", TABLE.replace(old, new)),))
    assert words in str(caught.value)
    assert "ours.toml: sweeps[0]" in str(caught.value.where)


ANY_SIZES = st.lists(st.integers(-(2**10), 2**40), min_size=1, max_size=8)
ASCENDING = st.sets(st.integers(1, 2**40), min_size=1, max_size=8).map(sorted)


@settings(deadline=None)
@given(ASCENDING | ANY_SIZES, st.floats(-1, 1e4), st.integers(-1, 4), st.sampled_from((-1, 0, 1, 8, 12, 15)))
def test_a_table_is_taken_just_when_it_can_be_one(sizes: list[int], rate: float, nodes: int, gpus: int) -> None:
    points = ", ".join(f"[{size}, {rate!r}]" for size in sizes)
    text = TABLE.replace("[[1024, 0.5], [2048, 1]]", f"[{points}]")
    text = text.replace("nodes = 2", f"nodes = {nodes}").replace("gpus = 16", f"gpus = {gpus}")
    ascending = sizes == sorted(set(sizes)) and sizes[0] > 0
    can_be = ascending and rate > 0 and nodes >= 1 and gpus >= 1 and gpus % nodes == 0
    file = platform_file("ours", text)
    if can_be:
        (sweep,) = find_platform("ours", (file,)).platform.sweeps
        assert sweep.points == tuple((size, rate) for size in sizes)
    else:
        with pytest.raises(InputError):
            find_platform("ours", (file,))


def test_tables_measured_here_are_the_medians_of_their_page() -> None:
    for name, gpus in (("2026-11-22-side-by-side-two-h200", 2), ("2026-11-21-side-by-side", 4)):
        rows = json.loads((ROOT / "docs" / "measurements" / f"{name}.json").read_text())
        own = {
            sweep.test: dict(sweep.points)
            for sweep in find_platform("aws-p5en").platform.sweeps
            if sweep.document.startswith("busbw-") and sweep.gpus == gpus
        }
        assert len(rows) == sum(map(len, own.values())) == 144
        for row in rows:
            factor = COLLECTIVES[row["collective"]].factor(gpus)
            rate = factor * row["size_bytes"] / row["busbw_us"] / 1e3
            assert own[row["collective"]][row["size_bytes"]] == pytest.approx(rate, rel=1e-4)
