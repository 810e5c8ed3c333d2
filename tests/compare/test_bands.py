"""What a comparison says of small, medium and large messages, and where its ranks ran."""

import io

import pytest
from msgspec import structs

from busbw.judge.comparing.comparison import compare
from busbw.judge.comparing.versus import band_of
from busbw.model.comparison import RankPlacement
from busbw.model.record import NcclChoice
from busbw.show.figures.rank_placement import rank_placement_figure
from busbw.show.page.html import report_html
from busbw.show.page.panels import comparison_svg
from busbw.show.rank_placement import placement_columns, placement_rows, rank_placement_words, with_placements
from busbw.show.text.comparison import comparison_text

from .made import launch, point, sides

KIB, MIB = 2**10, 2**20
SIZES = (KIB, 2 * KIB, MIB, 64 * MIB)


def chosen(protocol):
    return (NcclChoice(function="AllReduce", algorithm="RING", protocol=protocol, channels=8),)


def measured(gains, collectives=("all_reduce", "alltoall"), sizes=SIZES, protocols=None, blocks=18):
    """Return launches of two sides: `gains` by size are how many times faster the second is, a little noise apart."""
    protocols = protocols or {}
    return [
        launch(
            side,
            block,
            *(
                point(
                    1e-5 / (gains[size] if side else 1.0) * (1 + 0.001 * ((block * 7 + side * 3) % 5 - 2)),
                    choices=chosen(protocols[size]) if size in protocols else (),
                    size_bytes=size,
                    collective=collective,
                )
                for collective in collectives
                for size in sizes
            ),
        )
        for block in range(blocks)
        for side in (0, 1)
    ]


def pinned(**fields):
    """Return a pinning study: small and medium messages gain, large ones do not."""
    launches = measured({KIB: 1.2, 2 * KIB: 1.2, MIB: 1.1, 64 * MIB: 1.0}, **fields)
    return compare(sides("--bind-to default", "--bind-to masks"), launches, [{}, {}], design="random_order")


def test_each_band_has_a_claim_over_all_collectives():
    small, medium, large = pinned().versus[0].summaries

    assert (small.band, small.outcome, small.faster) == ("small", "faster", ("all_reduce", "alltoall"))
    assert small.sentence == "shown faster at all of 2 collectives, by 20 %"
    assert (medium.outcome, medium.sentence) == ("faster", "shown faster at all of 2 collectives, by 10 %")
    assert (large.outcome, large.faster, large.slower) == ("same", (), ())
    assert large.within is not None
    assert large.within < 0.01
    assert large.sentence.startswith("no difference shown at all of 2 collectives, the intervals lie within 0.")


def test_too_few_blocks_tell_nothing_of_a_band():
    small = pinned(blocks=2).versus[0].summaries[0]

    assert (small.outcome, small.sentence) == ("cannot_tell", "cannot tell at all of 2 collectives: too few blocks")


def test_stored_results_claim_nothing_of_a_band():
    found = compare(sides("a", "b", kind="run"), measured(dict.fromkeys(SIZES, 2.0)), [{}, {}], design="descriptive")

    assert found.versus[0].summaries == ()


def test_a_wide_interval_is_said_as_a_multiple():
    launches = [
        launch(side, block, *(point(1e-5 * (4.0 if side and block % 2 else 1.0), size_bytes=size) for size in SIZES))
        for block in range(18)
        for side in (0, 1)
    ]
    found = compare(sides("a", "b"), launches, [{}, {}], design="random_order")

    assert found.versus[0].summaries[0].sentence == (
        "no difference shown at all_reduce, the intervals lie within a factor of 4"
    )


def test_a_large_difference_is_said_as_a_multiple():
    found = compare(sides("a", "b"), measured(dict.fromkeys(SIZES, 0.001)), [{}, {}], design="random_order")

    assert found.versus[0].summaries[0].sentence == "shown slower at all of 2 collectives, by a factor of 998"


@pytest.mark.parametrize(
    ("size_bytes", "protocol", "band"),
    [
        (32 * KIB, "SIMPLE", "small"),
        (MIB, "SIMPLE", "large"),
        (64 * MIB, "LL", "medium"),
        (MIB, "LL128", "medium"),
        (MIB, None, "medium"),
        (64 * MIB, None, "large"),
    ],
)
def test_from_64_kib_on_the_protocol_decides_where_nccl_tells_it(size_bytes, protocol, band):
    assert band_of(size_bytes, chosen(protocol) if protocol is not None else ()) == band


def test_of_several_protocols_the_size_decides():
    assert band_of(64 * MIB, chosen("LL") + chosen("SIMPLE")) == "large"


def test_the_table_shows_algorithm_and_protocol_and_what_the_bands_mean(capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    comparison_text(pinned(protocols={KIB: "LL", 2 * KIB: "LL", MIB: "LL", 64 * MIB: "SIMPLE"}))
    out = capsys.readouterr().out

    rows = {tuple(line.split()[:2]): line for line in out.splitlines() if line.startswith("all_reduce ")}
    assert rows["all_reduce", "small"].endswith("ring ll")
    assert rows["all_reduce", "large"].endswith("ring simple")
    assert "# small: below 64 KiB; medium with NCCL's protocols LL and LL128, large with Simple" in out
    assert "B against A, small: shown faster at all of 2 collectives, by 20 %" in out


def rank_placements(*numa, gpu=True, cpus=None):
    """Return a rank for each NUMA node named; four ranks' GPUs are beside node 0, the others beside node 1."""
    return tuple(
        RankPlacement(
            rank=rank,
            host="n0",
            cpus=cpus[rank] if cpus is not None else tuple(range(48 * node, 48 * node + 48)),
            numa=(node,),
            gpu_numa=(rank >= len(numa) // 2) * 1 if gpu else None,
        )
        for rank, node in enumerate(numa)
    )


def placed(first, other):
    found = pinned()
    return structs.replace(
        found,
        sides=tuple(
            structs.replace(side, rank_placements=own) for side, own in zip(found.sides, (first, other), strict=True)
        ),
    )


def test_ranks_that_sit_on_another_node_than_their_gpu_are_told():
    found = placed(rank_placements(0, 0, 0, 0), rank_placements(0, 0, 1, 1))
    shown = with_placements(found)

    assert placement_columns(shown) == (
        "rank",
        "host",
        "GPU's node",
        "A: CPUs",
        "node",
        "GPU",
        "B: CPUs",
        "node",
        "GPU",
    )
    assert placement_rows(shown)[3] == ("3", "n0", "1", "0-47", "0", "apart", "48-95", "1", "beside")
    assert [rank_placement_words(side).partition(";")[0] for side in shown] == [
        "A: 2 of 4 ranks on the NUMA node of their GPU alone",
        "B: 4 of 4 ranks on the NUMA node of their GPU alone",
    ]


def test_ranks_that_share_a_cpu_are_told():
    found = placed(
        rank_placements(0, 0, gpu=False, cpus=((0,), (0,))), rank_placements(0, 0, gpu=False, cpus=((0,), (1,)))
    )
    shown = with_placements(found)

    assert placement_columns(shown) == ("rank", "host", "A: CPUs", "node", "B: CPUs", "node")
    assert placement_rows(shown) == (("0", "n0", "0", "0", "0", "0"), ("1", "n0", "0", "0", "1", "0"))
    assert rank_placement_words(shown[0]) == "A: 2 ranks share CPU 0"
    assert rank_placement_words(shown[1]) == "B: each rank has a CPU to itself, or as many as ranks share"


def test_sides_with_alike_rank_placement_show_none(capsys):
    found = placed(rank_placements(0, 0), rank_placements(0, 0))
    comparison_text(found)

    assert with_placements(found) == ()
    assert rank_placement_figure(found) is None
    assert "rank placement" not in capsys.readouterr().out


def test_page_and_drawing_show_where_the_ranks_sat():
    found = placed(rank_placements(0, 0, 0, 0), rank_placements(0, 0, 1, 1))
    figure = rank_placement_figure(found)
    page, drawing = report_html((), found), comparison_svg(found, "light")

    assert figure is not None
    assert [trace["name"] for trace in figure["data"]] == [
        "NUMA node of the GPU",
        "A: node of the CPUs",
        "B: node of the CPUs",
    ]
    assert figure["data"][1]["y"] == [0, 0, 0, 0]
    assert figure["data"][2]["y"] == [0, 0, 1, 1]
    assert "Rank placement" in page
    assert "A: 2 of 4 ranks on the NUMA node of their GPU alone" in page
    assert "shown faster at all of 2 collectives, by 20 %" in page
    assert drawing is not None
    assert "rank placement" in drawing
    assert io.StringIO(drawing).readline().startswith("<")
