"""NCCL Inspector: one JSON object for each operation of each rank, as NCCL's profiler plug-in writes them.

Sizes are printed per rank for AllGather and ReduceScatter, and counted here as nccl-tests counts them: the plug-in's
algorithm bandwidth is of all ranks' parts too (inspector.cc, `inspectorComputeOpBw`). GB is 1e9 bytes.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from busbw.base.value import Integer
from busbw.formats.form import LARGEST_INTEGER, Natural, amount, shaped
from busbw.model.imported import ListedDevice, Reading, Table

TOOL = "inspector"
_COLLECTIVES = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "AlltoAll": "alltoall",
    "Gather": "gather",
    "Scatter": "scatter",
    "SendRecv": "sendrecv",
}
_SIZE_OF_ONE_RANK = frozenset({"AllGather", "AllGatherV", "ReduceScatter"})


# All of them are names.
_Text = Annotated[str, msgspec.Meta(max_length=300)]


class _Header(msgspec.Struct):
    id: _Text
    rank: Natural
    n_ranks: Natural
    nnodes: Natural
    comm_name: _Text | None = None


class _Metadata(msgspec.Struct):
    inspector_output_format_version: _Text | None = None
    git_rev: _Text | None = None
    hostname: _Text | None = None
    pid: Natural | None = None


class _Collective(msgspec.Struct, rename=lambda name: "coll" if name == "operation" else f"coll_{name}"):
    operation: _Text
    msg_size_bytes: Natural
    exec_time_us: Natural
    sn: Natural | None = None
    algobw_gbs: float | None = None
    busbw_gbs: float | None = None
    timing_source: str | None = None


class _Message(msgspec.Struct, rename=lambda name: "p2p" if name == "operation" else f"p2p_{name}"):
    operation: _Text
    msg_size_bytes: Natural
    exec_time_us: Natural
    peer: Integer
    sn: Natural | None = None
    algobw_gbs: float | None = None
    busbw_gbs: float | None = None
    timing_source: str | None = None


class _InspectorDocument(msgspec.Struct):
    header: _Header
    metadata: _Metadata
    coll_perf: _Collective | None = None
    p2p_perf: _Message | None = None


class _Inspector:
    tool = TOOL
    is_record = True

    def recognises(self, document: object) -> bool:
        return (
            isinstance(document, dict) and "header" in document and ("coll_perf" in document or "p2p_perf" in document)
        )

    def read(
        self, document: object, *, line: int, number: int, source: int
    ) -> Iterable[tuple[Table, Sequence[Reading]]]:
        record = shaped(document, _InspectorDocument, tool=TOOL, line=line)
        header, metadata = record.header, record.metadata
        named = (("communicator", header.id), ("communicator name", header.comm_name), ("nodes", str(header.nnodes)))
        versions = (("format", metadata.inspector_output_format_version), ("git", metadata.git_rev))
        table = Table(
            number=number,
            source=source,
            first_line=line,
            last_line=line,
            tool=TOOL,
            tool_version=metadata.inspector_output_format_version,
            format="json",
            statistic="one operation on one rank",
            ranks=header.n_ranks,
            versions=tuple((name, value) for name, value in versions if value),
            parameters=tuple((name, value) for name, value in named if value),
            devices=(ListedDevice(rank=header.rank, host=metadata.hostname, process_id=metadata.pid),),
            complete=True,
        )
        operations = (("coll", record.coll_perf), ("p2p", record.p2p_perf))
        readings = tuple(
            _reading(header, done, prefix, table=number, line=line) for prefix, done in operations if done is not None
        )
        return ((table, readings),)


def _reading(header: _Header, done: _Collective | _Message, prefix: str, *, table: int, line: int) -> Reading:
    path = f"$.{prefix}_perf.{prefix}"
    algbw_gbs = amount(done.algobw_gbs, path=f"{path}_algobw_gbs", tool=TOOL, line=line)
    busbw_gbs = amount(done.busbw_gbs, path=f"{path}_busbw_gbs", tool=TOOL, line=line)
    size_bytes = done.msg_size_bytes * (header.n_ranks if done.operation in _SIZE_OF_ONE_RANK else 1)
    more = [("printed_bytes", float(done.msg_size_bytes))] if done.operation in _SIZE_OF_ONE_RANK else []
    if done.sn is not None:
        more.append(("sequence", float(done.sn)))
    ends: tuple[str | None, str | None] = (None, None)
    if isinstance(done, _Message):
        ends = (str(header.rank), str(done.peer))
        ends = ends[::-1] if done.operation == "Recv" else ends
    # A time of 0 is below the clock's microsecond; the rates are then printed as 0 and say nothing.
    timed = done.exec_time_us > 0
    return Reading(
        table=table,
        line=line,
        what=_COLLECTIVES.get(done.operation, done.operation),
        size_bytes=size_bytes if size_bytes <= LARGEST_INTEGER else None,
        ranks=header.n_ranks,
        source=ends[0],
        target=ends[1],
        time_s=done.exec_time_us * 1e-6 if timed else None,
        algbw_Bps=algbw_gbs * 1e9 if timed and algbw_gbs is not None else None,
        busbw_Bps=busbw_gbs * 1e9 if timed and busbw_gbs is not None else None,
        more=tuple(more),
    )


FORMAT = _Inspector()
