"""What counters of ports counted between two readings: rises, counters at their maximum or begun anew, ports that went.

A reading is what `machine.capture`, a rank or perfquery read; no counter is set to zero for it.
"""

from collections import defaultdict
from collections.abc import Sequence

from msgspec import structs

from busbw.base.text import listed
from busbw.base.value import Integer, Value
from busbw.facts.port_counters import CounterKind, CounterOwner, PortCounter, port_counters
from busbw.model.machine import CountersRead

# What a sweep looks for; the others say nothing about a fabric.
SIGNS: tuple[CounterKind, ...] = ("link_error", "loss", "congestion", "host")
ERRORS: tuple[CounterKind, ...] = ("link_error", "loss")


class PortChange(Value, kw_only=True, frozen=True):
    """A counter that rose by as much as matters."""

    host: str
    # `mlx5_3/1`, `cxi0`, `eth0`, of a switch `/12`.
    port: str
    counter: str
    words: str
    kind: CounterKind
    change: Integer
    # The counter is at its maximum, or began anew: it may have been more.
    at_least: bool = False
    # What is at the other end; None: not known.
    linked: str | None = None

    @property
    def place(self) -> str:
        """The port as a sentence names it: `node07 mlx5_3 port 1`."""
        return port_words(self.host, self.port)

    @property
    def counted(self) -> str:
        """What it counted: `symbol errors +412`, `link recoveries at least +3`."""
        return f"{self.words} {'at least ' if self.at_least else ''}+{self.change}"


class PortChanges(Value, kw_only=True, frozen=True):
    """All that changed between two readings."""

    changes: tuple[PortChange, ...]
    # How many ports were read both times, and of which hosts.
    ports: Integer
    hosts: tuple[str, ...]
    # Of these the ones that have ordinary interfaces only: on the others those are hardly the fabric.
    plain: tuple[str, ...] = ()
    # From the first reading before to the last after; None: not known.
    seconds: float | None
    # When, as a sentence has it: `in 41 s`, `during rounds 2 to 7`; "": not known.
    when: str
    # Ports that were there before and are not any more, and the other way round.
    gone: tuple[str, ...] = ()
    come: tuple[str, ...] = ()
    # Counters that were at their maximum before: what they count is not seen.
    stuck: tuple[str, ...] = ()
    # Hosts that started again in between, and hosts with one of the two readings.
    restarted: tuple[str, ...] = ()
    unpaired: tuple[str, ...] = ()


def port_words(host: str, port: str) -> str:
    """Return a port as a sentence names it: `node07 mlx5_3 port 1`, `leaf3 port 12`, `node07 eth0`."""
    device, slash, number = port.partition("/")
    return " ".join(each for each in (host, device, f"port {number}" if slash else "") if each)


def owner_of(port: str) -> CounterOwner:
    """Return whose counters a port has, by its name."""
    return "rdma" if "/" in port else "cxi" if port.startswith("cxi") else "net"


class _Side(Value, kw_only=True, frozen=True):
    """One of the two readings of a host. Ports, each with its counters."""

    ports: dict[str, dict[str, int]]
    uptime_s: float | None
    unix_s: float | None
    extended: frozenset[str]
    linked: dict[str, str]


def changes(before: Sequence[CountersRead], after: Sequence[CountersRead], when: str | None = None) -> PortChanges:
    """Return what changed from `before` to `after`, the most serious first.

    Of a port that is there twice the first before and the last after count. `when`: how a sentence names the time
    between; None: by the clocks.
    """
    firsts, lasts = _sides(before), _sides(tuple(reversed(after)))
    both = [host for host in firsts if host in lasts]
    made: list[PortChange] = []
    stuck: list[str] = []
    gone: list[str] = []
    come: list[str] = []
    ports = 0
    for host in both:
        first, last = firsts[host], lasts[host]
        gone += [port_words(host, port) for port in first.ports if port not in last.ports]
        come += [port_words(host, port) for port in last.ports if port not in first.ports]
        for port in first.ports:
            if port in last.ports:
                ports += 1
                _compare(host, port, first, last, made, stuck)
    spans = [each for host in both if (each := _seconds(firsts[host], lasts[host])) is not None and each >= 0]
    seconds = max(spans, default=None)
    order = {kind: at for at, kind in enumerate(SIGNS)}
    return PortChanges(
        changes=tuple(sorted(made, key=lambda each: (order[each.kind], -each.change, each.place))),
        ports=ports,
        hosts=tuple(both),
        plain=tuple(host for host in both if all(owner_of(port) == "net" for port in lasts[host].ports)),
        seconds=seconds,
        when=when if when is not None else span_words(seconds) if seconds else "",
        gone=tuple(gone),
        come=tuple(come),
        stuck=tuple(stuck),
        restarted=tuple(host for host in both if _restarted(firsts[host], lasts[host])),
        unpaired=tuple(sorted(set(firsts) ^ set(lasts))),
    )


def moved(before: CountersRead, after: CountersRead) -> tuple[CountersRead, CountersRead]:
    """Return two readings of a host with those counters alone that are a sign of something and did not stand still."""
    kept = []
    for key, was in before.counters.items():
        port, _space, name = key.rpartition(" ")
        declared = _declared(owner_of(port), name)
        if declared is not None and declared.kind in SIGNS and after.counters.get(key, was) != was:
            kept.append(key)
    first, last = (
        structs.replace(each, counters={key: each.counters[key] for key in kept}) for each in (before, after)
    )
    return first, last


def called_as(readings: Sequence[CountersRead], nodes: Sequence[str]) -> tuple[CountersRead, ...]:
    """Return readings under the names that tests have for hosts: with or without a domain is the same host."""
    short: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        short[node.partition(".")[0]].append(node)
    known = set(nodes)

    def name(host: str) -> str:
        alike = short.get(host.partition(".")[0], [])
        return alike[0] if host not in known and len(alike) == 1 else host

    return tuple(structs.replace(each, host=name(each.host)) for each in readings)


def span_words(seconds: float) -> str:
    """Return a time between readings as a sentence has it: `in 41 s`, `in 12 min`, `in 5.2 h`, `in 3.1 days`."""
    if seconds < 120:
        return f"in {seconds:.0f} s"
    if seconds < 7200:
        return f"in {seconds / 60:.0f} min"
    return f"in {seconds / 3600:.1f} h" if seconds < 172_800 else f"in {seconds / 86_400:.1f} days"


def _sides(readings: Sequence[CountersRead]) -> dict[str, _Side]:
    """Return one side of each host: of a counter that is there twice the first."""
    grouped: dict[str, list[CountersRead]] = defaultdict(list)
    for each in readings:
        grouped[each.host].append(each)
    found = {}
    for host, several in grouped.items():
        ports: dict[str, dict[str, int]] = {}
        extended: set[str] = set()
        linked: dict[str, str] = {}
        for each in several:
            linked = each.linked | linked
            for key, value in each.counters.items():
                port, _space, name = key.rpartition(" ")
                ports.setdefault(port, {}).setdefault(name, value)
                if each.extended:
                    extended.add(port)
        found[host] = _Side(
            ports=ports,
            uptime_s=several[0].uptime_s,
            unix_s=several[0].unix_s,
            extended=frozenset(extended),
            linked=linked,
        )
    return found


def _seconds(first: _Side, last: _Side) -> float | None:
    return last.unix_s - first.unix_s if first.unix_s is not None and last.unix_s is not None else None


def _restarted(first: _Side, last: _Side) -> bool:
    return first.uptime_s is not None and last.uptime_s is not None and last.uptime_s < first.uptime_s


def _compare(host: str, port: str, first: _Side, last: _Side, made: list[PortChange], stuck: list[str]) -> None:
    owner = owner_of(port)
    seconds = _seconds(first, last)
    anew = _restarted(first, last)
    for name, was in first.ports[port].items():
        declared = _declared(owner, name)
        now = last.ports[port].get(name)
        if declared is None or now is None or declared.kind not in SIGNS:
            continue
        most = None if port in first.extended or port in last.extended else declared.most
        if most is not None and was >= most and now >= most:
            stuck.append(f"{port_words(host, port)}: {declared.words} at their maximum of {most}")
            continue
        change, at_least = risen(was, now, most, anew=anew)
        if declared.matters(change, seconds):
            made.append(_change(host, port, declared, change, at_least=at_least, linked=last.linked.get(port)))


def _declared(owner: CounterOwner, name: str) -> PortCounter | None:
    """Return what is known of a counter; what the driver keeps of a port of RoCE is told as of any interface."""
    known = port_counters()
    return known.get((owner, name)) or known.get(("net", name))


def risen(was: int, now: int, most: int | None, *, anew: bool = False) -> tuple[int, bool]:
    """Return by how much a counter rose, and whether that is the least it can be.

    Below what it was it began anew (cleared, restarted, or at the end of its width): it rose by what it shows at least.
    `most`: where it stays at its maximum. `anew`: the host is known to have started again.
    """
    if anew or now < was:
        return max(now, 0), True
    return now - was, most is not None and now >= most


def _change(
    host: str, port: str, declared: PortCounter, change: int, *, at_least: bool, linked: str | None
) -> PortChange:
    return PortChange(
        host=host,
        port=port,
        counter=declared.name,
        words=declared.words,
        kind=declared.kind,
        change=change,
        at_least=at_least,
        linked=linked,
    )


def by_port(found: Sequence[PortChange]) -> dict[str, tuple[PortChange, ...]]:
    """Return changes by the port that they are of, in their order."""
    grouped: dict[str, list[PortChange]] = defaultdict(list)
    for each in found:
        grouped[each.place].append(each)
    return {place: tuple(each) for place, each in grouped.items()}


def counted_words(found: Sequence[PortChange]) -> str:
    """Return what the changes of a port counted, for a sentence: `symbol errors +412, link recoveries +2`."""
    return listed((each.counted for each in found), most=3)
