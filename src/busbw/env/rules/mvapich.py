"""MVAPICH: variables of another generation than the one that is used, and settings that undo each other.

MVAPICH2 (2.x) reads MV2_, the pre-releases of MVAPICH 3 read MVP_ and MV2_, MVAPICH 4 and MVAPICH-Plus read MPICH's
MPIR_CVAR_, also as MVP_, and nothing of the older ones but three names.
"""

import re
from collections.abc import Iterator

from busbw.env.rules.interactions_network import Together
from busbw.env.rules.subject import SettingsSubject, known, place_of, report, setting_text
from busbw.facts.envvars import readers
from busbw.model.envvar import Interaction
from busbw.model.finding import Finding
from busbw.model.settings import Assignment

_PREFIXES = ("MV2_", "MVP_")
# How scripts name what they load or start: a module, a folder, an image. `mvapich2` without a number is 2.x too.
_NAMED = (
    ("MVAPICH 4", re.compile(r"mvapich[-_/]?(?:plus\b|(?:plus[-_/])?4(?:\.|\b))", re.ASCII | re.IGNORECASE)),
    ("MVAPICH 3", re.compile(r"mvapich[-_/]?3(?:\.|\b)", re.ASCII | re.IGNORECASE)),
    ("MVAPICH2", re.compile(r"mvapich2(?:[-_/](?:x|gdr|2|j|virt)|\b)", re.ASCII | re.IGNORECASE)),
)
_REMARK = re.compile(r"(?:^|\s)#.*")
_LONGEST = 2_000
# What says the same to MVAPICH 4.
_INSTEAD = {
    "ENABLE_AFFINITY": "mpiexec -bind-to, which binds ranks in MVAPICH 4",
    "CPU_MAPPING": "mpiexec -bind-to user:..., which binds ranks in MVAPICH 4",
    "CPU_BINDING_POLICY": "mpiexec -bind-to and -map-by, which bind ranks in MVAPICH 4",
    "CPU_BINDING_LEVEL": "mpiexec -bind-to core, socket or numa, which binds ranks in MVAPICH 4",
    "USE_CUDA": "MVP_ENABLE_GPU, which is 1 by default",
    "IBA_HCA": "UCX_NET_DEVICES where the library is built on UCX",
    "SMP_USE_CMA": "MVP_CH4_CMA_ENABLE",
}


def generations(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield variables that the generation of MVAPICH this text uses does not read."""
    used = _generation(subject.reading.lines)
    if used is None:
        return
    for each in subject.reading.assignments:
        if each.unsets or each.form == "shell" or not each.name.startswith(_PREFIXES):
            continue
        reading = _readers(each.name)
        if reading and used not in reading:
            yield _another(each, used, reading)


def _generation(lines: tuple[str, ...]) -> str | None:
    """Return the one generation that a text names; None where it names none, or several."""
    text = "\n".join(_REMARK.sub("", line[:_LONGEST]) for line in lines)
    named = tuple(name for name, pattern in _NAMED if pattern.search(text))
    return named[0] if len(named) == 1 else None


def _readers(name: str) -> tuple[str, ...]:
    """Return the generations that read a name; () where it is none of theirs."""
    prefix, ending = name[:4], name[4:]
    found = [*readers().get(name, ())]
    variable = known(name)
    if variable is not None and variable.owner.startswith("MVAPICH"):
        # What MVAPICH2-GDR adds is still of the second generation.
        found.append("MVAPICH2" if variable.owner == "MVAPICH2-GDR" else variable.owner)
    if prefix == "MV2_" and f"MVP_{ending}" in readers() and "MVAPICH 3" in readers()[f"MVP_{ending}"]:
        found.append("MVAPICH 3")
    return tuple(sorted(set(found)))


def _another(each: Assignment, used: str, reading: tuple[str, ...]) -> Finding:
    ending = each.name[4:]
    fix = f"MV2_{ending}={each.written}" if used == "MVAPICH2" and "MVAPICH2" in _readers(f"MV2_{ending}") else None
    if used == "MVAPICH 4":
        fix = _INSTEAD.get(ending)
    variable = known(each.name)
    return report(
        "ENV028",
        at=place_of(each),
        evidence=setting_text(each),
        effect=f"read by {' and '.join(reading)}: the default stays in force",
        confidence="likely",
        fix=fix or "leave it out",
        source=variable.source if variable is not None else None,
        name=each.name,
        used=used,
    )


_BIND = "MVAPICH2 2.3.7-1, src/mpid/ch3/channels/common/src/affinity/hwloc_bind.c"
_POLICIES = ("MV2_CPU_BINDING_POLICY", "MV2_CPU_BINDING_LEVEL")
_SHARP = "MVAPICH2 2.3.7-1, src/mpi/coll/ch3_shmem_coll.c"
_MULTICAST = "MVAPICH2 2.3.7-1, src/mpid/ch3/channels/mrail/src/gen2/ibv_param.c"
_FEWEST_FOR_MULTICAST = 8


def _binding_off(set_: Together) -> Iterator[Interaction]:
    if not set_.is_off("MV2_ENABLE_AFFINITY"):
        return
    for name in ("MV2_CPU_MAPPING", *_POLICIES):
        if set_.has(name):
            yield Interaction(
                id="MVAPICH2 binding off",
                names=(name, "MV2_ENABLE_AFFINITY"),
                condition=f"{set_.written(name)} with {set_.written('MV2_ENABLE_AFFINITY')}",
                effect="MVAPICH2 binds no rank, and does not read it",
                kind="no effect",
                fix="MV2_ENABLE_AFFINITY=1, or leave the other out",
                source=_BIND,
            )


def _mapped(set_: Together) -> Iterator[Interaction]:
    if not set_.has("MV2_CPU_MAPPING") or set_.is_off("MV2_ENABLE_AFFINITY"):
        return
    for name in _POLICIES:
        if set_.has(name):
            yield Interaction(
                id="MVAPICH2 mapping and policy",
                names=(name, "MV2_CPU_MAPPING"),
                condition=f"{set_.written(name)} with {set_.written('MV2_CPU_MAPPING')}",
                effect="the mapping counts: the policy is not read",
                kind="no effect",
                fix="one of the two",
                source=_BIND,
            )


def _hybrid(set_: Together) -> Iterator[Interaction]:
    if set_.has("MV2_HYBRID_BINDING_POLICY") and set_.taken("MV2_CPU_BINDING_POLICY") in ("bunch", "scatter"):
        yield Interaction(
            id="MVAPICH2 hybrid policy",
            names=("MV2_HYBRID_BINDING_POLICY", "MV2_CPU_BINDING_POLICY"),
            condition=f"{set_.written('MV2_HYBRID_BINDING_POLICY')} with {set_.written('MV2_CPU_BINDING_POLICY')}",
            effect="it is read with MV2_CPU_BINDING_POLICY=hybrid only",
            kind="no effect",
            fix="MV2_CPU_BINDING_POLICY=hybrid, or leave it out",
            source=_BIND,
        )


def _few_for_multicast(set_: Together) -> Iterator[Interaction]:
    # Only where the number of hosts is known for certain: one.
    if set_.nodes == 1 and set_.is_on("MV2_USE_MCAST"):
        threshold = set_.number("MV2_MCAST_NUM_NODES_THRESHOLD") or _FEWEST_FOR_MULTICAST
        yield Interaction(
            id="MVAPICH2 multicast on one host",
            names=("MV2_USE_MCAST",),
            condition=f"{set_.written('MV2_USE_MCAST')} on one host",
            effect=f"collectives use multicast from {threshold} hosts on",
            kind="no effect",
            fix="leave it out",
            source=_MULTICAST,
        )


def _sharp_parts(set_: Together) -> Iterator[Interaction]:
    if not set_.is_off("MV2_ENABLE_SHARP"):
        return
    parts = [name for name in set_.values if name.startswith("MV2_ENABLE_SHARP_") and set_.text(name) == "1"]
    for name in parts:
        yield Interaction(
            id="MVAPICH2 SHARP off",
            names=(name, "MV2_ENABLE_SHARP"),
            condition=f"{set_.written(name)} with {set_.written('MV2_ENABLE_SHARP')}",
            effect="no collective uses SHARP",
            kind="contradiction",
            fix="MV2_ENABLE_SHARP=1, or leave the other out",
            source=_SHARP,
        )


MVAPICH = (_binding_off, _mapped, _hybrid, _few_for_multicast, _sharp_parts)
