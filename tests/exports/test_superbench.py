"""SuperBench's summary has its names and units, and no number for what is wrong or missing."""

import json
import re

import msgspec
import pytest
from tests.judge.factories import make_measurement, make_plan, make_sweep

from busbw.show.exports.rows import Export, export_of_run
from busbw.show.exports.superbench import superbench_lines

from .factories import HOSTILE, make_right_run, make_run


def metrics(export: Export) -> dict[str, object]:
    (line,) = superbench_lines(export).splitlines()
    return json.loads(line)


def test_metrics_are_named_as_nccl_bw_names_them_in_gigabytes_and_microseconds():
    found = metrics(export_of_run(make_right_run()))

    assert found["node"] == "node1"
    assert found["nccl-bw/allreduce_0_0:4096_time"] == pytest.approx(10.0)
    assert found["nccl-bw/allreduce_0_0:4096_algbw"] == pytest.approx(0.4096)
    assert found["nccl-bw/allreduce_0_0:4096_busbw"] == pytest.approx(0.6144)
    assert found["nccl-bw:in-place/allreduce_0_0:4096_time"] == pytest.approx(20.0)
    assert found["nccl-bw/return_code"] == 0


def test_a_wrong_point_has_no_metric_and_its_benchmark_a_return_code():
    found = metrics(export_of_run(make_run()))

    assert not [name for name in found if name.startswith("nccl-bw:in-place/allreduce_0_0:4096")]
    assert found["nccl-bw:in-place/return_code"] == 3
    assert found["nccl-bw/return_code"] == 0


def test_a_missing_point_has_no_metric_and_its_benchmark_a_return_code():
    found = metrics(export_of_run(make_run()))

    assert not [name for name in found if "broadcast_0_0:65536" in name]
    assert found["nccl-bw:root2/return_code"] == 32


def test_nothing_of_a_failed_run_returns_0():
    found = metrics(export_of_run(make_run(outcome="failed")))

    assert {value for name, value in found.items() if name.endswith("return_code")} == {32}


def test_what_nccl_bw_does_not_measure_is_not_called_so():
    found = metrics(export_of_run(make_run()))

    assert found["busbw/latency_0_0:1024_time"] == pytest.approx(1.5)
    assert not re.search("nccl-bw[^ ]*latency", " ".join(found))


def test_rows_of_the_same_point_are_numbered_as_rounds():
    run = make_run()
    plan = make_plan(make_sweep("all_reduce", (1024,)), make_sweep("all_reduce", (1024,)))
    measurements = tuple(
        make_measurement("all_reduce", 1024, time_s, point=point) for point, time_s in ((0, 1e-6), (1, 2e-6))
    )

    found = metrics(export_of_run(msgspec.structs.replace(run, plan=plan, measurements=measurements)))

    assert found["nccl-bw/allreduce_0_0:1024_time"] == pytest.approx(1.0)
    assert found["nccl-bw/allreduce_1_0:1024_time"] == pytest.approx(2.0)


def test_type_and_operation_other_than_the_defaults_are_in_the_name():
    run = make_run()
    plan = make_plan(make_sweep("all_reduce", (1024,), dtype="float16", op="max"))
    item = make_measurement("all_reduce", 1024, 1e-6, dtype="float16", op="max")

    found = metrics(export_of_run(msgspec.structs.replace(run, plan=plan, measurements=(item,))))

    assert found["nccl-bw:half-max/allreduce_0_0:1024_time"] == pytest.approx(1.0)


def test_a_hostile_host_stays_in_its_line():
    run = make_run()
    placement = msgspec.structs.replace(run.plan.placement, hosts=(HOSTILE.replace(",", ""),))

    found = metrics(
        export_of_run(msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, placement=placement)))
    )

    assert found["node"] == HOSTILE.replace(",", "")
