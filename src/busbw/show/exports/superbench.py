"""Lines of SuperBench's results-summary.jsonl: one JSON object a node, a metric a key, GB/s (1e9) and microseconds."""

from collections.abc import Sequence

import msgspec

from busbw.base.text import one_word
from busbw.formats.arithmetic import in_unit
from busbw.model.gates import PointRow, is_missing, is_wrong
from busbw.show.exports.nccl_tests import TYPE_NAMES
from busbw.show.exports.rows import Export, numbered

# Operations of SuperBench's nccl-bw, by our names; what it does not have goes under a benchmark of our own name.
_OPERATIONS = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "reduce_scatter": "reducescatter",
    "alltoall": "alltoall",
}
# SuperBench's return codes (superbench/benchmarks/return_code.py).
_SUCCESS, _INVALID_RESULT, _EXECUTION_FAILURE = 0, 3, 32


def superbench_lines(export: Export) -> bytes:
    """Return one line for each first host. A wrong or missing point has no metric, and a return code that is not 0."""
    nodes: dict[str, list[PointRow]] = {}
    for row in export.rows:
        nodes.setdefault(row.hosts.split(",")[0] or "unknown", []).append(row)
    return b"".join(
        msgspec.json.encode({"node": node} | _metrics(export, rows)) + b"\n" for node, rows in nodes.items()
    )


def _metrics(export: Export, rows: Sequence[PointRow]) -> dict[str, float | int]:
    metrics: dict[str, float | int] = {}
    # The serial index, SuperBench's number of a round, tells repetitions of one metric apart.
    for row, serial in numbered(rows, lambda row: (_benchmark(row), _operation(row), row.size_bytes)):
        benchmark = _benchmark(row)
        code = f"{benchmark}/return_code"
        metrics[code] = max(metrics.get(code, _SUCCESS), _return_code(export, row))
        name = f"{benchmark}/{_operation(row)}_{serial}_0:{row.size_bytes or 0}"
        values = (
            ("busbw", row.busbw_Bps, 1e-9),
            ("algbw", row.algbw_Bps, 1e-9),
            ("time", row.time_s, 1e6),
            # As an imported tool counts them.
            ("bandwidth", row.bandwidth_Bps, 1e-9),
            ("messages", row.messages_per_s, 1.0),
        )
        metrics |= {f"{name}_{what}": in_unit(value, scale) for what, value, scale in values if value is not None}
    return metrics


def _benchmark(row: PointRow) -> str:
    """Return the benchmark with an annotation of what differs from its defaults, as in `nccl-bw:half-in-place`."""
    family = "rccl-bw" if row.backend == "rccl-tests" else "nccl-bw"
    name = family if row.collective in _OPERATIONS and row.source is None and row.group is None else "busbw"
    differs = (
        TYPE_NAMES.get(row.dtype, row.dtype) if row.dtype not in (None, "float32", "float") else None,
        row.op if row.op not in (None, "sum") else None,
        f"root{row.root}" if row.root else None,
        "in-place" if row.in_place else None,
    )
    annotation = "-".join(part for part in differs if part)
    return f"{name}:{annotation}" if annotation else name


def _operation(row: PointRow) -> str:
    """Return the operation, with the two ends or the group of an exchange that has them."""
    name = _OPERATIONS.get(row.collective, one_word(row.collective).replace("_", ""))
    parts = (row.source, row.target, f"group{row.group}" if row.group is not None else None)
    return "-".join([name, *(one_word(part) for part in parts if part is not None)])


def _return_code(export: Export, row: PointRow) -> int:
    if is_missing(row) or export.verdict == "failed":
        return _EXECUTION_FAILURE
    return _INVALID_RESULT if is_wrong(row) else _SUCCESS
