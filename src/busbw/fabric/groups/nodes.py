"""The nodes of a search over groups, by the groups that each was in."""

from collections import Counter

from busbw.base.value import Integer, Value
from busbw.fabric.groups.isolation import Isolation

_WHOLE = "whole"


class NodeGroups(Value, kw_only=True, frozen=True):
    """In how many groups a node was, runs of all nodes left out, and how many of them were slow or failed."""

    host: str
    groups: Integer
    bad: Integer
    suspect: bool


def nodes_of(found: Isolation) -> tuple[NodeGroups, ...]:
    """Return the nodes that were in any group: suspects first, then by the share of bad groups."""
    groups: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    for each in found.tests:
        if each.purpose != _WHOLE:
            groups.update(each.hosts)
            bad.update(each.hosts if each.state in ("slow", "failed") else ())
    suspects = {host for answer in found.answers if len(answer.hosts) < len(found.plan.hosts) for host in answer.hosts}
    made = [
        NodeGroups(host=host, groups=groups[host], bad=bad[host], suspect=host in suspects)
        for host in found.plan.hosts
        if groups[host]
    ]
    return tuple(sorted(made, key=lambda each: (not each.suspect, -each.bad / each.groups)))
