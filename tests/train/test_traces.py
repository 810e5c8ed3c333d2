"""Traces of PyTorch's profiler and records of NCCL Inspector: shares that were laid out beforehand."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busbw.api.training.reading import TrainReadRequest, train_read
from busbw.base.errors import InputError
from busbw.model.train.trace import TraceShare
from busbw.train.overlap import Covered, union, without

STEP_US = 1000.0


def kernel(name: str, ts: float, dur: float, **arguments: object) -> dict[str, object]:
    tid = 20 if name.startswith("nccl") else 7
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": arguments}


def group(name: str, what: str, size: int, collective: str) -> dict[str, object]:
    return {
        "Process Group Name": name,
        "Process Group Description": what,
        "Group size": size,
        "Collective name": collective,
        "In msg nelems": 1024,
    }


def trace_of(*, on_gpu: bool = True, groups: bool = True) -> dict[str, object]:
    """Return a trace of six steps of 1 ms: 600 us of compute, 300 of communication, 100 of it beside compute."""
    events: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}}]
    for step in range(6):
        at = 5_000_000.0 + step * STEP_US
        dense = group("2", "mesh_tp", 8, "allreduce") if groups else {}
        experts = group("12", "mesh_ep", 16, "all_to_all") if groups else {}
        cat = "gpu_user_annotation" if on_gpu else "user_annotation"
        for stream in (7, 20):
            name = f"ProfilerStep#{step + 10}"
            events.append(
                {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": at, "dur": 990, "args": {}}
            )
        events += [
            kernel("sm90_xmma_gemm_bf16bf16", at, 400.0),
            kernel(
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", at + 300, 200.0, **dense
            ),
            kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", at + 500, 100.0, **experts),
            kernel("void at::native::elementwise_kernel", at + 600, 200.0),
        ]
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 64},
        "traceEvents": events,
    }


def read(folder: Path, trace: object, *, name: str = "rank3.pt.trace.json") -> TraceShare:
    path = folder / name
    content = json.dumps(trace).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (share,) = train_read(TrainReadRequest(sources=(str(path),))).traces
    return share


@pytest.mark.parametrize("name", ["rank3.json", "rank3.json.gz"])
@pytest.mark.parametrize("on_gpu", [True, False])
def test_exposed_and_hidden_communication_are_what_was_laid_out(tmp_path: Path, name: str, on_gpu: bool) -> None:
    share = read(tmp_path, trace_of(on_gpu=on_gpu), name=name)

    assert (share.rank, share.gpus, len(share.steps), share.has_steps) == (3, 64, 6, True)
    assert (share.communication, share.exposed, share.hidden, share.compute, share.idle) == pytest.approx(
        (0.3, 0.2, 0.1, 0.6, 0.2), abs=0.005
    )
    assert [each.number for each in share.steps] == list(range(10, 16))
    assert [finding.code for finding in share.findings] == ["STEP007"]
    assert any("marked on the host" in note for note in share.notes) is not on_gpu


def test_a_trace_of_pytorch_before_1_12_has_other_names_and_says_the_same(tmp_path: Path) -> None:
    trace = trace_of(on_gpu=False, groups=False)
    for event in trace["traceEvents"]:  # type: ignore[attr-defined]
        if "cat" in event:
            event["cat"] = {"kernel": "Kernel", "user_annotation": "Operator"}[event["cat"]]
    old, new = read(tmp_path, trace), read(tmp_path, trace_of(on_gpu=False, groups=False))
    assert (old.has_steps, old.exposed, old.hidden) == (True, new.exposed, new.hidden)


def test_groups_are_told_apart_and_that_with_most_exposed_time_is_first(tmp_path: Path) -> None:
    share = read(tmp_path, trace_of())

    found = {each.group: (each.busy_s, each.exposed_s) for each in share.groups}
    assert found["mesh_tp (2), 8 ranks"] == pytest.approx((200e-6, 100e-6))
    assert found["mesh_ep (12), 16 ranks"] == pytest.approx((100e-6, 100e-6))
    assert share.groups[1].collectives == (("allreduce", 6),) or share.groups[0].collectives == (("allreduce", 6),)


def test_a_trace_without_steps_or_groups_says_so(tmp_path: Path) -> None:
    trace = trace_of(groups=False)
    events = trace["traceEvents"]
    assert isinstance(events, list)
    trace["traceEvents"] = [each for each in events if "annotation" not in str(each.get("cat"))]

    share = read(tmp_path, trace)

    assert (len(share.steps), share.has_steps) == (1, False)
    assert {each.group for each in share.groups} == {"group not told"}
    assert any("no ProfilerStep" in note for note in share.notes)
    assert any("names no groups" in note for note in share.notes)


def test_a_trace_that_is_cut_off_or_has_no_kernels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    whole = json.dumps(trace_of())
    for content, words in (
        (whole[: len(whole) // 2], "cannot be read"),
        (whole.replace('"kernel"', '"cpu_op"'), "no kernel"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=words) as error:
            train_read(TrainReadRequest(sources=(str(path),)))
        assert len(str(error.value).splitlines()) == 3


SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda each: (float(each[0]), float(each[0] + each[1]))),
    max_size=9,
)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(SPANS, SPANS, st.integers(0, 70), st.integers(0, 70))
def test_unions_and_what_lies_outside_are_those_of_single_moments(
    some: list[tuple[float, float]], others: list[tuple[float, float]], begin: int, end: int
) -> None:
    def moments(spans: list[tuple[float, float]]) -> set[int]:
        return {at for low, high in spans for at in range(int(low), int(high))}

    first, second = union(some), union(others)
    outside = without(first, second)

    assert moments(first) == moments(some)
    assert moments(outside) == moments(some) - moments(others)
    low, high = sorted((begin, end))
    assert Covered(outside).of(low, high) == len({at for at in moments(outside) if low <= at < high})


def record(rank: int, what: str, size_bytes: int, time_us: int) -> str:
    return json.dumps(
        {
            "header": {"id": "0xabc", "rank": rank, "n_ranks": 8, "nnodes": 1},
            "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "x", "hostname": "node1", "pid": 1},
            "coll_perf": {
                "coll": what,
                "coll_sn": 1,
                "coll_msg_size_bytes": size_bytes,
                "coll_exec_time_us": time_us,
                "coll_algobw_gbs": 1.0,
                "coll_busbw_gbs": 2.0,
            },
        }
    )


def test_records_of_inspector_are_summed_by_collective_and_size(tmp_path: Path) -> None:
    path = tmp_path / "inspector.log"
    lines = [record(rank, "AllReduce", 1 << 20, 100 + rank) for rank in range(8)]
    lines += [record(rank, "AllGather", 1 << 10, 10) for rank in range(8)] + ['{"header": {"id": ']
    path.write_text("\n".join(lines))

    (log,) = train_read(TrainReadRequest(sources=(str(path),))).records

    assert (log.records, log.recording_ranks, log.garbled) == (16, 8, 1)
    assert [(each.collective, each.size_bytes, each.records) for each in log.shares] == [
        ("all_reduce", 1 << 20, 8),
        ("all_gather", 1 << 13, 8),
    ]
    assert log.shares[0].time_s == pytest.approx(sum(100 + rank for rank in range(8)) * 1e-6)


def test_records_of_a_communicator_without_a_name_count_too(tmp_path: Path) -> None:
    path = tmp_path / "inspector.log"
    path.write_text("\n".join(record(rank, "AllReduce", 8, 100).replace("0xabc", "") for rank in range(2)))

    (log,) = train_read(TrainReadRequest(sources=(str(path),))).records

    assert (log.records, log.garbled, [each.collective for each in log.shares]) == (2, 0, ["all_reduce"])


def test_a_trace_of_two_gpus_says_what_its_microseconds_say() -> None:
    # Two H100, PyTorch 2.11: a sum in the group "data" beside products of matrices, then an exchange in "experts"
    # with nothing beside it. Kernels of the profiler's warm-up have no group, and lie before the first step.
    path = Path(__file__).parent / "samples" / "two-h100.pt.trace.json.gz"
    (share,) = train_read(TrainReadRequest(sources=(str(path),))).traces
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    zero_us = min(each["ts"] for each in events if each["cat"] == "kernel")
    marks = sorted(
        each["ts"] - zero_us
        for each in events
        if each["cat"] == "gpu_user_annotation" and each["name"].startswith("ProfilerStep")
    )
    length = int(max(each["ts"] + each["dur"] for each in events if each["cat"] == "kernel") - zero_us)
    computes, communicates = bytearray(length), bytearray(length)
    for each in events:
        if each["cat"] == "kernel":
            begin = round(each["ts"] - zero_us)
            place = communicates if each["name"].startswith("nccl") else computes
            place[begin : begin + round(each["dur"])] = b"\1" * len(place[begin : begin + round(each["dur"])])

    assert len(share.steps) == len(marks) == 8
    for step, begin, end in zip(share.steps, marks, [*marks[1:], length], strict=True):
        places = range(round(begin), round(end))
        assert step.time_s == pytest.approx((end - begin) * 1e-6, abs=2e-6)
        assert step.communication_s == pytest.approx(sum(communicates[at] for at in places) * 1e-6, abs=5e-6)
        assert step.exposed_s == pytest.approx(sum(communicates[at] > computes[at] for at in places) * 1e-6, abs=2e-5)
    assert share.communication == pytest.approx(share.exposed + share.hidden)
    assert [(each.group, each.kernels) for each in share.groups] == [
        ("experts (2), 2 ranks", 8),
        ("data (1), 2 ranks", 8),
    ]
    assert any("7 kernels of NCCL before or after the marked steps" in note for note in share.notes)
