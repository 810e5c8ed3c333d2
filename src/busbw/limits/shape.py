"""How many GPUs stand where: what the factors of a bound depend on."""

from dataclasses import dataclass

from busbw.model.limit import NodeRates


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Ranks in groups: a group is a node, or the nodes of one NVLink domain.

    `ranks` n, `groups` N, `group` g ranks of one group, `island` m ranks that reach each other over links of their
    own, `ports` k NIC ports of one group.
    """

    ranks: int
    groups: int
    group: int
    island: int
    ports: int

    @property
    def islands(self) -> int:
        """Return the number of islands of all groups together."""
        return self.groups * -(-self.group // self.island)


def shape_of(rates: NodeRates, nodes: int) -> Shape:
    """Return how the ranks of `nodes` such nodes stand; a node without GPUs counts with its ranks on CPUs.

    Nodes of NVLink domains fill as few of them as they can, evenly; a group is then the smallest of them.
    """
    per_node = rates.gpus or rates.cpu_ranks or 1
    nodes_of_group = 1
    if rates.gpus and rates.domain_gpus is not None and rates.domain_gpus >= 2 * per_node:
        nodes_of_domain = rates.domain_gpus // per_node
        nodes_of_group = nodes // -(-nodes // nodes_of_domain)
    group = per_node * nodes_of_group
    # A domain that is not full leaves less than a group over; it is counted as one.
    groups = nodes // nodes_of_group
    island = group if nodes_of_group > 1 else min(rates.island_gpus or 1, group)
    return Shape(
        ranks=per_node * nodes,
        groups=groups,
        group=group,
        island=island if rates.gpus else group,
        ports=(rates.ports or 0) * nodes_of_group,
    )
