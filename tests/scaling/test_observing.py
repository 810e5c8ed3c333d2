"""Runs, imports and what was published as observations."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.exports.factories import make_run
from tests.judge.factories import make_measurement, make_plan, make_sweep, make_wrong

from busbw.judge.scaling.collective import collective_view
from busbw.judge.scaling.observing import of_platform, of_readings, of_run
from busbw.judge.scaling.places import axis_of
from busbw.machine.named import platform
from busbw.model.imported import Reading, Source, Table
from busbw.model.run import Run
from busbw.model.settings import JobEnvironment

SOURCE = Source(name="imb.txt", size_bytes=1, sha256="", compressed=False)


def run_on(hosts: int, busbw_GBps: float, **environment: str) -> Run:
    """Return a run of all_reduce with four ranks on each host."""
    ranks, size_bytes = 4 * hosts, 2**20
    median_s = 2 * (ranks - 1) / ranks * size_bytes / (busbw_GBps * 1e9)
    plan = make_plan(make_sweep("all_reduce"), ranks=ranks)
    plan = replace(
        plan,
        run_id=f"run-{hosts}",
        placement=replace(plan.placement, hosts=tuple(f"node{number}" for number in range(hosts))),
        surroundings=JobEnvironment(where="here", environment=environment),
    )
    return make_run(plan=plan, measurements=(make_measurement("all_reduce", size_bytes, median_s, ranks=ranks),))


def test_a_run_tells_its_nodes_its_interval_and_the_variables_that_matter() -> None:
    (found,) = of_run(run_on(4, 10.0, NCCL_ALGO="Ring", NCCL_DEBUG="INFO", HOME="/root"))
    assert (found.nodes, found.ranks, found.source, found.size_bytes) == (4, 16, "run-4", 2**20)
    assert dict(found.conditions)["ranks of a node"] == "4"
    assert {name for name, _ in found.settings} >= {"tool", "NCCL_ALGO"}
    assert not {name for name, _ in found.settings} & {"NCCL_DEBUG", "HOME"}
    rate = found.busbw_Bps
    assert rate is not None
    assert (rate.value, rate.low, rate.high) == pytest.approx((10e9, 10e9 / 1.005, 10e9 / 0.995))
    assert rate.basis == "samples"


def test_the_platform_that_a_result_was_stored_with_or_published_of_is_told() -> None:
    run = run_on(2, 10.0)
    stored = replace(run.plan, surroundings=JobEnvironment(where="here", environment={}, platform="azure-ndv4"))
    assert [each.platform for each in (*of_run(run), *of_run(replace(run, plan=stored)))] == [None, "azure-ndv4"]
    assert {each.platform for each in of_platform(platform("coreweave-h100").platform)} == {"coreweave-h100"}


def test_wrong_results_and_single_ranks_are_no_points() -> None:
    run = run_on(2, 10.0)
    wrong = make_measurement("all_reduce", wrong=make_wrong(), ranks=8)
    alone = make_measurement("all_reduce", ranks=1, busbw_Bps=0.0)
    assert of_run(replace(run, measurements=(wrong, alone))) == ()


def test_runs_over_hosts_are_one_line_over_nodes_and_a_variable_makes_two() -> None:
    runs = [run_on(hosts, 10.0) for hosts in (2, 4, 8)]
    tuned = [run_on(hosts, 12.0, OMPI_MCA_coll_tuned_use_dynamic_rules="1") for hosts in (2, 4, 8)]
    plain = [each for run in runs for each in of_run(run)]
    assert axis_of(plain, None) == "nodes"
    (line,) = collective_view(plain, axis="nodes", size_bytes=2**20).series
    assert [(point.at, point.ranks) for point in line.points] == [(2, 8), (4, 16), (8, 32)]
    both = [*plain, *(each for run in tuned for each in of_run(run))]
    assert len(collective_view(both, axis="nodes", size_bytes=2**20).series) == 2


def row(**values: Any) -> tuple[dict[int, Table], Reading]:
    table = Table(number=0, source=0, first_line=1, last_line=9, tool="imb", statistic="mean", complete=True)
    return {0: table}, Reading(**({"table": 0, "line": 5, "what": "all_reduce", "size_bytes": 4096} | values))


def test_bus_bandwidth_follows_from_a_time_only_where_all_tools_count_the_size_alike() -> None:
    tables, reading = row(ranks=4, time_s=1e-5)
    (found,) = of_readings((SOURCE,), tables, None, [reading])
    assert found.source == "imb.txt:5"
    assert found.busbw_Bps is not None
    assert found.busbw_Bps.value == pytest.approx(1.5 * 4096 / 1e-5)
    for other in ({"what": "all_gather"}, {"ranks": None}, {"wrong": 3}, {"time_s": None}):
        tables, reading = row(**({"ranks": 4, "time_s": 1e-5} | other))
        assert of_readings((SOURCE,), tables, None, [reading]) == ()


def test_only_what_was_measured_on_a_told_number_of_nodes_is_published() -> None:
    found = of_platform(platform("azure-nd-h100-v5").platform)
    assert {each.nodes for each in found} == {1, 4, 8, 16, 32, 64, 128}
    # Not NVIDIA's reference of 470 GB/s on two nodes, which nobody measured here.
    assert 470e9 not in {each.busbw_Bps.value for each in found if each.busbw_Bps is not None}
