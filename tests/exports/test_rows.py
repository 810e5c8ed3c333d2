"""Rows keep what is known, and nothing of a wrong or missing point looks like a measurement."""

import msgspec
from tests.judge.factories import make_hello, make_measurement, make_plan, make_sweep

from busbw.model.gates import PointRow
from busbw.model.record import GpuHello, NcclChoice, NcclPoint
from busbw.model.run import Run
from busbw.show.exports.nccl_tests import nccl_tests_text
from busbw.show.exports.rows import export_of_run
from busbw.show.exports.superbench import superbench_lines

from .factories import make_run

TIMES_AND_RATES = [field.name for field in msgspec.structs.fields(PointRow) if field.name.endswith(("_s", "_Bps"))]


def test_every_planned_point_has_a_row_in_the_order_of_the_plan():
    rows = export_of_run(make_run()).rows

    assert [(row.collective, row.size_bytes, row.in_place) for row in rows] == [
        *(("all_reduce", size_bytes, in_place) for in_place in (False, True) for size_bytes in (1024, 4096, 16384)),
        ("broadcast", 1024, False),
        ("broadcast", 65536, False),
        ("latency", 1024, False),
    ]


def test_a_row_holds_what_was_measured():
    run = make_run()

    row, item = export_of_run(run).rows[0], run.measurements[0]

    assert (row.time_s, row.median_s, row.low_s, row.high_s) == (item.median_s, item.median_s, item.low_s, item.high_s)
    assert (row.p50_s, row.p95_s, row.p99_s) == (item.median_s, None, item.median_s * 1.5)
    assert (row.algbw_Bps, row.busbw_Bps) == (item.algbw_Bps, item.busbw_Bps)
    assert (row.statistic, row.samples, row.wrong, row.verified) == ("median", 1000, 0, True)
    assert (row.op, row.root) == ("sum", None)


def test_a_wrong_point_has_no_time_and_no_rate_whatever_the_measurement_holds():
    row = export_of_run(make_run()).rows[4]

    assert row.wrong == 1
    assert row.ended == "wrong"
    assert len(TIMES_AND_RATES) > 12
    assert {getattr(row, name) for name in TIMES_AND_RATES} == {None}


def test_a_missing_point_has_a_row_that_says_so_and_nothing_else():
    row = export_of_run(make_run()).rows[7]

    assert (row.ended, row.wrong, row.verified, row.samples, row.read_from) == ("missing", None, False, None, None)
    assert {getattr(row, name) for name in TIMES_AND_RATES} == {None}


def test_a_median_of_nothing_is_no_time():
    run = make_run(measurements=(make_measurement("all_reduce", 1024, 1e-5, point=0, samples=0),))
    void = msgspec.structs.replace(run.measurements[0], median_s=0.0, busbw_Bps=0.0, algbw_Bps=0.0)

    row = export_of_run(msgspec.structs.replace(run, measurements=(void,))).rows[0]

    assert {getattr(row, name) for name in TIMES_AND_RATES} == {None}


def test_a_collective_is_complete_when_none_of_its_points_is_missing():
    groups = export_of_run(make_run()).groups

    assert [(group.table, group.complete, len(group.devices)) for group in groups] == [
        (0, True, 4),
        (1, False, 4),
        (2, True, 4),
    ]


def test_a_collective_and_a_type_of_a_newer_busbw_are_exported_as_they_are():
    plan = make_plan(make_sweep("all_mixed", (1024,), dtype="float4", op="xor", root=3))

    (row,) = export_of_run(make_run(plan=plan, measurements=())).rows

    assert (row.collective, row.dtype, row.op, row.root, row.count) == ("all_mixed", "float4", "xor", 3, None)


def make_gpu(rank: int, nccl: str = "2.28.9") -> GpuHello:
    return GpuHello(
        ordinal=rank + 4,
        model="NVIDIA H200",
        bus_id=f"0000:0{rank}:00.0",
        free_bytes=1,
        nccl=nccl,
        nccl_path="/n",
        driver=13000,
        driver_path="/d",
        nvrtc_path=None,
        environment=(),
    )


def make_gpu_run(*nccls: str) -> Run:
    """Return a run over NCCL without MPI: a collective, and an exchange between two of the ranks."""
    plan = msgspec.structs.replace(
        make_plan(make_sweep("all_reduce", (1024,)), make_sweep("sendrecv", (1024,), pair=(0, 3))), mpi=None
    )
    choices = (
        NcclChoice(function="AllReduce", algorithm="RING", protocol="LL", channels=4),
        NcclChoice(function="AllReduce", algorithm="TREE", protocol="LL", channels=None),
    )
    nccl = NcclPoint(slots=1, footprint_bytes=1, graph_calls=0, product_ns=None, choices=choices, checked_by="gpu")
    return make_run(
        plan=plan,
        ranks=tuple(make_hello(rank, gpu=make_gpu(rank, version)) for rank, version in enumerate(nccls)),
        measurements=(
            make_measurement("all_reduce", 1024, 1e-5, point=0, nccl=nccl),
            make_measurement("sendrecv", 1024, 1e-5, point=1, pair=(0, 3), ranks=2),
        ),
    )


def test_a_run_on_gpus_names_nccl_its_devices_and_its_choices():
    export = export_of_run(make_gpu_run("2.28.9", "2.28.9", "2.27.3"))

    row = export.rows[0]
    assert row.libraries == "NCCL 2.28.9, NCCL 2.27.3"
    assert (row.algorithm, row.protocol) == ("RING,TREE", "LL")
    assert [(device.device, device.bus_id, device.model) for device in export.groups[0].devices[:2]] == [
        (4, "0000:00:00.0", "NVIDIA H200"),
        (5, "0000:01:00.0", "NVIDIA H200"),
    ]
    assert "Pid    101 on      node1 device  5 [0000:01:00] NVIDIA H200\n" in nccl_tests_text(export)


def test_an_exchange_between_two_ranks_is_never_taken_for_one_of_all():
    export = export_of_run(make_gpu_run("2.28.9"))

    row = export.rows[1]
    assert (row.source, row.target, row.ranks) == ("0", "3", 2)
    text = nccl_tests_text(export)
    assert "# busbw: left out, no program of nccl-tests measures it: sendrecv between two\n" in text
    assert "sendrecv_perf" not in text
    assert b'"busbw/sendrecv-0-3_0_0:1024_time":' in superbench_lines(export)
