"""Harnesses of what predictions are made from: graph files, logs, stated channels, tables of cells."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from busbw.base.errors import InputError
from busbw.facts.nccl_model import nccl_constants
from busbw.facts.platforms import find_platform
from busbw.model.predict.nccl_choice import NcclGraphs, NcclJob
from busbw.predict.cells import read_cells
from busbw.predict.changes import changes_of
from busbw.predict.closed import predicted
from busbw.predict.graphs import graphs_as_stated, graphs_of_file, graphs_of_log
from busbw.predict.machines import CannotTellError, MachineClass, machine_of
from busbw.predict.nccl_table import cost_table

_SAMPLES = Path(__file__).parents[1] / "predict" / "samples"


def _counted(graphs: NcclGraphs) -> object:
    """Return NCCL's table for graphs: whatever is read can be counted with."""
    return cost_table(NcclJob(nodes=2, ranks=16, sm=90), graphs, nccl_constants("2.28.9"))


@cache
def _machine(platform: str, gpus: int) -> MachineClass:
    return machine_of(find_platform(platform).platform, gpus=gpus)


def _cells(data: bytes) -> object:
    """Read a table; each sweep that is kept is predicted, or it is said that it cannot be."""
    found = read_cells(data, "cells.csv", _machine)
    for group in found.groups:
        for size_bytes, _ in group.cells[:2]:
            try:
                asked = {"nodes": group.nodes, "collective": group.collective, "size_bytes": size_bytes}
                predicted(group.machine, algorithm=group.stated, **asked)
            except (CannotTellError, InputError):
                continue
    return found.left_out


PREDICTION_HARNESSES: dict[str, Callable[[bytes], object]] = {
    "graph_file": lambda data: _counted(graphs_of_file(data, "graph.xml")),
    "graph_log": lambda data: _counted(graphs_of_log(data.decode("utf-8", "replace"), "log").graphs),
    "graph_stated": lambda data: _counted(graphs_as_stated(tuple(data.decode("utf-8", "surrogateescape").split()))),
    "cells": _cells,
    "changes": lambda data: changes_of((data.decode("utf-8", "surrogateescape"),)),
}
_TABLE = (
    b"document,platform_id,nodes,gpus,collective,size_bytes,busbw_GBps,algorithm\n"
    b"A,aws-p5,2,16,all_reduce,1024,0.01,default\nA,aws-p5,2,16,all_reduce,1073741824,443.7,default\n"
    b"B,azure-nd-h100-v5,4,32,all_reduce,17179869184,361.06,NVLSTree\n"
)
PREDICTION_SEEDS = (
    *(path.read_bytes() for path in sorted(_SAMPLES.iterdir())),
    b"ring=8x48/48 tree=8x48/48:NVL/PXN nvls=8x60/48",
    b"nic=800G,nics=16,oversubscription=2,nvls=off",
    b"slow-nic=node7:0.5,oversubscription=2,leaf=16,routing=static,placement=scattered",
    _TABLE,
)
