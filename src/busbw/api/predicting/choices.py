"""Which algorithm is predicted: the one that is asked for, the one that NCCL takes, or the one that was measured.

NCCL's choice comes from a graph or log of the machine, or from its search redone over a map. A map is no log: where
what NCCL would take by it was measured on no such machine and another way was, that other way is predicted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from busbw.base.errors import InputError
from busbw.base.text import counted
from busbw.base.units import format_size
from busbw.facts.nccl_model import nccl_constants, numbers
from busbw.model.platform import Platform
from busbw.model.predict.nccl_choice import MODELLED, NcclAlgorithm, NcclGraphs, NcclJob, PredictedChoice, Protocol
from busbw.model.predict.prediction import PredictedCall, PredictedSize
from busbw.model.topology import Topology
from busbw.predict.graphs import (
    MOST_BYTES,
    GraphedNodes,
    graphs_as_stated,
    graphs_of_file,
    graphs_of_log,
    graphs_of_search,
    nodes_of_file,
)
from busbw.predict.machines import MachineClass
from busbw.predict.nccl import choice
from busbw.predict.sends import SENDS
from busbw.store.files import read_bounded
from busbw.topo.search.channels import Searched, searched_between, searched_within

_LOG_BYTES = 256 * 2**20
# How NCCL's names stand for those of `limits`.
_NCCL_NAMES: dict[str, NcclAlgorithm] = {
    "ring": "ring", "tree": "tree", "nvls": "nvls", "nvlstree": "nvlstree", "pat": "pat",
}  # fmt: skip
# What NCCL tells CPUs apart by, by their makers.
_CPUS: dict[str, Literal["amd", "arm", "power"]] = {"amd": "amd", "nvidia": "arm", "arm": "arm", "ibm": "power"}
# A way this much slower than another is worth a line.
_NOTABLY = 1.02
_SENDS_WAY = "NCCL has one way to send and receive, a peer's part over channels of its own"
FASTEST = (
    "the fastest that was measured on such machines; where none was, latency is most of the time, or another takes "
    "clearly less at the same share of line rate, the fastest of all"
)


@dataclass(frozen=True, kw_only=True)
class ChoiceStart:
    """What NCCL's choice starts from."""

    graphs: NcclGraphs
    channels: int | None = None
    nvls_channels: int | None = None
    # Whether the machine's own NCCL said it.
    is_own: bool = True
    # Of which nodes; None: it is not said.
    nodes: GraphedNodes | None = None


def stated_start(graph: Path | None, log: Path | None, stated: tuple[str, ...]) -> ChoiceStart | None:
    """Return what a graph file, a log or words say; None: none is given.

    Raises InputError for more than one of them, and for what cannot be read.
    """
    given = [each for each in (graph, log, stated or None) if each is not None]
    if len(given) > 1:
        raise InputError(
            "more than one of --graph, --log and --channels", where="--graph", hint="one of them says what the graph is"
        )
    if graph is not None:
        content = read_bounded(graph, most_bytes=MOST_BYTES, kind="graph file of NCCL")
        return ChoiceStart(graphs=graphs_of_file(content, str(graph)), nodes=nodes_of_file(content))
    if log is not None:
        text = read_bounded(log, most_bytes=_LOG_BYTES, kind="log of NCCL").decode("utf-8", "replace")
        logged = graphs_of_log(text, str(log))
        return ChoiceStart(
            graphs=logged.graphs,
            channels=logged.channels,
            nvls_channels=logged.nvls_channels,
            nodes=logged.nodes,
        )
    return ChoiceStart(graphs=graphs_as_stated(stated)) if stated else None


def check_start(start: ChoiceStart | None, gpus: int, several: Sequence[int]) -> None:
    """Raise InputError for a graph or log that is of other nodes than those that are asked about."""
    if start is None or start.nodes is None:
        return
    of, where = start.nodes, start.graphs.origin
    if of.gpus is not None and of.gpus != gpus:
        raise InputError(
            f"{where} is of {counted(of.gpus, 'GPU')} a node, and asked are {gpus}", hint=f"--gpus {of.gpus}"
        )
    other = next((nodes for nodes in several if of.is_alone is not None and of.is_alone != (nodes == 1)), None)
    if other is not None:
        what = "one node, whose channels end in it" if of.is_alone else "several nodes"
        raise InputError(f"{where} is of {what}, and asked is {counted(other, 'node')}", hint="one from such a job")


class MapSearch:
    """NCCL's search over the map of a node, made when it is asked for: alone, and as one of several nodes."""

    def __init__(self, name: str, found: Topology, machine: MachineClass, release: str) -> None:
        """Take the map of `name` for nodes of a machine, and a release that the cost model knows."""
        # It has three numbers.
        major, minor, patch = numbers(release)
        self._name, self._topology, self._nccl = name, found, (major, minor, patch)
        self._kept: dict[bool, Searched] = {}
        # Why a search says nothing, in words.
        self.gap = _unlike(found, machine)

    def start(self, nodes: int) -> ChoiceStart | None:
        """Return what NCCL's choice starts from on so many nodes; None, with the gap: it is not known."""
        is_alone = nodes == 1
        if is_alone not in self._kept:
            if self.gap is not None:
                return None
            search = searched_within if is_alone else searched_between
            self._kept[is_alone] = search(self._topology, self._nccl)
        graphs = graphs_of_search(self._kept[is_alone], self._name)
        self.gap = self.gap or self._kept[is_alone].gap
        return ChoiceStart(graphs=graphs, is_own=False) if graphs is not None else None


def _unlike(found: Topology, machine: MachineClass) -> str | None:
    """Return why a map does not stand for the nodes that are asked about; None: it does."""
    if len(found.gpus) != machine.rates.gpus:
        return f"NCCL's search is redone here for all GPUs of a node, not for {machine.rates.gpus}"
    if not found.nvlinks and (machine.rates.nvlink is not None or machine.rates.pair is not None):
        return "which GPUs the NVLinks join is not known"
    return None


@dataclass(frozen=True, kw_only=True)
class Chooser:
    """NCCL's choice for one kind of call on some nodes."""

    machine: MachineClass
    found: Platform
    release: str
    collective: str
    # What was asked for.
    wanted: str | None
    protocol: Protocol | None

    def choice(self, nodes: int, size_bytes: int, start: ChoiceStart | None) -> PredictedChoice | None:
        """Return what NCCL would take; None where nothing says it, or nothing is left to take.

        Raises InputError for a protocol that the algorithm does not have.
        """
        machine, found = self.machine, self.found
        ranks = machine.rates.gpus * nodes
        if start is None or self.collective not in MODELLED or self.wanted not in (None, *_NCCL_NAMES):
            return None
        if ranks < 2 or found.gpu.sm is None:
            return None
        job = NcclJob(
            nodes=nodes,
            ranks=ranks,
            sm=found.gpu.sm,
            cpu=_cpu((found.cpu.vendor or "").lower()),
            nvls=machine.rates.nvls is True and start.graphs.nvls.channels > 0,
            switched=found.nvlink.switched is True,
            channels=start.channels,
            nvls_channels=start.nvls_channels,
        )
        try:
            return choice(
                job,
                start.graphs,
                nccl_constants(self.release),
                release=self.release,
                collective=self.collective,
                size_bytes=size_bytes,
                algorithm=_NCCL_NAMES[self.wanted] if self.wanted is not None else None,
                protocol=self.protocol,
            )
        except InputError:
            if self.protocol is not None:
                raise
            return None

    def expected(
        self, calls: Sequence[PredictedCall], chosen: PredictedChoice | None, *, is_own: bool
    ) -> tuple[PredictedCall | None, str]:
        """Return which call is predicted, and why; None: what NCCL takes, which no measurement tells.

        `is_own`: the machine's own NCCL said what it chooses from.
        """
        if self.wanted is not None:
            return calls[0], "as asked for"
        if self.collective in SENDS:
            return calls[0], _SENDS_WAY
        if chosen is None:
            return calls[0], FASTEST
        # Within a node a tree is a chain, which is as fast as a ring or slower, and of which nothing is published.
        name = chosen.chosen.algorithm
        same = next((call for call in calls if call.algorithm == name), None)
        measured = next((call for call in calls if call.kinship == "in family"), None)
        if not is_own and measured is not None and (same is None or same.kinship != "in family"):
            by = f"as measured on such machines, where NCCL {chosen.release}'s own model takes a way that was not"
            return measured, by
        return same, f"by NCCL {chosen.release}'s choice, from {chosen.origin}" if same is not None else name


def _cpu(maker: str) -> Literal["intel", "amd", "arm", "power"]:
    for known, cpu in _CPUS.items():
        if known in maker:
            return cpu
    return "intel"


def other_ways(told: Sequence[PredictedSize]) -> list[str]:
    """Return lines about rows where NCCL's choice was not measured on such machines, or is not the fastest."""
    slower, unmeasured = [], []
    for row in told:
        call = row.expected
        if row.choice is None or call is None:
            continue
        name = row.choice.chosen.algorithm
        if call.algorithm != name:
            unmeasured.append(f"{_where(row)} {name}{_rates(row, name)}; predicted is {call.algorithm}")
            continue
        fastest = min(row.others, key=lambda other: other.time_s, default=call)
        if call.time_s > fastest.time_s * _NOTABLY:
            slower.append(f"{_where(row)} {name}, where {fastest.algorithm} would give{_rates(row, fastest.algorithm)}")
    kinds = (
        (unmeasured, "takes a way that was not measured on such machines"),
        (slower, "takes a way that is not the fastest predicted"),
    )
    return [
        f"in {len(lines)} of {len(told)} rows NCCL's own model {what}: for {lines[-1]}"
        for lines, what in kinds
        if lines
    ]


def _where(row: PredictedSize) -> str:
    return format_size(row.size_bytes) + (f" on {row.nodes} nodes" if row.nodes > 1 else "")


def _rates(row: PredictedSize, name: str) -> str:
    """Return what another way than the predicted one is predicted to give; "": it is not told."""
    call = next((each for each in row.others if each.algorithm == name), None)
    if call is None:
        return ""
    return f" {call.busbw_Bps / 1e9:.0f} GB/s ({call.low_Bps / 1e9:.0f} to {call.high_Bps / 1e9:.0f})"
