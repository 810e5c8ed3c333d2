"""The hosts of a run: one line where they are alike, a row for each difference where they are not."""

from busbw.base.hostlist import compressed
from busbw.model.preflight import differences
from busbw.model.record import Node

_MOST_ROWS = 8
_LONGEST = 60


def node_lines(nodes: tuple[Node, ...]) -> tuple[str, ...]:
    """Return what there is to say of several hosts, a line each; () of one."""
    if len(nodes) < 2:  # one has nothing to be compared with
        return ()
    names = _short(compressed([node.host for node in nodes]))
    found = differences(nodes)
    if not found:
        first = nodes[0]
        parts = (first.cpu_model, f"{first.cpus} CPUs", f"{len(first.gpus)} GPUs" if first.gpus else None, first.kernel)
        return (f"{len(nodes)} hosts alike, {names}: {', '.join(part for part in parts if part)}",)
    rows = [
        f"  {difference.what}: "
        + ", ".join(f"{value} on {_short(compressed(hosts))}" for value, hosts in difference.values)
        for difference in found[:_MOST_ROWS]
    ]
    more = [f"  and {len(found) - _MOST_ROWS} more"] if len(found) > _MOST_ROWS else []
    return (f"{len(nodes)} hosts, {names}, that differ in:", *rows, *more)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
