"""What a change of the machine would be worth: the ratio of two predictions, with an interval of its own.

What both predictions share cancels. What is left: whether the pipeline fills in the same time or over the same size
when rates change (both ends are computed), how much of the traffic a blocking spine meets (none, or all of it), and,
where another part limits than before or another algorithm is used, the spread of both constants. A slow NIC, or leaves
of a known size, take a schedule: step by step, or event by event; both ends of what is not said of the network are
computed.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from msgspec import structs

from busbw.base.errors import InputError
from busbw.base.text import counted
from busbw.base.units import format_rate
from busbw.model.limit import NodeRates, Rate
from busbw.model.predict.prediction import ChangedCall, PredictedCall
from busbw.predict.closed import SHARP_UNTOLD, bounds_of, predicted
from busbw.predict.machines import CannotTellError, MachineClass
from busbw.predict.schedules.leaves import Leaves, Placement, Routing
from busbw.predict.schedules.timing import SlowNic
from busbw.predict.tiers import USUAL, Hindrances, ScheduleTier, simulated

Name = TypeVar("Name", bound=str)

# Of bits: a B is none.
_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)\s*(?:[Gg]|G[Bb]?[Ee]|Gb/s|Gbps|Gbit/s)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3})?", re.ASCII)
_SLOW = re.compile(r"node([0-9]{1,6}):(0\.[0-9]{1,4}|1)", re.ASCII)
_HINT = "nic=800G, nics=16, oversubscription=2, leaf=16, nvls=off, sharp=on or slow-nic=node7:0.5, with commas between"
_LEAF_HINT = "oversubscription=2,leaf=16, and routing=static or adaptive, placement=ordered or scattered where known"
_ROUTINGS: dict[str, Routing] = {"adaptive": "adaptive", "static": "static"}
_PLACEMENTS: dict[str, Placement] = {"ordered": "in order", "scattered": "scattered"}
_KEYS = ("nic", "nics", "oversubscription", "nvls", "sharp", "slow-nic", "leaf", "routing", "placement")
_MOST_OF_A_LEAF = 999
# Of a constant that one document tells: the spread of networks among each other.
_UNTOLD_SPREAD = 0.061
_NINETY = 1.645
# No node has more ports, and no port is faster: those of 1,600 Gb/s are announced.
_MOST_NICS = 64
_MOST_GIGABITS = 1600.0
_MOST_BLOCKED = 64.0


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What is changed. None: it stays."""

    words: str
    nic_Bps: float | None = None
    nics: int | None = None
    oversubscription: float | None = None
    without_nvls: bool = False
    # The switches between nodes add.
    with_sharp: bool = False
    # One NIC of one node.
    slow: SlowNic | None = None
    # Nodes of a leaf; None: nothing is known of leaves. Of it and of what follows None takes both ends.
    leaf: int | None = None
    routing: Routing | None = None
    placement: Placement | None = None

    @property
    def takes_schedules(self) -> bool:
        """Return whether the closed form cannot tell what these changes do."""
        return self.slow is not None or self.leaf is not None


def changes_of(texts: tuple[str, ...]) -> Changes | None:
    """Return the changes that texts ask for together; None without one. Raises InputError for others."""
    words = [word.strip() for text in texts for word in text.split(",")]
    if not words:
        return None
    asked: dict[str, str] = {}
    for word in words:
        key, given, value = (part.strip() for part in word.partition("="))
        key = key.lower()
        if not given or key in asked or key not in _KEYS:
            what = "a second change of its kind" if key in asked else "no change that is known"
            raise InputError(f"{word[:40]!r} is {what}", where="--what-if", hint=_HINT)
        asked[key] = value
    _check_leaves(asked)
    return Changes(
        words=", ".join(words),
        nic_Bps=_number(_RATE, asked.get("nic"), "nic", _MOST_GIGABITS, 1e9 / 8, "G"),
        nics=_whole(asked.get("nics"), "nics", "NICs", _MOST_NICS),
        oversubscription=_number(_NUMBER, asked.get("oversubscription"), "oversubscription", _MOST_BLOCKED),
        without_nvls=_is_only("off", asked.get("nvls"), "nvls"),
        with_sharp=_is_only("on", asked.get("sharp"), "sharp"),
        slow=_slow(asked.get("slow-nic")),
        leaf=_whole(asked.get("leaf"), "leaf", "nodes of a leaf", _MOST_OF_A_LEAF),
        routing=_named(_ROUTINGS, asked.get("routing"), "routing"),
        placement=_named(_PLACEMENTS, asked.get("placement"), "placement"),
    )


def _check_leaves(asked: dict[str, str]) -> None:
    lacks = "oversubscription" if "leaf" in asked else "leaf" if {"routing", "placement"} & set(asked) else None
    if lacks is not None and lacks not in asked:
        raise InputError(f"leaf, routing and placement take {lacks} too", where="--what-if", hint=_LEAF_HINT)


def _slow(text: str | None) -> SlowNic | None:
    if text is None:
        return None
    match = _SLOW.fullmatch(text)
    share = 0.0 if match is None else float(match[2])
    if match is None or share <= 0:
        raise InputError(
            f"{text[:20]!r} is no slow NIC", where="--what-if", hint="slow-nic=node7:0.5: half of its rate"
        )
    return SlowNic(node=int(match[1]), share=share)


def _named(known: dict[str, Name], text: str | None, what: str) -> Name | None:
    if text is not None and text not in known:
        raise InputError(f"{text[:20]!r} is no {what}", where="--what-if", hint=f"{what}={' or '.join(known)}")
    return known[text] if text is not None else None


def _number(
    form: "re.Pattern[str]", text: str | None, name: str, most: float, unit: float = 1.0, suffix: str = ""
) -> float | None:
    if text is None:
        return None
    match = form.fullmatch(text)
    value = 0.0 if match is None else float(match[1] if match.lastindex else text)
    if not 1 <= value <= most:
        hint = f"{name}=1{suffix} to {name}={most:g}{suffix}"
        raise InputError(f"{text[:20]!r} is no value of {name}", where="--what-if", hint=hint)
    return value * unit


def _whole(text: str | None, key: str, what: str, most: int) -> int | None:
    value = _number(_NUMBER, text, key, most)
    if value is not None and value != int(value):
        raise InputError(f"{text!r} is no number of {what}", where="--what-if", hint=_HINT)
    return int(value) if value is not None else None


def _is_only(known: str, text: str | None, key: str) -> bool:
    if text not in (None, known):
        raise InputError(f"{text[:20]!r} is no value of {key}", where="--what-if", hint=f"only {key}={known}")
    return text == known


def _changed(machine: MachineClass, changes: Changes, *, blocked: bool) -> MachineClass:
    """Return the machine with its changes; `blocked`: all that leaves a node meets the blocking spine."""
    rates = machine.rates
    if changes.without_nvls:
        if rates.nvls is not True:
            raise InputError(f"{machine.name} has no NVLS that could be off", where="--what-if")
        rates = structs.replace(rates, nvls=False)
    rates = _with_nics(machine, rates, changes, blocked=blocked)
    return replace(machine, name=f"{machine.name}, {changes.words}, {blocked}", rates=rates)


def _with_nics(machine: MachineClass, rates: NodeRates, changes: Changes, *, blocked: bool) -> NodeRates:
    if changes.nic_Bps is changes.nics is changes.oversubscription is None:
        return rates
    if rates.nic is None or not rates.ports:
        raise InputError(
            f"the NICs of {machine.name} are not known", where="--what-if", hint="busbw limit says what is"
        )
    ports = changes.nics or rates.ports
    nic_Bps = changes.nic_Bps or rates.nic.rate_Bps
    through = nic_Bps / (changes.oversubscription or 1.0) if blocked else nic_Bps
    return structs.replace(
        rates,
        ports=ports,
        nic=Rate(rate_Bps=through, figures=f"{nic_Bps * 8 / 1e9:g} Gb/s", source=rates.nic.source),
    )


def changed_call(
    machine: MachineClass, call: PredictedCall, collective: str, changes: Changes, *, tier: ScheduleTier = "steps"
) -> ChangedCall:
    """Return what the same call would take with the changes, and the ratio of bus bandwidth with its 90 % interval.

    `tier`: by which schedules are timed where the closed form cannot tell. Raises CannotTellError where the changed
    machine is of a kind that nobody has published, or a schedule lacks what limits.
    """
    if changes.with_sharp:
        raise CannotTellError(_sharp_words(_changed(machine, changes, blocked=False), call, collective))
    before = predicted(
        machine, nodes=call.nodes, collective=collective, size_bytes=call.size_bytes, algorithm=call.algorithm
    )[0]
    ends = [_changed(machine, changes, blocked=False)]
    if changes.oversubscription is not None and changes.leaf is None:
        ends.append(_changed(machine, changes, blocked=True))
    logs, found, assumed = [], [], []
    for end in ends:
        algorithm = None if changes.without_nvls and call.algorithm.startswith("nvls") else call.algorithm
        after = predicted(
            end, nodes=call.nodes, collective=collective, size_bytes=call.size_bytes, algorithm=algorithm
        )[0]
        found.append(after)
        own = [math.log(before.time_s / time_s) for time_s in _ends_s(before, after)]
        further = _by_schedule(end, after, collective, changes, tier)
        logs += [one + log for one in own for log, _ in further]
        assumed += [words for _, words in further if words]
    reach = _NINETY * _own_spread(before, found)
    middle = (min(logs) + max(logs)) / 2
    return ChangedCall(
        words=changes.words,
        algorithm=found[-1].algorithm,
        limited_by=found[-1].limited_by,
        busbw_Bps=call.busbw_Bps * math.exp(middle),
        ratio=math.exp(middle),
        low_ratio=math.exp(min(logs) - reach),
        high_ratio=math.exp(max(logs) + reach),
        tier=tier if changes.takes_schedules else "closed",
        assumed=tuple(dict.fromkeys(assumed)),
    )


def _sharp_words(machine: MachineClass, call: PredictedCall, collective: str) -> str:
    """Return why nobody can tell what SHARP would give, and what bounds it."""
    try:
        (bound,) = bounds_of(machine, call.nodes, collective, "collnet")
    except InputError:
        return f"no bound of SHARP is known for {collective} on {counted(call.nodes, 'node')}"
    said = {None: "; it is not known to be offered here", False: "; it is said not to be offered here"}
    offered = said.get(machine.rates.sharp, "")
    most = format_rate(bound.busbw_Bps or 0.0)
    bounds = f"it is bounded by {most}, {call.algorithm} without changes by {format_rate(call.bound_Bps)}"
    return f"{SHARP_UNTOLD}{offered}; {bounds}"


def _by_schedule(
    machine: MachineClass, call: PredictedCall, collective: str, changes: Changes, tier: ScheduleTier
) -> list[tuple[float, str]]:
    """Return the logarithms of what slow NICs and leaves leave of a call's bandwidth, and what each assumes.

    Of each there are two: what is lost is added to the call's time, or all of its time grows as the schedule does.
    """
    if not changes.takes_schedules:
        return [(0.0, "")]

    def time_s(conditions: Hindrances) -> float:
        return simulated(
            machine, nodes=call.nodes, collective=collective, algorithm=call.algorithm, size_bytes=call.size_bytes,
            tier=tier, conditions=conditions,
        ).time_s  # fmt: skip

    usual_s = time_s(USUAL)
    found = []
    for conditions, words in _conditions(changes):
        slower_s = max(usual_s, time_s(conditions))
        found.append((math.log(call.time_s / (call.time_s + slower_s - usual_s)), words))
        found.append((math.log(usual_s / slower_s), words))
    return found


def _conditions(changes: Changes) -> Iterator[tuple[Hindrances, str]]:
    """Return each state of the network that the changes leave open."""
    slow = (changes.slow,) if changes.slow is not None else ()
    if changes.leaf is None:
        yield Hindrances(slow=slow), ""
        return
    for routing in _ROUTINGS.values() if changes.routing is None else (changes.routing,):
        for placement in _PLACEMENTS.values() if changes.placement is None else (changes.placement,):
            leaves = Leaves(
                nodes=changes.leaf,
                oversubscription=changes.oversubscription or 1.0,
                routing=routing,
                placement=placement,
            )
            yield Hindrances(slow=slow, leaves=leaves), f"nodes {placement}, {routing} routing"


def _ends_s(before: PredictedCall, after: PredictedCall) -> tuple[float, float]:
    """Return the changed time if the pipeline fills in the same time, and if it fills over the same size."""
    same_size = after.latency_s + after.flags_s + after.wire_s * (1 + before.filling_s / before.wire_s)
    return after.time_s, same_size


def _own_spread(before: PredictedCall, found: list[PredictedCall]) -> float:
    """Return the spread that does not cancel: of the constants of both, where they are not the same."""
    own = before.algorithm, before.basis[0]
    changed = [after for after in found if (after.algorithm, after.basis[0]) != own]
    spreads = [after.share_spread or _UNTOLD_SPREAD for after in changed[:1]]
    if changed:
        spreads.append(before.share_spread or _UNTOLD_SPREAD)
    return math.sqrt(math.fsum(spread**2 for spread in spreads))
