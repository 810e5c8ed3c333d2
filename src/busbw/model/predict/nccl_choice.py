"""What NCCL's own model is given of a job, and what it makes of it: a table of costs and a choice."""

from typing import Literal

from busbw.base.value import Integer, Value

NcclAlgorithm = Literal["tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"]
Protocol = Literal["LL", "LL128", "Simple"]
# In the order in which NCCL goes through them: of equal costs the first is taken.
NCCL_ALGORITHMS: tuple[NcclAlgorithm, ...] = (
    "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat",
)  # fmt: skip
PROTOCOLS: tuple[Protocol, ...] = ("LL", "LL128", "Simple")
# Those that the model knows; all others are sent and received part by part, without a model.
MODELLED = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")


class SearchedGraph(Value, frozen=True, kw_only=True):
    """What NCCL's search found for one pattern: channels, and GB/s of one of them within and between nodes."""

    channels: Integer
    intra_GBps: float
    inter_GBps: float
    # The worst type of path, as NCCL writes it.
    intra_type: str = "LOC"
    inter_type: str = "LOC"
    same_channels: bool = False
    latency_us: float = 0.0


NO_GRAPH = SearchedGraph(channels=0, intra_GBps=0.0, inter_GBps=0.0)


class NcclGraphs(Value, frozen=True, kw_only=True):
    """The graphs of a job, before channels are doubled, and how they were come by."""

    ring: SearchedGraph
    tree: SearchedGraph
    collnet_chain: SearchedGraph = NO_GRAPH
    collnet_direct: SearchedGraph = NO_GRAPH
    nvls: SearchedGraph = NO_GRAPH
    # All traffic of a tree through one GPU of each node.
    plain_tree: bool = False
    # As in a sentence: "the graph file graph.xml".
    origin: str


class NcclJob(Value, frozen=True, kw_only=True):
    """What else the model looks at.

    `sm`: the compute capability times ten of the oldest GPUs, `newest_sm` of the newest.
    """

    nodes: Integer
    ranks: Integer
    sm: Integer
    newest_sm: Integer | None = None
    cpu: Literal["intel", "amd", "mixed", "arm", "power", "other"] = "intel"
    # Whether the GPUs' switch adds, whether SHARP may be used, and also for all_gather and reduce_scatter.
    nvls: bool = False
    collnet: bool = False
    collnet_gathers: bool = False
    switched: bool = True
    # What a log says: channels for collectives, and for NVLS; None: counted from the graphs.
    channels: Integer | None = None
    nvls_channels: Integer | None = None


class CostCell(Value, frozen=True, kw_only=True):
    """One cell of the table. A bandwidth of 0: not to be used."""

    collective: str
    algorithm: NcclAlgorithm
    protocol: Protocol
    latency_us: float
    bandwidth_GBps: float


class CallCost(Value, frozen=True, kw_only=True):
    """One way to do a call of some bytes, and what NCCL counts for it: made for choosing, and no measured time."""

    algorithm: NcclAlgorithm
    protocol: Protocol
    time_us: float
    # None: the count of NVLS channels is not known.
    channels: Integer | None
    threads: Integer
    # Data of a chunk where these channels share the call evenly; None: not known.
    chunk_bytes: Integer | None = None


class PredictedChoice(Value, frozen=True, kw_only=True):
    """What NCCL would take for a call, and the other ways, the cheapest first."""

    collective: str
    size_bytes: Integer
    release: str
    chosen: CallCost
    others: tuple[CallCost, ...] = ()
    origin: str
