"""Settings together: what they do to each other where they hold at once."""

import re
from collections.abc import Iterator, Mapping

from msgspec import structs

from busbw.env.rules.interactions_algorithms import ALGORITHMS, LIMITS
from busbw.env.rules.interactions_network import NETWORK, TRANSPORT, Together
from busbw.env.rules.mvapich import MVAPICH
from busbw.env.rules.situations import Situation, spans_nodes
from busbw.env.rules.subject import SettingsSubject, place_of, report, setting_text
from busbw.model.envvar import Interaction
from busbw.model.finding import Finding

_RULES = (*ALGORITHMS, *TRANSPORT, *NETWORK, *LIMITS, *MVAPICH)


def interactions(
    values: Mapping[str, str], *, version: tuple[int, ...] | None = None, nodes: int | None = None
) -> tuple[Interaction, ...]:
    """Return what settings that hold together do to each other.

    `values`: variable to text, as ranks see them. `version`: NCCL's; None: the newest known. `nodes`: None: not known.
    """
    together = Together(values, version, nodes)
    return tuple(found for rule in _RULES for found in rule(together))


_CODES = {
    "contradiction": "ENV060",
    "fails": "ENV061",
    "wrong data": "ENV062",
    "hang": "ENV063",
    "slow": "ENV064",
    "no effect": "ENV065",
    "clipped": "ENV066",
    "misleading": "ENV067",
}
# Languages of what is completed where it is used.
_OF_PARTS = {"dockerfile", "apptainer", "modulefile"}
_NCCL = "NCCL_"
# What programs of nccl-tests call, by NCCL's names; those that send and receive need no algorithm.
_CALLED_BY = {
    "all_reduce_perf": "AllReduce", "all_gather_perf": "AllGather", "broadcast_perf": "Broadcast",
    "reduce_perf": "Reduce", "reduce_scatter_perf": "ReduceScatter", "sendrecv_perf": None, "alltoall_perf": None,
    "gather_perf": None, "scatter_perf": None, "hypercube_perf": None,
}  # fmt: skip
_BETWEEN_WORDS = re.compile(r"[\s;&|()]+")
_BUFFER = "NCCL_BUFFSIZE"
_SOME_WITHOUT = "some without algorithm"
# RCCL follows NCCL at a distance: ROCm 6.4 has 2.22. What only newer versions do is not certain there.
_EARLY_RCCL = (2, 22)


def combinations(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield what settings that hold together do to each other; commands with the same settings are told once."""
    reported: set[tuple[int | None, frozenset[str], frozenset[tuple[str, str]]]] = set()
    for situation in subject.situations:
        nodes = _nodes(subject, situation)
        values = situation.values()
        called = _programs(situation)
        key = nodes, called, frozenset(values.items())
        if key in reported:
            continue
        reported.add(key)
        for each in _interactions(values, subject, nodes):
            used = _used_without(each, situation)
            is_vouched = _is_published(each, values, subject) or (used is not None and not used)
            if used:
                yield _finding(_failing(each, used), situation)
            elif (
                not is_vouched
                and not _is_open(each, situation)
                and not (_rests_on_absence(each) and _is_part(subject, situation))
            ):
                yield _finding(each, situation)


def _interactions(values: Mapping[str, str], subject: SettingsSubject, nodes: int | None) -> tuple[Interaction, ...]:
    found = interactions(values, version=subject.version, nodes=nodes)
    if not subject.is_for_rccl or subject.context.nccl is not None:
        return found
    early = {each.id for each in interactions(values, version=_EARLY_RCCL, nodes=nodes)}
    return tuple(each for each in found if each.id in early)


def _is_published(each: Interaction, values: Mapping[str, str], subject: SettingsSubject) -> bool:
    """Return whether the platform's owner publishes just these settings, and so vouches for what might mislead."""
    platform = subject.context.platform
    if platform is None or each.kind != "misleading":
        return False
    published = {(setting.name, setting.value) for setting in platform.settings}
    return all((name, values.get(name)) in published for name in each.names)


def _programs(situation: Situation) -> frozenset[str]:
    """Return which programs of nccl-tests a command names, also within what a shell is handed: `bash -c '...'`."""
    words = situation.launch.argv if situation.launch is not None else ()
    parts = (part for word in words for part in _BETWEEN_WORDS.split(word))
    return frozenset(program for part in parts if (program := part.rpartition("/")[2]) in _CALLED_BY)


def _used_without(each: Interaction, situation: Situation) -> tuple[str, ...] | None:
    """Return which of the collectives without an algorithm the program calls; None: it is not known what it calls."""
    programs = _programs(situation)
    if each.id != _SOME_WITHOUT or not programs:
        return None
    calls = {_CALLED_BY[program] for program in programs}
    return tuple(name for name in each.condition.rpartition(" to ")[2].split(", ") if name in calls)


def _failing(each: Interaction, used: tuple[str, ...]) -> Interaction:
    names = ", ".join(used)
    return structs.replace(
        each,
        kind="fails",
        condition=f"{each.condition.rpartition(' to ')[0]} to {names}, which this command calls",
        effect="its first call fails: no algorithm is left to choose",
        fix="name Ring too, or leave NCCL_ALGO out",
    )


def _rests_on_absence(each: Interaction) -> bool:
    """Whether it is one setting that does nothing, for want of another."""
    return each.kind == "no effect" and len(each.names) == 1


def _is_open(each: Interaction, situation: Situation) -> bool:
    """Whether the buffer that clips a chunk is set to what is not known here."""
    passed = situation.launch.forwards if situation.launch is not None else ()
    return each.kind == "clipped" and (_BUFFER in situation.settings or _BUFFER in passed) and _BUFFER not in each.names


def _is_part(subject: SettingsSubject, situation: Situation) -> bool:
    """Whether more may be set than is known: in the job that an image is for, in a file that is sourced, by a value."""
    reading, launch = subject.reading, situation.launch
    if reading.language in _OF_PARTS or reading.unread:
        return True
    if any(each.value is None for name, each in situation.settings.items() if name.startswith(_NCCL)):
        return True
    passed = launch.forwards if launch is not None else ()
    return any(name.startswith(_NCCL) and name not in situation.settings for name in passed)


def _nodes(subject: SettingsSubject, situation: Situation) -> int | None:
    """Return the nodes of a command: 2 stands for several."""
    several = spans_nodes(situation.launch, subject.nodes) if situation.launch is not None else None
    return subject.nodes if several is None else 2 if several else 1


def _finding(each: Interaction, situation: Situation) -> Finding:
    involved = [situation.settings[name] for name in each.names if name in situation.settings]
    place = involved[0] if involved else next(iter(situation.settings.values()))
    return report(
        _CODES[each.kind],
        at=place_of(place),
        evidence=" and ".join(map(setting_text, involved)) or each.condition,
        effect=each.effect,
        fix=each.fix,
        source=each.source,
        names=" and ".join(setting.name for setting in involved),
        condition=each.condition,
    )
