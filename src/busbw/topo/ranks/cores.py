"""The cores of a node as a launcher counts them: logical numbers, in the order of NUMA nodes and CPUs."""

from dataclasses import dataclass

from busbw.model.topology import NumaNode, Topology


@dataclass(frozen=True, kw_only=True, slots=True)
class Cores:
    """Cores in logical order, each with its CPUs, and the NUMA nodes and sockets as ranges of them."""

    cores: tuple[tuple[int, ...], ...]
    # NUMA ids in logical order, and the logical numbers of each one's cores.
    numa_ids: tuple[int, ...]
    numa: tuple[tuple[int, ...], ...]
    # The same of sockets; empty: not known.
    sockets: tuple[tuple[int, ...], ...]
    # How far apart the numbers of two hyperthreads of a core are; None: a CPU is a core.
    sibling_step: int | None
    # CPUs that no NUMA node of the topology has, though the numbering says that the machine does.
    elsewhere: tuple[int, ...]
    # Whether the logical numbers hold for the whole machine.
    numbered: bool


def cores_of(topology: Topology, sockets: int | None = None) -> Cores | None:
    """Return the cores of a node; None where a NUMA node's CPUs are not known.

    Hyperthreads are told by their numbers: where the CPUs of every NUMA node are two blocks as far apart everywhere.
    NUMA nodes without CPUs (memory of GPUs) are left out. A file that names only the NUMA nodes with GPUs leaves gaps;
    the cores in them are counted, by number. `sockets` share the NUMA nodes evenly, in order.
    """
    nodes = _with_cpus(topology.numa)
    if not nodes:
        return None
    step = _sibling_step(tuple(cpus for cpus, _id in nodes))
    firsts = tuple(tuple(cpu for cpu in cpus if step is None or cpu - step not in cpus) for cpus, _id in nodes)
    known = {cpu for first in firsts for cpu in first}
    # Where hyperthreads are numbered after all cores, the step is the number of cores.
    gaps = sorted(set(range(max(*known, step or 0))) - known)
    # Blocks of neighbours follow each other as their NUMA nodes do; what is numbered in turns does not.
    numbered = not gaps or all(first[-1] - first[0] + 1 == len(first) for first in firsts)
    order = sorted(known | set(gaps)) if gaps and numbered else [cpu for first in firsts for cpu in first]
    place = {cpu: number for number, cpu in enumerate(order)}
    numa = tuple(tuple(place[cpu] for cpu in first) for first in firsts)
    return Cores(
        cores=tuple((cpu,) if step is None else (cpu, cpu + step) for cpu in order),
        numa_ids=tuple(id_ for _cpus, id_ in nodes),
        numa=numa,
        sockets=_sockets(numa, sockets) if not gaps else (),
        sibling_step=step,
        elsewhere=tuple(gaps),
        numbered=numbered,
    )


def _with_cpus(nodes: tuple[NumaNode, ...]) -> list[tuple[tuple[int, ...], int]]:
    """Return CPUs and ids of the NUMA nodes that have any, by CPUs; nothing where some node's are not known."""
    if any(node.cpus is None for node in nodes):
        return []
    return sorted((node.cpus, node.id) for node in nodes if node.cpus)


def _sibling_step(nodes: tuple[tuple[int, ...], ...]) -> int | None:
    """Return how far the second block of each NUMA node's CPUs is from the first; None where there are no two."""
    steps = set()
    for cpus in nodes:
        half, odd = divmod(len(cpus), 2)
        if odd:
            return None
        low, high = cpus[:half], cpus[half:]
        step = high[0] - low[0]
        # Even numbers here and odd ones there look like two blocks as well: they go on with the same stride.
        stride = cpus[1] - cpus[0] if half > 1 else 1
        if high != tuple(cpu + step for cpu in low) or high[0] - low[-1] == stride:
            return None
        steps.add(step)
    return steps.pop() if len(steps) == 1 else None


def _sockets(numa: tuple[tuple[int, ...], ...], sockets: int | None) -> tuple[tuple[int, ...], ...]:
    if len(numa) == 1:
        return numa
    if sockets is None or sockets < 1 or len(numa) % sockets:
        return ()
    each = len(numa) // sockets
    return tuple(
        tuple(core for node in numa[place : place + each] for core in node) for place in range(0, len(numa), each)
    )


def cpus_of(cores: Cores, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the CPUs of cores by their logical numbers, ascending."""
    return tuple(sorted(cpu for number in numbers for cpu in cores.cores[number]))
