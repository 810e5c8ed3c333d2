"""Faults put into a real network of eight hosts are named, each time; without one none is."""

from typing import Any

import pytest

from .network import RATE, Fabric

pytestmark = [pytest.mark.root, pytest.mark.slow]
HALF = "12mbit"
# Of an uplink that three hosts share: less takes twice as long, and shows no more.
UPLINK = "18mbit"
# Three runs, each with an order of pairs and draws of its own.
seeds = pytest.mark.parametrize("seed", [1, 2, 3])


def places(report: dict[str, Any]) -> list[str]:
    """Return what a report names."""
    return [each["place"] for each in report["answers"]]


@seeds
def test_without_a_fault_nothing_is_named(fabric: Fabric, seed: int) -> None:
    report = fabric.measure("--expect", f"{RATE.removesuffix('mbit')}Mb/s", seed=seed)

    assert report["verdict"]["outcome"] == "ok", report
    assert places(report) == []
    assert report["unanswered"] == 0
    assert not report["simulated"]


@seeds
def test_a_throttled_host_is_named(fabric: Fabric, seed: int) -> None:
    fabric.lab.shape("n2", HALF)

    assert places(fabric.measure(seed=seed)) == ["node n2"]


@seeds
def test_one_direction_of_a_cable_is_named(fabric: Fabric, seed: int) -> None:
    fabric.lab.shape("n4", HALF, ("sends",))

    assert places(fabric.measure(seed=seed)) == ["NIC of n4, sending"]


@seeds
def test_an_uplink_is_named(fabric: Fabric, seed: int) -> None:
    fabric.lab.shape_uplink(1, UPLINK)

    assert places(fabric.measure(seed=seed)) == ["uplinks of leaf1"]


@seeds
def test_a_cable_that_comes_and_goes_is_named(fabric: Fabric, seed: int) -> None:
    with fabric.meanwhile(lambda ended: fabric.flap("n5", ended)):
        report = fabric.measure(seed=seed)

    assert places(report) == ["link of n5, which comes and goes"]


@seeds
def test_a_host_that_stands_still_is_named_and_the_others_are_measured(fabric: Fabric, seed: int) -> None:
    with fabric.meanwhile(lambda ended: fabric.stop_rank("n6", ended)):
        report = fabric.measure(seed=seed)

    assert places(report) == ["node n6, which does not answer"]
    assert report["rounds"] >= 7
    # One round waited for it; in the others its partner rested.
    assert report["tests"] - report["unanswered"] >= 2 * (7 * 3)
