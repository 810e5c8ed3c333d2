"""Harnesses of what predictions are made from: graph files, logs, stated channels, tables of cells."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from busbw.api.predicting.workloads import read_plan
from busbw.base.errors import InputError
from busbw.facts.nccl_model import nccl_constants
from busbw.facts.platforms import all_platforms, find_platform, platforms_called_in
from busbw.model.predict.nccl_choice import NcclGraphs, NcclJob
from busbw.predict.calibrating import AskedCells, calibration_of
from busbw.predict.cells import read_cells
from busbw.predict.changes import changes_of
from busbw.predict.closed import predicted
from busbw.predict.described import described_machine
from busbw.predict.graphs import graphs_as_stated, graphs_of_file, graphs_of_log
from busbw.predict.imported import imported_schedule
from busbw.predict.machines import CannotTellError, MachineClass, machine_of
from busbw.predict.nccl_table import cost_table
from busbw.predict.schedules.programs import described
from busbw.predict.schedules.timing import LaneRates, time_steps
from busbw.predict.steps import overlap_of, predicted_step
from busbw.predict.worded import worded_machine

_SAMPLES = Path(__file__).parents[1] / "predict" / "samples"


def _counted(graphs: NcclGraphs) -> object:
    """Return NCCL's table for graphs: whatever is read can be counted with."""
    return cost_table(NcclJob(nodes=2, ranks=16, sm=90), graphs, nccl_constants("2.28.9"))


@cache
def _machine(platform: str, gpus: int) -> MachineClass:
    return machine_of(find_platform(platform).platform, gpus=gpus)


def _worded(words: str, gpus: int, nodes: int) -> MachineClass:
    named = platforms_called_in(words)
    return worded_machine(words, gpus=gpus, nodes=nodes, named=named, platforms=all_platforms())


def _cells(data: bytes) -> object:
    """Read a table; each sweep that is kept is predicted, or it is said that it cannot be."""
    found = read_cells(data, "cells.csv", _machine, _worded)
    for group in found.groups:
        for size_bytes, _ in group.cells[:2]:
            try:
                asked = {"nodes": group.nodes, "collective": group.collective, "size_bytes": size_bytes}
                predicted(group.machine, algorithm=group.stated, **asked)
            except (CannotTellError, InputError):
                continue
    return found.left_out


def _schedule(data: bytes) -> object:
    """Read a schedule of others; what is read is laid out on nodes of one GPU, of two, and timed where it is small."""
    found = imported_schedule(data, "schedule")
    program = found.msccl.of_size(2**20) if found.msccl is not None else found.program
    if program is None:
        return found
    for gpus in (1, 2):
        made = described(program, gpus=gpus, ranks_of_nic=1, algorithm=found.form, collective="all_reduce")
        time_steps(made, LaneRates(nic_Bps=50e9, nvlink_Bps=450e9))
    return program.count


def _calibration(data: bytes) -> object:
    """Read a table of cells, and calibrate what it may be of with it."""
    asked = AskedCells(collective="all_reduce", nodes=(2,), sizes_bytes=(2**20, 2**30))
    return calibration_of(read_cells(data, "cells.csv", _machine).groups, _machine("aws-p5", 8), asked, "cells.csv")


def _described(data: bytes) -> object:
    """Read a machine in words; what is read can be predicted, or it is said why not."""
    _, found = described_machine(data.decode("utf-8", "surrogateescape"), all_platforms(()))
    try:
        return predicted(found, nodes=2, collective="all_reduce", size_bytes=2**30)
    except CannotTellError:
        return None


def _plan(data: bytes) -> object:
    """Read the plan of a step; what is read can be added up."""
    plan = read_plan(data, "plan.json")
    return predicted_step(plan, find_platform("azure-nd-h100-v5").platform, overlap_of("0.5"), "plan.json")


PREDICTION_HARNESSES: dict[str, Callable[[bytes], object]] = {
    "graph_file": lambda data: _counted(graphs_of_file(data, "graph.xml")),
    "graph_log": lambda data: _counted(graphs_of_log(data.decode("utf-8", "replace"), "log").graphs),
    "graph_stated": lambda data: _counted(graphs_as_stated(tuple(data.decode("utf-8", "surrogateescape").split()))),
    "cells": _cells,
    "schedules": _schedule,
    "calibration": _calibration,
    "machine": _described,
    "plan": _plan,
    "overlap": lambda data: overlap_of(data.decode("utf-8", "surrogateescape")),
    "changes": lambda data: changes_of((data.decode("utf-8", "surrogateescape"),)),
}
_TABLE = (
    b"document,platform_id,nodes,gpus,collective,size_bytes,busbw_GBps,algorithm\n"
    b"A,aws-p5,2,16,all_reduce,1024,0.01,default\nA,aws-p5,2,16,all_reduce,1073741824,443.7,default\n"
    b"B,azure-nd-h100-v5,4,32,all_reduce,17179869184,361.06,NVLSTree\n"
)
_WORDED = (
    b"Machine,nodes,gpus_per_node,op,size,time (us)\nHGX H200 8x400G NDR IB,4,8,AllReduce,1 GiB,6000\n"
    b'"gpu=H200, gpus=8, nics=16x200G, fabric=RoCE",2,8,all-gather,512M,1500\nAWS p5.48xlarge,2,8,all_reduce,1M,120\n'
)
_GOAL = (
    b"num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\nl2: calc 100\nl2 requires l1\n}\n"
    b"rank 1 {\nl1: recv 8b from 0 tag 0\nl2: calc 5\nl2 irequires l1\n}\n"
)
_MSCCL = (
    b'<algo name="a" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather" inplace="0">\n'
    b'<gpu id="0" i_chunks="1" o_chunks="2" s_chunks="0">\n<tb id="0" send="1" recv="1" chan="0">\n'
    b'<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>\n'
    b'<step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>\n'
    b'</tb>\n</gpu>\n<gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0">\n<tb id="0" send="0" recv="0" chan="0">\n'
    b'<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>\n'
    b'<step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="0" deps="0" hasdep="0"/>\n'
    b"</tb>\n</gpu>\n</algo>\n"
)
_PLAN = (Path(__file__).parents[2] / "docs" / "data" / "step-plan.json").read_bytes()
PREDICTION_SEEDS = (
    _GOAL,
    _MSCCL,
    b"gpu=H200, gpus=8, nics=16x200G, fabric=RoCE",
    _PLAN,
    *(path.read_bytes() for path in sorted(_SAMPLES.iterdir())),
    b"ring=8x48/48 tree=8x48/48:NVL/PXN nvls=8x60/48",
    b"nic=800G,nics=16,oversubscription=2,nvls=off",
    b"slow-nic=node7:0.5,oversubscription=2,leaf=16,routing=static,placement=scattered",
    _TABLE,
    _WORDED,
)
