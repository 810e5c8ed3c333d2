"""A simulation whose values scatter as the repeated tests of a real sweep do."""

import math
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from busbw.api.sweeping.fabrics import FabricRequest, judge_fabric
from busbw.base.errors import InputError
from busbw.fabric.places import Metric, PairTest
from busbw.fabric.simulation import FaultKind, noise_of
from busbw.facts.pair_noise import stored_noise
from busbw.model.fabric import METRICS


def repeats(pairs: int, times: int, sigma: float, *, bad: float = 1.0) -> Iterator[PairTest]:
    """Yield tests of disjoint pairs, each made again; those of the first pair slower by `bad`."""
    draws = random.Random(7)
    for pair in range(pairs):
        for number in range(times):
            value = 47e9 * math.exp(draws.gauss(0, sigma)) * (bad if pair == 0 else 1)
            yield PairTest(sender=2 * pair, receiver=2 * pair + 1, round=number, value=value)


@pytest.mark.parametrize(("pairs", "times"), [(400, 2), (50, 16)])
def test_the_scatter_of_a_single_test_comes_out_however_often_each_was_repeated(pairs: int, times: int) -> None:
    noise = noise_of(repeats(pairs, times, 0.005), "bandwidth", (), "t")
    assert len(noise.drawn) == pairs * times
    assert statistics.pstdev(noise.drawn) == pytest.approx(0.005, rel=0.1)


def test_pairs_of_different_speed_are_no_scatter_and_bad_hosts_have_no_part_in_it() -> None:
    slow = noise_of(repeats(50, 4, 0.005, bad=0.5), "bandwidth", (), "t")
    assert statistics.pstdev(slow.drawn) == pytest.approx(0.005, rel=0.2)
    assert len(noise_of(repeats(50, 4, 0.005), "bandwidth", {0}, "t").drawn) == 49 * 4


def test_both_directions_of_a_test_without_directions_are_one_pair() -> None:
    tests = [PairTest(sender=at % 2, receiver=1 - at % 2, round=at, value=1.6e-6 + at * 1e-9) for at in range(20)]
    assert len(noise_of(tests, "latency", (), "t").drawn) == 20
    assert len(noise_of(tests, "bandwidth", (), "t").drawn) == 20


@pytest.fixture
def table(tmp_path: Path) -> Callable[[float, int], str]:
    """Return what writes a table of all pairs of eight hosts with such a scatter, each so often."""

    def write(sigma: float, times: int) -> str:
        draws, path = random.Random(3), tmp_path / f"{sigma}-{times}.csv"
        rows = [
            f"n{one},n{other},{380 * math.exp(draws.gauss(0, sigma)):.3f},Gb/s,{number}"
            for number in range(times)
            for one in range(8)
            for other in range(8)
            if one != other
        ]
        path.write_text("\n".join(["sender,receiver,value,unit,round", *rows]) + "\n")
        return str(path)

    return write


def simulated(source: str) -> FabricRequest:
    return FabricRequest(topology="fat-tree-2", nodes=32, fault="node", effect=0.05, seed=2, noise_from=source)


def test_a_small_fault_is_found_under_the_noise_of_a_steady_fabric_and_not_under_that_of_an_unsteady_one(
    table: Callable[[float, int], str],
) -> None:
    steady, unsteady = (judge_fabric(simulated(table(sigma, 4))).report for sigma in (0.003, 0.08))
    assert [each.kind for each in steady.answers] == ["node"]
    assert unsteady.answers == ()
    assert "noise of 224 repeated tests of" in steady.title
    assert steady.simulated


def test_results_without_repeats_and_results_that_are_not_there_are_refused(table: Callable[[float, int], str]) -> None:
    with pytest.raises(InputError, match="no test of bandwidth between sound hosts of the same pair, made again"):
        judge_fabric(simulated(table(0.003, 1)))
    with pytest.raises(InputError, match="nosuch"):
        judge_fabric(simulated("nosuch"))
    with pytest.raises(InputError, match="of a stored sweep or of a file"):
        judge_fabric(simulated("-"))


def stored(name: str, *, metric: Metric = "bandwidth", fault: FaultKind = "node", seed: int = 5) -> FabricRequest:
    return FabricRequest(topology="fat-tree-2", nodes=64, fault=fault, seed=seed, noise=name, metric=metric)


@pytest.mark.parametrize(
    ("name", "metric"), [(name, metric) for name, kinds in stored_noise().items() for metric in kinds]
)
def test_what_is_stored_is_centred_scatters_and_says_where_it_was_measured(name: str, metric: str) -> None:
    noise = stored_noise()[name][metric]
    assert metric in METRICS
    assert len(noise.drawn) >= 20
    assert abs(statistics.fmean(noise.drawn)) < 1e-4
    assert 0.001 < statistics.pstdev(noise.drawn) < 0.2
    assert tuple(sorted(noise.residuals)) == noise.residuals
    page = Path(__file__).parents[2] / noise.source.split(",")[0]
    assert page.is_file(), noise.source


def test_stored_noise_is_drawn_by_name_and_named_in_the_title() -> None:
    calm = judge_fabric(stored("lab-tcp")).report
    assert [each.kind for each in calm.answers] == ["node"]
    assert "noise of 336 repeated tests (lab-tcp: MPI over TCP" in calm.title
    assert judge_fabric(stored("lab-tcp", fault="none")).report.answers == ()
    # Its tests lie further apart.
    busy = judge_fabric(stored("lab-tcp-busy", fault="none")).report
    assert busy.noise > 2 * calm.noise


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (stored("nosuch"), "no noise nosuch is stored: lab-tcp"),
        (stored("lab-tcp", metric="latency"), "of lab-tcp noise of bandwidth is stored, not of latency"),
    ],
)
def test_noise_that_is_not_stored_is_refused(request_: FabricRequest, words: str) -> None:
    with pytest.raises(InputError, match=words):
        judge_fabric(request_)


@pytest.mark.parametrize("seed", [9100004, 9100008, 9100021, 9100023, 9100035, 9100053, 9100061, 9100071])
def test_tests_that_are_disturbed_everywhere_are_no_bad_cable_and_no_bad_host(seed: int) -> None:
    asked = stored("lab-tcp-busy", fault="none", seed=seed)
    assert judge_fabric(asked).report.answers == ()


@pytest.mark.parametrize("seed", [3, 4])
def test_a_bad_cable_stands_out_among_disturbed_tests(seed: int) -> None:
    found = judge_fabric(stored("lab-tcp-busy", fault="cable-static", seed=seed)).report
    leaf = found.truth[0].split(" at ")[1].split(",")[0]
    assert [each.place for each in found.answers] == [f"one of several cables above {leaf}"]
