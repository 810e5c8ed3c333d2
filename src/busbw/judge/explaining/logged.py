"""What NCCL's own log beside a table says of how it was measured: settings, choices by size, the network it used."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from busbw.judge.explaining.series import Detour
from busbw.judge.explaining.told import Told, algorithm_name, told_by_settings
from busbw.model.diagnosis import Diagnosis

_COLLECTIVES = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Logged:
    """What the log of one job says; nothing, where there is none."""

    told: Told = field(default_factory=Told)
    # Algorithm, in busbw's spelling, and protocol, by collective and size; sizes with several choices are left out.
    choices: Mapping[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    # What ranks were connected over where links or the fabric could have been.
    detour: Detour | None = None


def logged_of(diagnosis: Diagnosis) -> Logged:
    """Return what decides about expectations in the log of a job."""
    settings = [(fact.name, fact.values[0].value) for fact in diagnosis.environment if len(fact.values) == 1]
    return Logged(
        told=told_by_settings(settings).then(Told(nodes=diagnosis.nodes)),
        choices=_choices(diagnosis),
        detour=_detour(diagnosis),
    )


def _detour(diagnosis: Diagnosis) -> Detour | None:
    ways = [kind.via for kind in diagnosis.traffic]
    if any(via.startswith("NET/Socket") for via in ways):
        return "sockets"
    return "shm" if any(via.startswith("SHM") for via in ways) else None


def _choices(diagnosis: Diagnosis) -> dict[tuple[str, int], tuple[str, str]]:
    found: dict[tuple[str, int], set[tuple[str, str]]] = {}
    for choice in diagnosis.choices:
        name, algorithm = _COLLECTIVES.get(choice.collective), algorithm_name(choice.algorithm)
        if name is not None and algorithm is not None:
            found.setdefault((name, choice.size_bytes), set()).add((algorithm, choice.protocol))
    return {key: same.pop() for key, same in found.items() if len(same) == 1}
