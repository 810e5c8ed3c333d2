"""What starting work takes on real GPUs: an empty launch on every GPU, and small messages that wait for the host."""

import pytest

SHORT = ("--time-limit", "3", "--min-samples", "30")
# A launch takes the driver a microsecond at least, and no sane host a millisecond.
LEAST_S, MOST_S = 0.5e-6, 1e-3


def empty(launches: list[dict]) -> list[float]:
    return [one["host_s"] for one in launches]


@pytest.mark.parametrize("per_process", ["1", "2"])
def test_an_empty_launch_is_timed_on_every_gpu(run, per_process: str) -> None:
    found = run("all_reduce", "--ranks", "2", "-g", per_process, "-b", "1K", "-e", "4M", "-f", "4096", *SHORT)
    small, large = found.points
    for launches in (found.run["launches"], small["launch"]["before"], small["launch"]["after"]):
        assert [one["rank"] for one in launches] == [0, 1]
        assert all(LEAST_S < one["host_low_s"] <= one["host_s"] <= one["host_high_s"] < MOST_S for one in launches)
        # Events tell half microseconds over twenty launches.
        assert all(one["device_s"] > 0.9 * one["host_low_s"] for one in launches)
    assert large["launch"]["before"] == large["launch"]["after"] == []


def test_a_small_message_takes_at_least_as_long_as_starting_it(run) -> None:
    found = run("all_reduce", "--ranks", "2", "-b", "1K", "-e", "1K", *SHORT)
    (point,) = found.points
    assert min(empty(point["launch"]["before"] + point["launch"]["after"])) < point["launch"]["issue_s"]
    assert point["launch"]["issue_s"] < 1.02 * point["median_s"]


def test_a_graph_starts_many_calls_at_once(run) -> None:
    found = run("all_reduce", "--ranks", "2", "-b", "1K", "-e", "1K", "--mode", "graph", *SHORT)
    (point,) = found.points
    # One launch for all calls of a sample.
    assert point["launch"]["issue_s"] < max(empty(point["launch"]["before"]))
