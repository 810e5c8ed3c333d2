"""How much of a part's line rate is reached, by the nearest class of machines that a document has."""

from msgspec import structs

from busbw.base.collectives import COLLECTIVES
from busbw.facts.nccl_model import nccl_constants, newest_release
from busbw.model.limit import Bound
from busbw.model.predict.prediction import Kinship, LinkShare, NetworkHop, PredictorConstants
from busbw.predict.machines import RDMA, CannotTellError, MachineClass, groups_of
from busbw.predict.nccl_table import BLACKWELL
from busbw.predict.rising import PRESUMED, TREES
from busbw.predict.sends import SENT

# By these names `limits` has the ways of sends and receives.
_SENT_BY = frozenset({"linear", "neighbour"})
# Of line rate, where no document says anything: it is never shown before measured cells of the machine moved it.
_PRESUMED_SHARE = 0.75
CHANNELS = "channels of NCCL's tree"
_TITLES = {
    "nic": "NICs of a node",
    "nvlink": "links of a GPU",
    "pair": "links of two GPUs",
    "slot": "slot of a GPU",
    "nic_slot": "NIC slots of a node",
}


def large_Bps(
    machine: MachineClass, bound: Bound, constants: PredictorConstants, *, nodes: int, collective: str
) -> tuple[float, str, LinkShare]:
    """Return the bus bandwidth of messages of 16 GiB, the part that limits it, and the share it was counted with.

    Raises CannotTellError where no document has such a part.
    """
    within = groups_of(machine, nodes) == 1
    least: tuple[float, str, LinkShare] | None = None
    for line in bound.lines:
        if line.busbw_Bps is None:
            continue
        # Between nodes the slot of a GPU carries what its NICs carry.
        part = "nic" if line.part == "slot" and not within else line.part
        share = share_of(machine, part, bound.algorithm, constants)
        if share is None:
            if line.limits:
                raise CannotTellError(_no_share_words(machine, line.part, bound.algorithm))
            continue
        rate_Bps = line.busbw_Bps * share.share
        if least is None or rate_Bps < least[0]:
            least = rate_Bps, _TITLES.get(line.part, line.part), share
    if least is None:
        raise CannotTellError("no part that data passes has been measured")
    channels_Bps = _tree_channels_Bps(machine, nodes, collective, bound.algorithm)
    if channels_Bps is not None and channels_Bps < least[0]:
        return channels_Bps, CHANNELS, least[2]
    # A part without a share still bounds.
    return min(least[0], bound.busbw_Bps or least[0]), least[1], least[2]


def _tree_channels_Bps(machine: MachineClass, nodes: int, collective: str, algorithm: str) -> float | None:
    """Return the bus bandwidth that NCCL counts for the channels of a tree over nodes of Blackwell; None: no such tree.

    Half of channels x GB/s of one, with a channel for each NIC. On Hopper NCCL's number is no limit: two nodes of
    Isambard-AI carry 12 % more (W2).
    """
    if algorithm != "tree" or groups_of(machine, nodes) == 1 or machine.sm is None or machine.sm < BLACKWELL:
        return None
    each_GBps = nccl_constants(newest_release()).tree.blackwell[min(nodes, 3) - 1]
    channels = min(machine.rates.ports or machine.rates.gpus, machine.rates.gpus)
    return COLLECTIVES[collective].factor(machine.rates.gpus * nodes) * channels * each_GBps * 1e9 / 2


def _no_share_words(machine: MachineClass, part: str, algorithm: str) -> str:
    where = {
        "nic": machine.fabric or "a network of unknown kind",
        "nic_slot": f"{machine.fabric or 'a network'} whose NICs are faster than their slots",
        "slot": "nodes whose GPUs' slots limit",
    }
    return f"no measurement of {algorithm} over {where.get(part, 'such GPUs')} is published"


def share_of(machine: MachineClass, part: str, algorithm: str, constants: PredictorConstants) -> LinkShare | None:
    """Return how much of a part is reached, of the nearest class that has documents; None: no class has."""
    kind = "nic" if part in ("nic", "nic_slot") else "slot" if part == "slot" else "nvlink"
    alike = "tree" if kind == "nic" and algorithm in TREES else SENT if algorithm in _SENT_BY else algorithm
    ladder: list[tuple[str, str | None, str | None]] = [(alike, each, None) for each in machine.generations]
    if algorithm == "nvlstree":
        # Within a node its switch adds as it does in one alone.
        ladder += [("nvls", each, None) for each in machine.generations]
    if alike == SENT:
        # Before sends of other GPUs what a ring reaches of these links.
        ladder += [("ring", each, None) for each in machine.generations]
    ladder.append((alike, None, None))
    if algorithm == "tree" or alike == SENT:
        # Within a node a tree is a chain of its GPUs, over the links that a ring takes.
        ladder += [("ring", each, None) for each in (*machine.generations, None)]
    if alike == SENT and machine.sm is None:
        # Channels and links of other makers are not those of NCCL's documents.
        ladder = [(alike, each, None) for each in machine.generations]
    if kind == "nic":
        ladder = _of_networks(machine, alike)
    if kind == "slot":
        ladder = []
    ladder.append((PRESUMED, None, None))
    found = (_share(constants, kind, *wanted) for wanted in ladder)
    return next((share for share in found if share is not None), None)


def _of_networks(machine: MachineClass, alike: str) -> list[tuple[str, str | None, str | None]]:
    """Return the classes of a NIC's share, the nearest first; none for a network of unknown kind."""
    if machine.fabric is None:
        return []
    ladder: list[tuple[str, str | None, str | None]] = [
        (alike, machine.generation, machine.fabric),
        ("any", machine.generation, machine.fabric),
        ("any", None, machine.fabric),
    ]
    if machine.fabric in RDMA:
        # Nodes of one generation have NICs and slots of one generation too.
        ladder += [("any", machine.generation, None)] if machine.generation is not None else []
        ladder += [("any", None, None)]
    return ladder


def with_presumed(constants: PredictorConstants) -> PredictorConstants:
    """Return constants that tell something of every link and network, by no document: for measured cells to move."""
    shares = tuple(
        LinkShare(part=part, algorithm=PRESUMED, share=_PRESUMED_SHARE, documents=())
        for part in ("nic", "nvlink", "slot")
    )
    hop = NetworkHop(fabric=PRESUMED, extra_s=0.0, documents=())
    return structs.replace(constants, share=(*constants.share, *shares), hop=(*constants.hop, hop))


def _share(
    constants: PredictorConstants, part: str, algorithm: str, generation: str | None, fabric: str | None
) -> LinkShare | None:
    return next(
        (
            row
            for row in constants.share
            if (row.part, row.algorithm, row.generation, row.fabric) == (part, algorithm, generation, fabric)
        ),
        None,
    )


def kinship_of(machine: MachineClass, share: LinkShare, algorithm: str) -> Kinship:
    """Return whether the constant that counts most is of such machines, of sends whether it is of sends."""
    own = share.generation == machine.generation and share.generation is not None and share.algorithm != "any"
    if algorithm in _SENT_BY and share.algorithm != SENT:
        return "across"
    return "in family" if own and (share.part == "nvlink" or share.fabric == machine.fabric) else "across"


def share_words(share: LinkShare, limited_by: str) -> str:
    """Return how much of which part is reached, in words, with who tells it."""
    if limited_by == CHANNELS:
        return f"{limited_by}: one for each NIC, at what NCCL's cost model counts for them over nodes of Blackwell"
    if not share.documents:
        return f"{limited_by}: no document tells what of line rate is reached; {share.share:g} until cells moved it"
    of = " ".join(each for each in (share.algorithm, share.generation, share.fabric) if each is not None)
    spread = f" +- {100 * share.spread:.0f} %" if share.spread is not None else ""
    return f"{limited_by}: {share.share:.3f} of line rate{spread}, fitted ({of}; {', '.join(share.documents)})"
