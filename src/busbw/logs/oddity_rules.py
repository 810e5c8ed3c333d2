"""Rules about the few that are not like the others in what NCCL found, or that came late."""

from collections.abc import Iterator, Mapping
from statistics import median

from busbw.facts.findings import finding
from busbw.logs.case import Case
from busbw.logs.effects import DIRECT
from busbw.logs.ranks import Member, words
from busbw.model.finding import Finding

# What nodes of one job have alike where they are made alike.
_OF_NODES = (
    "CUDA driver",
    "NICs",
    "NVLS",
    "bootstrap",
    "dma-buf",
    "libfabric provider",
    "net plugin",
    "net plugin file",
    "topology file",
    "tuner",
)
# Those that a rank may lack, and what then decides for it.
_LACKED = ("net plugin", "net plugin file", "topology file", "tuner")
# Shorter waits are usual: libraries are loaded, files are read.
_LONG_S = 10.0


def oddity_findings(case: Case) -> Iterator[Finding]:
    """Yield who differs from most others."""
    for name, values in sorted(case.facts.items()):
        if name in _OF_NODES or name.startswith(DIRECT):
            yield from _differing(case, name, values)
    yield from _late(case)


def _differing(case: Case, name: str, values: Mapping[str, tuple[Member, ...]]) -> Iterator[Finding]:
    if name == "NICs" and len({value.count("[") for value in values}) > 1:
        return  # different numbers have a finding of their own
    most = max(values, key=lambda value: len(values[value]))
    odd = {value: who for value, who in values.items() if value != most}
    lacking = _lacking(case, values) if name in _LACKED and not case.state.leaves_out else frozenset()
    members = {member for who in odd.values() for member in who} | lacking
    if not members or not case.are_few_nodes(members):
        return
    shown = "; ".join(f"{value}: {words(who)}" for value, who in sorted(odd.items())[:4])
    without = f"{'; ' if shown else ''}none: {words(lacking)}" if lacking else ""
    yield finding(
        "LOG023",
        evidence=f"{most}: {words(values[most])}; {shown}{without}",
        fix="compare these nodes with the others: image, driver, environment, devices",
        confidence="certain",
        name="bootstrap interface" if name == "bootstrap" else name,
    )


def _lacking(case: Case, values: Mapping[str, tuple[Member, ...]]) -> frozenset[Member]:
    having = {member for who in values.values() for member in who}
    return frozenset(case.people.seats) - having


def _late(case: Case) -> Iterator[Finding]:
    """Yield who let the others wait: all wait for the last in the bootstrap, which is short for the last alone."""
    waits = {
        rank: seat.wait.time_s
        for rank, (_process, seat) in case.people.seats.items()
        if seat.wait is not None and seat.wait.ranks == case.people.ranks
    }
    if len(waits) < 3:
        return
    usual = median(waits.values())
    late = {member: wait for member, wait in waits.items() if wait < usual / 2}
    if usual < _LONG_S or not late or len(late) * 2 > len(waits):
        return
    yield finding(
        "LOG024",
        evidence=f"most waited {usual:.0f} s for all to come, {words(late)} {max(late.values()):.0f} s at most",
        fix="look at what these ranks did before: loading the program from a slow file system, a busy or slow host",
        confidence="likely",
        who=words(late),
        late_s=f"{usual - min(late.values()):.0f}",
    )
