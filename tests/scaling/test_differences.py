"""How one system lies against another: matched by scale, with an interval that covers, and no claim beyond it."""

import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.api.scaling_reports import ScalingRequest, scaling
from busbw.base.errors import InputError
from busbw.judge.scaling.application import application_view
from busbw.judge.scaling.collective import collective_view
from busbw.model.scaling import LineDifference, Observation, ScalingEstimate, ScalingReport

from .observed import measured, timed

SAMPLES = Path(__file__).parent / "samples"
TWO_SYSTEMS = str(SAMPLES / "grok1-two-systems.csv")
SCALES = (8, 16, 32, 64, 128, 256, 512, 1024)


def pair(ratios: dict[int, float], *, rounding: float | None = None) -> LineDifference:
    """Return the difference of `new` from `old`, which has one unit of work a second and node."""

    def rate(value: float) -> ScalingEstimate:
        if rounding is None:
            return ScalingEstimate(value=value)
        return ScalingEstimate(value=value, low=value * (1 - rounding), high=value * (1 + rounding), basis="digits")

    rows = [
        Observation(source="t", settings=(("system", name),), nodes=at, rate=rate(at * share), rate_unit="tokens/s")
        for at, ratio in ratios.items()
        for name, share in (("old", 1.0), ("new", ratio))
    ]
    (found,) = application_view(rows, axis="nodes", kind="weak").differences
    return found


def two_systems(**asked: object) -> ScalingReport:
    return scaling(ScalingRequest(sources=(TWO_SYSTEMS,), kind="weak", **asked))  # type: ignore[arg-type]


def test_two_published_systems_are_one_sentence_a_type_with_centre_interval_and_points() -> None:
    report = two_systems()
    found = {each.line: each for each in report.views[0].differences}
    bf16 = found["Azure ND H100 v5, BF16"]
    assert bf16.reference == "DGX H100, BF16"
    assert bf16.words.startswith(
        "BF16: Azure ND H100 v5 is 2.4 % below DGX H100 in speed (95 % interval 0.4 to 4.3 % below, 8 points, "
        "8 to 1024 GPUs)"
    )
    # The geometric mean and Student's t with seven degrees of freedom, by hand.
    steps = zip(
        (24.03, 21.52, 10.64, 20.64, 20.64, 20.7, 20.83, 21.0),
        (24.1, 21.9, 10.7, 21.0, 21.2, 20.8, 22.0, 22.4),
        strict=True,
    )
    logs = [math.log(reference / own) for reference, own in steps]
    mean = sum(logs) / 8
    half = 2.364624 * math.sqrt(sum((each - mean) ** 2 for each in logs) / 7 / 8)
    assert bf16.change is not None
    assert (bf16.change.value, bf16.change.low, bf16.change.high) == pytest.approx(
        (math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half)), abs=1e-6
    )
    assert report.verdict is not None
    assert report.verdict.outcome == "measured"
    assert bf16.words in report.verdict.sentence


def test_a_difference_that_changes_with_the_scale_says_so_and_its_average_is_not_called_proof() -> None:
    fp8 = next(each for each in two_systems().views[0].differences if "FP8" in each.line)
    assert fp8.answer == "none_shown"
    assert fp8.words.endswith("but it changes with the GPUs: 2.5 % above at 8, 8.2 % below at 1024")
    assert "every figure is a single result" in fp8.meaning
    assert "how far two runs of one system lie apart is not in it" in fp8.meaning
    assert "the average holds for these sizes only" in fp8.meaning


def test_sizes_without_a_partner_and_sizes_with_other_work_are_named_and_not_counted() -> None:
    assert [each.unmatched for each in two_systems().views[0].differences] == [
        ((2048, "measured on DGX H100 only"),)
    ] * 2
    rows = [
        timed(at, 10.0, settings={"system": name, "layers": layers})
        for at, name, layers in ((1, "old", "2"), (2, "old", "4"), (1, "new", "2"), (2, "new", "8"))
    ]
    (found,) = application_view(rows, axis="nodes", kind="weak", ignored=("gbs",)).differences
    assert [point.at for point in found.points] == [1]
    assert found.unmatched == ((2, "layers 8 against 4"),)


def test_the_reference_can_be_chosen_and_an_unknown_one_is_refused_with_those_there_are() -> None:
    swapped = two_systems(against="Azure ND H100 v5").views[0].differences
    assert {each.reference for each in swapped} == {"Azure ND H100 v5, BF16", "Azure ND H100 v5, FP8"}
    by_line = two_systems(against="DGX H100, FP8").views[0].differences
    assert [each.reference for each in by_line] == ["DGX H100, FP8"] * 3
    with pytest.raises(InputError, match="no line is called 'Eos'") as caught:
        two_systems(against="Eos")
    assert caught.value.hint is not None
    assert "DGX H100" in caught.value.hint


def test_one_published_point_has_no_interval_but_that_of_its_digits() -> None:
    found = pair({10752: 0.977}, rounding=0.001)
    assert found.answer == "cannot_tell"
    assert found.change is None
    assert found.words == (
        "new against old in tokens/s: 2.3 % below at 10752 nodes, -2.5 to -2.1 % by rounding "
        "(1 point in common, three are the least for an interval)"
    )


def test_two_tables_without_a_column_of_the_system_are_two_lines(tmp_path: Path) -> None:
    for name, factor in (("bare", 1.0), ("virtual", 0.97)):
        rows = "".join(f"{at},{1000 * at * factor:.0f}\n" for at in (8, 16, 32, 64))
        (tmp_path / f"{name}.csv").write_text("gpus,tokens_per_s\n" + rows)
    tables = tuple(str(tmp_path / f"{name}.csv") for name in ("bare", "virtual"))
    (view,) = scaling(ScalingRequest(sources=tables, kind="weak")).views
    assert [series.label for series in view.series] == ["bare", "virtual"]
    assert view.differences[0].words.startswith("virtual is 3.0 % below bare in tokens/s")


def test_two_lines_of_a_collective_are_held_against_each_other_at_the_nodes_of_both() -> None:
    here = [measured(nodes, 300, settings={"series": "old"}) for nodes in (4, 8, 16, 32)]
    here += [measured(nodes, 291 + nodes % 3, settings={"series": "new"}) for nodes in (4, 8, 16)]
    (found,) = collective_view(here, axis="nodes", size_bytes=2**30).differences
    assert (found.line, found.reference, found.quantity, found.answer) == ("new", "old", "bus bandwidth", "below")
    assert found.unmatched == ((32, "measured on old only"),)


def test_three_algorithms_are_no_systems_and_are_not_held_against_each_other() -> None:
    report = scaling(ScalingRequest(sources=(str(SAMPLES / "together-b200.csv"),)))
    assert report.views[0].differences == ()
    chosen = scaling(ScalingRequest(sources=(str(SAMPLES / "together-b200.csv"),), against="ring"))
    assert {each.line for each in chosen.views[0].differences} == {"tree", "nvlstree", "collnet"}


@pytest.mark.parametrize("count", [3, 5, 8])
def test_the_interval_covers_the_difference_of_two_systems_at_the_stated_rate(count: int) -> None:
    source = random.Random(count)
    covered, claimed = [], []
    for _ in range(1500):
        found = pair({at: 0.98 * math.exp(source.gauss(0, 0.01)) for at in SCALES[:count]})
        change = found.change
        assert change is not None
        assert change.low is not None
        assert change.high is not None
        covered.append(change.low <= -0.02 <= change.high)
        same = pair({at: math.exp(source.gauss(0, 0.01)) for at in SCALES[:count]})
        claimed.append(same.answer != "none_shown")
    # 95 % and 5 % are stated; three standard deviations of 1500 tries are 1.7 %.
    assert sum(covered) / len(covered) == pytest.approx(0.95, abs=0.017)
    assert sum(claimed) / len(claimed) < 0.067


RATIOS = st.lists(st.floats(0.5, 2.0), min_size=3, max_size=8)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ratios=RATIOS, rounding=st.floats(1e-6, 0.1))
def test_the_interval_is_never_narrower_than_the_rounding_and_holds_its_centre(
    ratios: list[float], rounding: float
) -> None:
    change = pair(dict(zip(SCALES, ratios, strict=False)), rounding=rounding).change
    assert change is not None
    assert change.low is not None
    assert change.high is not None
    # Both of a pair may lie off by their rounding, in opposite directions.
    allowed = (1 + rounding) / (1 - rounding)
    assert change.low <= change.value <= change.high
    assert (1 + change.low) * allowed <= (1 + change.value) * (1 + 1e-9)
    assert (1 + change.high) >= (1 + change.value) * allowed * (1 - 1e-9)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(ratios=RATIOS, faster=st.floats(1.0, 3.0))
def test_a_faster_system_never_looks_slower_and_order_does_not_matter(ratios: list[float], faster: float) -> None:
    here = dict(zip(SCALES, ratios, strict=False))
    plain = pair(here)
    raised = pair({at: ratio * faster for at, ratio in here.items()})
    turned = pair(dict(reversed(here.items())))
    assert plain.change is not None
    assert raised.change is not None
    assert raised.change.value >= plain.change.value - 1e-12
    assert turned == plain
    rank = {"below": 0, "none_shown": 1, "above": 2}
    assert rank[raised.answer] >= rank[plain.answer]
