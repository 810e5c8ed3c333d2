"""Slurm's `topology.conf` of a tree: read strictly, written, and held against the hosts and the latencies of a sweep.

Lines are `SwitchName=NAME` with `Nodes=LIST` or `Switches=LIST`, and `LinkSpeed=`, which means nothing (Slurm's manual,
topology.conf(5)). Keys are without case, `#` begins a comment, a backslash at the end of a line goes on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from busbw.base.errors import InputError
from busbw.base.hostlist import compressed, expand
from busbw.base.text import counted
from busbw.fabric.places import PairTest, Places, members_text

MOST_BYTES = 2**24
_MOST_SWITCHES = 65_536
_KEYS = {"switchname", "nodes", "switches", "linkspeed"}


@dataclass(frozen=True, kw_only=True)
class SwitchTree:
    """The leaves of a tree with their hosts, and the switch above each."""

    leaves: dict[str, tuple[str, ...]]
    # The switch above a switch; that of a root is not there.
    above: dict[str, str]
    where: str


def read_tree(text: str, where: str) -> SwitchTree:
    """Return the tree that a `topology.conf` describes.

    Raises InputError for anything that is no such line, a switch that is there twice, is not there or is its own
    parent, and a host below two switches.
    """
    leaves: dict[str, tuple[str, ...]] = {}
    children: dict[str, tuple[str, ...]] = {}
    for number, line in _lines(text):
        at = f"{where}:{number}"
        keys = _keys(line, at)
        name = keys["switchname"]
        if name in leaves or name in children:
            raise InputError(f"the switch {name[:60]!r} is there twice", where=at)
        if ("nodes" in keys) == ("switches" in keys):
            raise InputError("a switch has either Nodes= or Switches=", where=at)
        if "nodes" in keys:
            leaves[name] = expand(keys["nodes"], where=at)
        else:
            children[name] = expand(keys["switches"], where=at)
        if len(leaves) + len(children) > _MOST_SWITCHES:
            raise InputError(f"more than {_MOST_SWITCHES} switches", where=at)
    if not leaves:
        raise InputError("no switch with nodes in it", where=where, hint="SwitchName=leaf0 Nodes=n[0-15]")
    _check_hosts(leaves, where)
    return SwitchTree(leaves=leaves, above=_above(leaves, children, where), where=where)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, continued ones as one, with the number of their first."""
    begun, first = "", 0
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.partition("#")[0].rstrip()
        first = first if begun else number
        if line.endswith("\\"):
            begun += line[:-1] + " "
            continue
        if (begun + line).strip():
            yield first, begun + line
        begun = ""
    if begun.strip():
        yield first, begun


def _keys(line: str, at: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in line.split():
        key, sign, value = word.partition("=")
        if key.lower() in ("blockname", "blocksizes"):
            raise InputError("a block topology is no tree: busbw reads SwitchName lines only", where=at)
        if not sign or not value or key.lower() not in _KEYS or key.lower() in found:
            raise InputError(f"{word[:60]!r} is none of SwitchName=, Nodes=, Switches=, LinkSpeed= once each", where=at)
        found[key.lower()] = value
    if "switchname" not in found:
        raise InputError("a line without SwitchName=", where=at)
    return found


def _check_hosts(leaves: dict[str, tuple[str, ...]], where: str) -> None:
    of: dict[str, str] = {}
    for leaf, hosts in leaves.items():
        for host in hosts:
            if host in of:
                raise InputError(f"{host} is below {of[host]} and below {leaf}", where=where)
            of[host] = leaf


def _above(leaves: dict[str, tuple[str, ...]], children: dict[str, tuple[str, ...]], where: str) -> dict[str, str]:
    above: dict[str, str] = {}
    for parent, below in children.items():
        for child in below:
            if child not in leaves and child not in children:
                raise InputError(f"{parent} has the switch {child[:60]!r}, which no line describes", where=where)
            if child in above:
                raise InputError(f"{child} is below {above[child]} and below {parent}", where=where)
            above[child] = parent
    sound: set[str] = set()
    for switch in above:
        passed: dict[str, None] = {}
        at = switch
        while at in above and at not in sound:
            if at in passed:
                raise InputError(f"{at} is above itself", where=where)
            passed[at] = None
            at = above[at]
        sound.update(passed)
    return above


def placed(places: Places, tree: SwitchTree) -> Places:
    """Return the places with the leaves of a tree. Raises InputError for a host that the tree does not have."""
    leaf_of = {host: leaf for leaf, hosts in tree.leaves.items() for host in hosts}
    if missing := [node for node in places.nodes if node not in leaf_of]:
        raise InputError(
            f"{counted(len(missing), 'tested host')} not in the topology: {members_text(missing)}", where=tree.where
        )
    used = tuple(dict.fromkeys(leaf_of[node] for node in places.nodes))
    parents = [tree.above.get(leaf, leaf) for leaf in used]
    numbers = {parent: at for at, parent in enumerate(dict.fromkeys(parents))}
    return Places(
        endpoints=places.endpoints,
        leaves=tuple(used.index(leaf_of[each.node]) for each in places.endpoints),
        leaf_names=used,
        groups=tuple(numbers[parent] for parent in parents),
    )


def tree_text(places: Places) -> str:
    """Return the leaves as Slurm reads them, below one switch. Raises InputError where leaves are not known."""
    if None in places.leaves or not places.leaf_names:
        raise InputError("the leaves are not known", hint="measure the latency of all pairs")
    lines = []
    for number, name in enumerate(places.leaf_names):
        nodes = dict.fromkeys(places.endpoints[each].node for each in places.members.get(number, ()))
        lines.append(f"SwitchName={name} Nodes={compressed(tuple(nodes))}")
    lines.append(f"SwitchName=spine Switches={compressed(places.leaf_names)}")
    return "\n".join(lines) + "\n"


def contradictions(places: Places, tests: Sequence[PairTest], numbers: Sequence[int]) -> tuple[str, ...]:
    """Return the hosts whose latencies fall into the band of another leaf: their leaf is not where the tree has it.

    `numbers`: the band of each test, ascending; with one band alone nothing can be said.
    """
    if len({each for each in numbers if each >= 0}) < 2:
        return ()
    wrong: dict[int, int] = {}
    seen: dict[int, int] = {}
    for test, number in zip(tests, numbers, strict=True):
        if number < 0:
            continue
        is_wrong = (number == 0) != (places.hops(test.sender, test.receiver) == 0)
        for end in (test.sender, test.receiver):
            seen[end] = seen.get(end, 0) + 1
            wrong[end] = wrong.get(end, 0) + is_wrong
    # A host in the wrong place is wrong with its old leaf and with its new one; its partners are wrong once each.
    far = [each for each, count in wrong.items() if count >= 2 and 4 * count >= seen[each]]
    return tuple(dict.fromkeys(places.endpoints[each].node for each in sorted(far)))
