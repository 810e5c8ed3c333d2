"""What a machine could do at best: the rates of its parts, and what each lets a collective reach.

Two kinds of number stand beside each other and are never mixed: a bound follows from line rates by arithmetic; what is
attained is such a rate times what somebody measured of it.
"""

from typing import Literal

from busbw.base.value import Integer, Value

PartName = Literal["nvlink", "pair", "slot", "nic_slot", "nic", "messages"]


class Attained(Value, kw_only=True, frozen=True):
    """How much of a part's rate somebody has seen, or, fitted, the constant that explains what was seen."""

    part: PartName
    # The algorithm it is for; None: all but those with a constant of their own.
    algorithm: str | None = None
    # Of the part's rate.
    share: float
    words: str
    fitted: bool = False
    source: tuple[str, ...]


class Rate(Value, kw_only=True, frozen=True):
    """A line rate in one direction, how it comes about, and who says so."""

    rate_Bps: float
    # The arithmetic, as `400 Gb/s`, or `PCIe 5 x16: 32 GT/s x 16 x 128/130`.
    figures: str
    source: tuple[str, ...] = ()


class MessageRate(Value, kw_only=True, frozen=True):
    """How many messages a second one port can send at best, how that is written, and who says so."""

    per_s: float
    # As `330 M messages/s`.
    figures: str
    source: tuple[str, ...] = ()


class NodeRates(Value, kw_only=True, frozen=True):
    """One node in plain numbers, whether published, captured or measured. None: not known.

    All rates are in one direction.
    """

    name: str | None = None
    # GPUs that take part; 0: a node that computes on its CPUs.
    gpus: Integer
    # Ranks of a node without GPUs; None: not said.
    cpu_ranks: Integer | None = None
    # GPUs that reach each other over their own links within the node; 1: none has such links.
    island_gpus: Integer | None = None
    # GPUs that do so across nodes, where there are more than in a node.
    domain_gpus: Integer | None = None
    # All links of one GPU together, and those between two GPUs.
    nvlink: Rate | None = None
    pair: Rate | None = None
    # Whether the switch between the GPUs adds (NVLink SHARP), and the one between the nodes.
    nvls: bool | None = None
    sharp: bool | None = None
    # From one GPU to the rest of its node: PCIe, or the links to its own CPU.
    slot: Rate | None = None
    # Ports of the compute NICs that are used, what one sends, and its part of its card's slot.
    ports: Integer | None = None
    nic: Rate | None = None
    nic_slot: Rate | None = None
    messages: MessageRate | None = None
    attained: tuple[Attained, ...] = ()
    assumptions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class Part(Value, kw_only=True, frozen=True):
    """One line of the budget: a part of the machine and what it carries."""

    name: PartName
    title: str
    # Of one GPU, of two that are linked, or of all that leaves a node (or an NVLink domain); None: not known.
    of: Literal["gpu", "pair", "node"]
    rate_Bps: float | None
    figures: str
    source: tuple[str, ...] = ()
    # What would have to be known, where the rate is not.
    missing: str | None = None
    attained: tuple[Attained, ...] = ()


class LimitLine(Value, kw_only=True, frozen=True):
    """What one part lets one algorithm reach."""

    part: PartName
    # With letters, then with numbers.
    formula: str
    figures: str
    busbw_Bps: float | None
    # The same with what was seen of the part's rate; None: nobody has measured it.
    attained_Bps: float | None = None
    attained_words: str | None = None
    limits: bool = False


class Bound(Value, kw_only=True, frozen=True):
    """The ceiling of one collective by one algorithm."""

    collective: str
    algorithm: str
    # Why the formula holds, and for what.
    why: str
    source: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    lines: tuple[LimitLine, ...] = ()
    # None: it cannot be told, for what is `missing`.
    busbw_Bps: float | None = None
    algbw_Bps: float | None = None
    attained_Bps: float | None = None
    limited_by: PartName | None = None
    missing: tuple[str, ...] = ()


PlannedAlgorithm = Literal["ring", "tree", "nvls"]


class ChannelPlan(Value, kw_only=True, frozen=True):
    """The channels that NCCL lays through all GPUs of a node for one algorithm, as its graph log prints them.

    A job then uses twice as many for ring and tree, each as fast as the links let it.
    """

    algorithm: PlannedAlgorithm
    channels: Integer
    # Of one channel, by NCCL's rates.
    channel_Bps: float
    # The worst type of path between GPUs that they may use, as in model.topology.
    type: str
    # Whether they were laid to be alike.
    alike: bool
    # Whether a tree's traffic with other nodes goes through one GPU of each: NCCL counts less for such a tree.
    plain: bool = False
    # What NCCL takes this for as bus bandwidth of all_reduce, before what it knows of protocols; None: it says nothing
    # of NVLS without them.
    busbw_Bps: float | None


class Limit(Value, kw_only=True, frozen=True):
    """What the bus bandwidth of collectives can be at best, on some nodes of one kind."""

    name: str | None
    nodes: Integer
    # Of each node, and all together.
    gpus: Integer
    ranks: Integer
    # NVLink domains, where one spans several nodes.
    domains: Integer | None = None
    parts: tuple[Part, ...]
    # Per collective, the highest first.
    bounds: tuple[Bound, ...]
    # Of all pairs of ranks together, where that was asked; None: it was not, or is not known.
    messages_per_s: float | None = None
    assumptions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    # What NCCL plans within one such node, by its own rates, where its topology is known: no bound on what is measured.
    plans: tuple[ChannelPlan, ...] = ()
    # The release whose search that is; None: no plan is known.
    planned_by: str | None = None
