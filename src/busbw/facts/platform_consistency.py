"""Whether the parts of a platform fit each other: what is named is there, and is what it is said to be."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec

from busbw.base.collectives import COLLECTIVES
from busbw.base.cpus import parse_cpu_list
from busbw.model.platform import Platform, PublishedSweep

# The names of the algorithms that have a bound (`limits`): what a result may say it was measured with.
ALGORITHMS = (
    "ring", "tree", "nvls", "nvlstree", "collnet", "pat", "linear", "two-level", "neighbour", "any", "pairs",
)  # fmt: skip
_BUS_ID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")


def contradiction(platform: Platform) -> tuple[str, str] | None:
    """Return the path (`numa[1].cpus`, entries by place) and words of the first thing that cannot be, or None."""
    checks = (_amounts, _numa, _bus_ids, _switches, _gpus, _nics, _algorithms, _sweeps)
    return next((found for check in checks for found in check(platform)), None)


def _amounts(platform: Platform) -> Iterator[tuple[str, str]]:
    tables = {name: getattr(platform, name) for name in ("cpu", "gpu", "nvlink", "pcie", "nic", "frontend", "fabric")}
    tables |= {f"variants[{place}]": each for place, each in enumerate(platform.variants)}
    for path, table in tables.items():
        for name, value in msgspec.structs.asdict(table).items():
            if isinstance(value, int | float) and value < 0:
                yield f"{path}.{name}", f"{value:g} is less than nothing"


def _numa(platform: Platform) -> Iterator[tuple[str, str]]:
    owner: dict[int, int] = {}
    for place, node in enumerate(platform.numa):
        cpus = parse_cpu_list(node.cpus) if node.cpus is not None else ()
        if cpus is None or (node.cpus is not None and not cpus):
            yield f"numa[{place}].cpus", f"{node.cpus!r} is not a list of CPUs such as 0-55,112-167"
        for cpu in cpus or ():
            if owner.setdefault(cpu, node.id) != node.id:
                yield f"numa[{place}].cpus", f"CPU {cpu} is on NUMA node {owner[cpu]} and on {node.id}"


def _bus_ids(platform: Platform) -> Iterator[tuple[str, str]]:
    places = (
        *((f"switches[{place}].bus_id", each.bus_id) for place, each in enumerate(platform.switches)),
        *((f"gpus[{place}].bus_id", each.bus_id) for place, each in enumerate(platform.gpus)),
        *((f"nics[{place}].bus_id", each.bus_id) for place, each in enumerate(platform.nics)),
    )
    for path, bus_id in places:
        if bus_id is not None and _BUS_ID.fullmatch(bus_id) is None:
            yield path, f"{bus_id!r} is not a PCI address in lower case such as 0000:0f:00.0"


def _switches(platform: Platform) -> Iterator[tuple[str, str]]:
    parents = {switch.bus_id: switch.parent for switch in platform.switches}
    misplaced = _misplaced(platform)
    for place, switch in enumerate(platform.switches):
        yield from misplaced(f"switches[{place}]", switch.numa, switch.parent)
        above, steps = switch.parent, 0
        while above is not None and steps <= len(parents):
            above, steps = parents.get(above), steps + 1
        if above is not None:
            yield f"switches[{place}].parent", "the switches hang below each other in a circle"


def _gpus(platform: Platform) -> Iterator[tuple[str, str]]:
    if len(platform.gpus) > max(platform.gpu.count, *(each.gpus or 0 for each in platform.variants), 0):
        yield "gpus", f"{len(platform.gpus)} are listed, and gpu.count is {platform.gpu.count}"
    names, misplaced = {nic.name for nic in platform.nics}, _misplaced(platform)
    for place, gpu in enumerate(platform.gpus):
        yield from misplaced(f"gpus[{place}]", gpu.numa, gpu.parent)
        for name in gpu.nics:
            if platform.nics and name not in names:
                yield f"gpus[{place}].nics", f"there is no NIC {name} among `nics`"


def _nics(platform: Platform) -> Iterator[tuple[str, str]]:
    misplaced = _misplaced(platform)
    for place, nic in enumerate(platform.nics):
        yield from misplaced(f"nics[{place}]", nic.numa, nic.parent)


def _misplaced(platform: Platform) -> Callable[[str, int | None, str | None], Iterator[tuple[str, str]]]:
    """Return what looks for the NUMA node and the switch that something is said to be at."""
    nodes, switches = {node.id for node in platform.numa}, {switch.bus_id for switch in platform.switches}

    def look(path: str, numa: int | None, parent: str | None) -> Iterator[tuple[str, str]]:
        if numa is not None and nodes and numa not in nodes:
            yield f"{path}.numa", f"there is no NUMA node {numa} among `numa`"
        if parent is not None and parent not in switches:
            yield f"{path}.parent", f"there is no switch {parent} among `switches`"

    return look


def _algorithms(platform: Platform) -> Iterator[tuple[str, str]]:
    """Yield results whose algorithm no other result can have: they would never be compared with anything."""
    for name in ("published", "sweeps"):
        for place, each in enumerate(getattr(platform, name)):
            if each.algorithm is not None and each.algorithm not in ALGORITHMS:
                yield f"{name}[{place}]", f"{each.algorithm[:80]!r} is no algorithm: one of {', '.join(ALGORITHMS)}"


def _sweeps(platform: Platform) -> Iterator[tuple[str, str]]:
    for place, sweep in enumerate(platform.sweeps):
        wrong = _wrong_sweep(sweep)
        if wrong is not None:
            yield f"sweeps[{place}]", wrong


def _wrong_sweep(sweep: PublishedSweep) -> str | None:
    """Return what cannot be in a table of results, or None."""
    sizes = [size_bytes for size_bytes, _ in sweep.points]
    if sweep.test not in COLLECTIVES:
        return f"{sweep.test[:80]!r} is no collective that busbw knows"
    if sweep.nodes < 1 or sweep.gpus < 1 or sweep.gpus % sweep.nodes:
        return f"{sweep.gpus} GPUs are not the same number on each of {sweep.nodes} nodes"
    if not sizes:
        return "no point: each is [size in bytes, GB/s]"
    if sizes[0] <= 0 or any(after <= before for before, after in pairwise(sizes)):
        return "the sizes do not ascend from point to point"
    low = next((rate for _, rate in sweep.points if rate <= 0), None)
    if low is not None:
        return f"a bus bandwidth of {low:g} GB/s"
    return None if sweep.document.strip() else "`document` is empty"
