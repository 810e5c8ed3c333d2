"""What is said of a metric over time: series, changes, and the answer of a call."""

import random
from pathlib import Path

import pytest
from tests.exports.factories import make_run as make_wrong_run

from busbw.api.history import trend_of
from busbw.base.errors import InputError
from busbw.model.history import PointSelection, Selection, Trend
from busbw.store import tags

from .stored import keep, make_run

KiB = 2**10


def trend(base: Path, metric: str = "busbw", *, by: str = "host", **wanted: object) -> Trend:
    return trend_of(
        base,
        metric,
        Selection(),
        PointSelection(**{"sizes_bytes": (16 * KiB,), "in_place": False, **wanted}),  # type: ignore[arg-type]
        by=by,  # type: ignore[arg-type]
        false_alarms=0.01,
        least_change=0.01,
        say=print,
    )


def nightly(base: Path, levels: list[float], *, host: str = "node00", first: int = 0, **changes: object) -> None:
    """Store a run a day; each takes its level longer than usual, give or take half a percent."""
    rng = random.Random(f"{host} {first}")
    for number, level in enumerate(levels, start=first):
        keep(make_run(number, host=host, slower=level * rng.gauss(1, 0.005), **changes), base)  # type: ignore[arg-type]


def test_a_level_that_stays_is_steady(base: Path):
    nightly(base, [1.0] * 30)
    found = trend(base)
    (series,) = found.series
    assert (found.outcome, series.outcome) == ("steady", "steady")
    assert series.changes == ()
    (level,) = series.levels
    assert level.low is not None
    assert level.high is not None
    assert (level.runs, level.low < level.median < level.high) == (30, True)
    assert found.sentence == "steady: busbw keeps its level in 1 series"


def test_a_regression_says_by_how_much_since_when_and_what_else_changed(base: Path):
    nightly(base, [1.0] * 25)
    nightly(base, [1.05] * 12, first=25, mpi_version="5.0.8")
    found = trend(base)
    (series,) = found.series
    assert found.outcome == "worse"
    (change,) = series.changes
    assert change.run_id.endswith("-0025")
    assert change.share == pytest.approx(1 / 1.05 - 1, abs=0.005)
    assert change.with_it == ("libraries: Open MPI 5.0.7 -> Open MPI 5.0.8",)
    assert found.sentence.startswith("regression: all_reduce 16 KiB on node00 is worse by 4.")
    assert "since 2026-01-26 00:00" in found.sentence
    assert "25 runs before, 12 after; with it libraries: Open MPI 5.0.7 -> Open MPI 5.0.8" in found.sentence
    assert "\n" not in found.sentence


def test_settings_that_changed_with_it_are_named_and_a_number_of_each_job_is_not(base: Path):
    rng = random.Random(1)
    for number in range(40):
        ours = {"NCCL_ALGO": "Ring"} if number < 25 else {"NCCL_PROTO": "LL"}
        settings = {**ours, "SLURM_JOB_ID": str(number), "NCCL_DEBUG": "WARN"}
        keep(make_run(number, slower=(1.0 if number < 25 else 1.2) * rng.gauss(1, 0.005), settings=settings), base)
    (change,) = trend(base).series[0].changes
    assert change.with_it == ('NCCL_ALGO: "Ring" -> unset', 'NCCL_PROTO: unset -> "LL"')


def test_more_is_worse_of_a_time_and_better_of_a_rate(base: Path):
    nightly(base, [1.0] * 20 + [0.9] * 15)
    assert trend(base, "busbw").outcome == "better"
    assert trend(base, "time").outcome == "better"
    assert trend(base, "time").series[0].changes[0].share < 0


def test_a_recovered_regression_is_no_regression(base: Path):
    nightly(base, [1.0] * 30 + [1.1] * 20 + [1.0] * 30)
    found = trend(base)
    assert [change.is_worse for change in found.series[0].changes] == [True, False]
    assert found.outcome == "better"


def test_too_few_runs_cannot_tell_even_where_they_differ(base: Path):
    nightly(base, [1.0] * 6 + [1.5] * 6)
    found = trend(base)
    assert found.outcome == "cannot_tell"
    assert found.series[0].sentence == f"cannot tell: 12 runs, and a change shows from {found.least_runs} on"


def test_nothing_that_fits_cannot_tell(base: Path):
    assert trend(base).outcome == "cannot_tell"
    nightly(base, [1.0] * 3)
    found = trend(base, sizes_bytes=(3,))
    assert (found.outcome, found.sentence) == ("cannot_tell", "cannot tell: no stored run that fits has a busbw")


def test_a_series_that_cannot_be_told_does_not_hide_the_others(base: Path):
    nightly(base, [1.0] * 20 + [1.2] * 20)
    nightly(base, [1.0] * 3, host="new", first=50)
    found = trend(base)
    assert [series.outcome for series in found.series] == ["cannot_tell", "worse"]
    assert found.outcome == "worse"
    assert "cannot tell of 1 with fewer than" in found.sentence


def test_hosts_are_series_of_their_own_and_a_platform_takes_its_hosts_together(base: Path):
    for number in range(40):
        changes = {"host": f"node{number % 2:02d}", "platform": "azure-ndv4", "slower": 1 + number % 2 * 0.5}
        keep(make_run(number, **changes), base)  # type: ignore[arg-type]
    assert [series.group for series in trend(base).series] == ["node00", "node01"]
    (series,) = trend(base, by="platform").series
    assert (series.group, len(series.observations), series.outcome) == ("azure-ndv4", 40, "steady")


def test_a_run_with_two_tags_counts_for_both(base: Path):
    first = keep(make_run(0, tag="nightly"), base)
    keep(make_run(1), base)
    tags.add(first, "golden")
    groups = {series.group: len(series.observations) for series in trend(base, by="tag").series}
    assert groups == {"nightly": 1, "golden": 1, "without a tag": 1}


def test_what_cannot_stand_on_one_line_does_not(base: Path):
    nightly(base, [1.0] * 3)
    found = trend(base, sizes_bytes=(), in_place=None)
    sizes = ("1 KiB", "4 KiB", "16 KiB")
    assert [series.title for series in found.series] == [
        f"all_reduce {size}, {place}" for size in sizes for place in ("out of place", "in place")
    ]


def test_wrong_results_are_left_out_and_counted(base: Path):
    keep(make_wrong_run(), base)
    found = trend(base, sizes_bytes=(4 * KiB,), in_place=True)
    assert (found.series, found.without_value) == ((), 1)


def test_a_metric_that_there_is_not_is_refused(base: Path):
    with pytest.raises(InputError, match="'speed' is not a metric"):
        trend(base, "speed")
