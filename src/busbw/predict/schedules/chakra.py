"""Schedules as Chakra's JSON form has them: a trace of each rank, as its feeder reads `.json` files.

Sends, receives and what is calculated are nodes of `workload_graph`, with `data_deps`; bytes are whole, a runtime is in
whole microseconds. Source of the form: json_node.cpp and et_def.proto of github.com/mlcommons/chakra.
Alone because it has a form of its own, as GOAL and MSCCL have.
"""

import json
from typing import Any

from busbw.predict.schedules.programs import Act, WrittenSchedule

# NodeType of et_def.proto.
_KINDS = {"calc": 4, "send": 5, "recv": 6}


def chakra_texts(program: WrittenSchedule) -> tuple[str, ...]:
    """Return the trace of each rank, for a program of one round."""
    return tuple(
        json.dumps({"workload_graph": [_node(rank, at, act) for at, act in enumerate(acts)]}) + "\n"
        for rank, acts in enumerate(program.acts)
    )


def _node(rank: int, at: int, act: Act) -> dict[str, Any]:
    node: dict[str, Any] = {
        "Id": at,
        "Name": f"{act.what} {at}",
        "NodeType": _KINDS[act.what],
        "is_cpu_op": False,
        "data_deps": sorted({other for other, _ in act.after}),
    }
    if act.what == "calc":
        return node | {"runtime": round(act.amount / 1000)}
    ends = (rank, act.peer) if act.what == "send" else (act.peer, rank)
    return node | {
        "tensor_size": act.amount, "comm_size": act.amount, "comm_src": ends[0], "comm_dst": ends[1],
        "comm_tag": act.tag, "comm_priority": 0,
    }  # fmt: skip
