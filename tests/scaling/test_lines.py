"""What may stand on one line and in one figure, and what tells lines apart."""

import pytest

from busbw.base.errors import InputError
from busbw.judge.scaling.collective import KnownPlatform, collective_view
from busbw.judge.scaling.conclusion import findings_of
from busbw.judge.scaling.lines import groups_of, selected, sizes_of
from busbw.judge.scaling.places import axis_of
from busbw.machine.named import platform
from busbw.model.scaling import Observation, Scaling, ScalingEstimate

from .observed import GiB, measured


def drawn(observations: list[Observation], **asked: object) -> Scaling:
    return collective_view(observations, axis="nodes", size_bytes=GiB, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "other", "reason"),
    [
        ("collective", "alltoall", "count different traffic"),
        ("type", "float16", "added at another speed"),
        ("op", "prod", "what they cost"),
    ],
)
def test_results_of_two_kinds_share_no_figure_unless_one_is_chosen(name: str, other: str, reason: str) -> None:
    own = {"collective": "all_reduce", "type": "float32", "op": "sum"}
    both = [measured(2, 300, conditions=own), measured(4, 300, conditions=own | {name: other})]
    with pytest.raises(InputError, match=reason) as caught:
        selected(both, {})
    assert caught.value.hint is not None
    kept, _ = selected(both, {name: other})
    assert kept == (both[1],)
    with pytest.raises(InputError, match="nothing here"):
        selected(both, {"collective": "broadcast"})


@pytest.mark.parametrize(
    ("name", "one", "other", "reason"),
    [
        ("mode", "isolated", "stream", "back to back"),
        ("statistic", "median", "mean over iterations and ranks", "a mean and a median"),
        ("ranks of a node", "8", "4", "share its NICs"),
    ],
)
def test_results_of_two_kinds_share_no_line(name: str, one: str, other: str, reason: str) -> None:
    mixed = [measured(2, 300, conditions={name: one}), measured(4, 300, conditions={name: other})]
    with pytest.raises(InputError, match=reason) as caught:
        groups_of(mixed, "nodes", None)
    assert caught.value.where == "run-2, run-4"


def test_other_ranks_of_a_node_are_no_obstacle_where_ranks_of_one_host_are_the_axis() -> None:
    mixed = [
        measured(1, 3, ranks=2, conditions={"ranks of a node": "2"}),
        measured(1, 3, ranks=4, conditions={"ranks of a node": "4"}),
    ]
    assert axis_of(mixed, None) == "ranks"
    assert len(groups_of(mixed, "ranks", None)) == 1


def test_out_of_place_is_drawn_where_a_log_has_both_forms_and_a_note_says_so() -> None:
    both = [measured(2, 300, conditions={"form": form}) for form in ("in place", "out of place")]
    kept, notes = selected(both, {})
    assert kept == (both[1],)
    assert "out of place only" in notes[0]
    assert selected(both, {"form": "in place"}) == ((both[0],), ())


def test_sizes_that_differ_by_rounding_are_one_and_the_largest_common_one_is_drawn() -> None:
    here = [measured(nodes, 300, size_bytes=size) for nodes, size in ((2, 4096), (3, 4080), (2, GiB), (4, 4096))]
    assert sizes_of(here, (), "nodes") == ((4096,), ("the largest size that all have; another with --size",))
    assert sizes_of(here, (4080,), "nodes")[0] == (4096,)
    view = collective_view(here, axis="nodes", size_bytes=4096)
    assert [point.at for point in view.series[0].points] == [2, 3, 4]


def test_without_a_common_size_the_one_that_most_have_is_named() -> None:
    here = [measured(2, 300, size_bytes=2**20), measured(4, 300, size_bytes=2**20), measured(8, 300)]
    with pytest.raises(InputError, match="no size was measured by all") as caught:
        sizes_of(here, (), "nodes")
    assert caught.value.hint == "2 of 3 have 1 MiB: --size 1048576"
    with pytest.raises(InputError, match="nothing was measured with 2 MiB"):
        sizes_of(here, (2**21,), "nodes")


def test_algorithms_tag_and_variables_are_lines_of_their_own_where_places_have_both() -> None:
    for name, plain, other in (
        ("algorithm", "ring", "collnet"),
        ("tag", "before", "after"),
        ("NCCL_COLLNET_ENABLE", "not told", "1"),
    ):
        here = [measured(nodes, 300, settings={name: plain} if plain != "not told" else {}) for nodes in (2, 4, 8)]
        here += [measured(nodes, 500, settings={name: other}) for nodes in (2, 4, 8)]
        groups = groups_of(here, "nodes", None)
        assert [len(group.observations) for group in groups] == [3, 3], name
        assert other in groups[1].label


def test_a_tag_of_each_run_and_an_algorithm_that_changes_with_the_nodes_are_no_lines_but_notes() -> None:
    used = {2: "tree", 4: "tree", 8: "ring"}
    here = [measured(nodes, 300, settings={"tag": f"run{nodes}", "algorithm": used[nodes]}) for nodes in (2, 4, 8)]
    view = drawn(here)
    assert [series.label for series in view.series] == [""]
    assert "algorithm changes along the line: tree from 4 on, ring from 8 on" in view.notes
    # Of a point that is not part of what is told nothing is said.
    assert dict(view.series[0].left_out).keys() == {2}


def test_chosen_settings_tell_lines_apart_and_unknown_ones_are_refused() -> None:
    here = [measured(nodes, 300, settings={"tag": tag}) for nodes, tag in ((2, "a"), (4, "b"))]
    assert [group.label for group in groups_of(here, "nodes", ("tag",))] == ["a", "b"]
    with pytest.raises(InputError, match="'rail'"):
        groups_of(here, "nodes", ("rail",))


def test_launches_of_one_place_are_one_point_with_how_far_they_lie_apart() -> None:
    (line,) = drawn([measured(4, 300), measured(4, 310), measured(4, 305), measured(8, 300)]).series
    point = line.points[0]
    assert point.busbw_Bps is not None
    assert (point.observations, point.busbw_Bps.value, point.busbw_Bps.low, point.busbw_Bps.high) == (
        3,
        305e9,
        300e9,
        310e9,
    )
    assert point.busbw_Bps.basis == "launches"


def test_nodes_that_nobody_tells_are_refused_with_the_result_that_lacks_them() -> None:
    here = [measured(2, 300), measured(None, 300, source="job.log:7", ranks=32)]
    with pytest.raises(InputError, match="how many nodes") as caught:
        axis_of(here, "nodes")
    assert caught.value.where == "job.log:7"
    with pytest.raises(InputError, match="on how much of the machine"):
        axis_of([measured(None, 300)], None)


def test_over_mpi_two_nodes_are_part_of_the_line_and_over_nccl_they_are_not() -> None:
    for tool, left_out in (("native-mpi", [1]), ("native-nccl", [1, 2, 3])):
        (line,) = drawn([measured(nodes, 10, settings={"tool": tool}) for nodes in (1, 2, 3, 4, 8)]).series
        assert [at for at, _ in line.left_out] == left_out


def test_small_messages_are_looked_at_by_their_time_and_warn_of_nothing() -> None:
    latency_s = {2: 20e-6, 4: 30e-6, 8: 40e-6, 16: 50e-6}
    sizes = {2**10: 0.0, 2**20: 3e-6, 2**30: 3e-3}
    here = [
        measured(
            nodes,
            size_bytes / (latency_s[nodes] + more_s) / 1e9,
            size_bytes=size_bytes,
            time_s=ScalingEstimate(value=latency_s[nodes] + more_s),
            settings={"tool": "native-nccl", "algorithm": "ring"},
        )
        for nodes in latency_s
        for size_bytes, more_s in sizes.items()
    ]
    small, large = (collective_view(here, axis="nodes", size_bytes=size_bytes) for size_bytes in (2**20, 2**30))
    assert (small.series[0].judged_by, large.series[0].judged_by) == ("time", "busbw")
    assert small.series[0].trend is not None
    assert small.series[0].trend.answer == "rises"
    assert findings_of(small) == ()
    assert any("a small message takes up to 94 % of its time" in note for note in small.notes)


def test_a_fall_within_one_node_is_no_finding_and_over_nodes_it_is() -> None:
    rates = {2: 400, 4: 300, 8: 200, 16: 100}
    within = [measured(1, rate, ranks=ranks) for ranks, rate in rates.items()]
    over = [measured(nodes, rate, settings={"algorithm": "ring"}) for nodes, rate in rates.items()]
    one, many = (
        collective_view(here, axis=axis, size_bytes=GiB) for here, axis in ((within, "ranks"), (over, "nodes"))
    )
    assert {view.series[0].trend.answer for view in (one, many) if view.series[0].trend is not None} == {"falls"}
    assert findings_of(one) == ()
    assert [finding.code for finding in findings_of(many)] == ["SCAL002"]


@pytest.mark.parametrize(
    ("rates", "code", "severity"),
    [
        ((100, 100, 100.2, 100, 99.9, 97), "SCAL004", "note"),
        ((100, 100, 100.2, 100, 99.9, 90), "SCAL001", "warn"),
        # Small at every point and not small from end to end: no note alone.
        ((100, 100, 100, 97, 96, 95.2, 95.2), "SCAL002", "warn"),
        # The first of them is a little lower, the last is not.
        ((100, 100, 100.2, 100, 97.5, 80), "SCAL001", "warn"),
    ],
)
def test_a_fall_is_a_note_only_where_it_is_small_at_every_point_and_in_all(
    rates: tuple[float, ...], code: str, severity: str
) -> None:
    here = [measured(4 * 2**step, rate, settings={"algorithm": "ring"}) for step, rate in enumerate(rates)]
    (found,) = findings_of(drawn(here))
    assert (found.code, found.severity) == (code, severity)
    assert found.fix is not None


def test_sharp_that_is_turned_on_has_its_own_limit() -> None:
    known = KnownPlatform(platform=platform("azure-nd-h100-v5").platform, name="azure-nd-h100-v5")
    here = [
        measured(nodes, rate, settings=settings)
        for settings, rate in (({}, 360), ({"NCCL_COLLNET_ENABLE": "1"}, 600), ({"NCCL_ALGO": "Ring"}, 350))
        for nodes in (4, 8, 16)
    ]
    view = drawn(here, known=known)
    words = [series.points[-1].limit_words for series in view.series]
    assert words == [
        "by ring, the highest: NICs of a node",
        "by collnet, the highest: links of a GPU",
        "by ring: NICs of a node",
    ]
    assert findings_of(view) == ()
