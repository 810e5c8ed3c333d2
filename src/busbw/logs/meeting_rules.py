"""The rule about ranks that cannot reach each other: connections that were never made, by whom and to where."""

import re
from collections.abc import Sequence

from busbw.facts.findings import finding
from busbw.logs.case import Case
from busbw.logs.ranks import words
from busbw.logs.troubles import Event
from busbw.model.finding import Finding

NEVER_MADE = frozenset({"connect-failed", "connect-given-up"})
_ODD_INTERFACE = re.compile(r"lo$|docker|virbr|veth|br-|cni|flannel|cali|tun\d|tailscale", re.ASCII)
_MOST_PEERS = 4


def leads_nowhere(interface: str) -> bool:
    """Whether an interface is of a kind that exists on every node and joins none."""
    return _ODD_INTERFACE.match(interface) is not None


def unreachable_finding(case: Case, reports: Sequence[Event]) -> Finding | None:
    """Return that connections could not be made; None where others were made and broke before."""
    failed = [event for event in reports if event.pattern is not None and event.pattern.id in NEVER_MADE]
    broken = [event for event in reports if event.pattern is not None and event.pattern.id == "peer-gone"]
    if not failed:
        return None
    first = min(failed, key=_order)
    is_ordered = len({event.source for event in reports}) == 1 or all(event.time is not None for event in reports)
    if broken and not (is_ordered and _order(first) < min(map(_order, broken))):
        return None
    peers = sorted({event.groups["peer"].rstrip(",.") for event in failed if "peer" in event.groups})
    to = f" to {', '.join(peers[:_MOST_PEERS])}{' and more' if len(peers) > _MOST_PEERS else ''}" if peers else ""
    who = words(member for event in failed for member in case.who(event)) or "somebody"
    # Nobody listens at a right address; at a wrong one a stranger refuses.
    refused = all("refused" in event.text for event in failed) and not any(map(leads_nowhere, case.has("bootstrap")))
    return finding(
        "LOG037",
        evidence=f"{who}: no connection{to} could be made; {_interfaces(case)}the first: {first.text}",
        fix="nothing listens there: look whether that rank has ended, or was started at all"
        if refused
        else "set NCCL_SOCKET_IFNAME to the interface that joins the nodes, as `ip -br address` shows it on both, and "
        "let TCP through between them on all ports: `nc -z ADDRESS PORT`",
        where=case.place(first),
        confidence="possible" if refused else "likely",
    )


def _order(event: Event) -> tuple[str, int, int]:
    return (event.time or "", event.source, event.line)


def _interfaces(case: Case) -> str:
    """Return over which interfaces ranks look for each other."""
    used = case.has("bootstrap")
    if not used:
        return ""
    shown = "; ".join(f"{name} ({words(who)})" for name, who in used.items())
    return f"ranks give addresses of {next(iter(used)) if len(used) == 1 else shown}; "
