"""How many ranks run where, in words."""

from busbw.base.hostlist import compressed
from busbw.model.plan import Placement

_BOUND = {
    "core": "one core each",
    "numa": "one NUMA node each",
    "masks": "each on the CPUs given to it",
    "none": "not bound",
}


def placement_words(placement: Placement) -> str:
    """Return for example `8 ranks on 4 hosts, n[0-3], 2 on each; one core each`."""
    counts = set(placement.ranks_of_hosts)
    where = ""
    if counts:
        hosts = "1 host" if len(placement.hosts) == 1 else f"{len(placement.hosts)} hosts"
        each = f"{min(counts)} on each" if len(counts) == 1 else f"{min(counts)} to {max(counts)} on each"
        where = f" on {hosts}, {compressed(placement.hosts)}, {each}"
    separator = ";" if where else ","
    crowded = ", more ranks than cores" if placement.oversubscribed else ""
    return f"{placement.ranks} ranks{where}{separator} {_BOUND[placement.binding]}{crowded}"
