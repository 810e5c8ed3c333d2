"""What an MPI should be told on a platform: what is published for it, and what the platform's own facts give.

For machines without GPUs, and for programs whose own messages are to be fast; where MPI only starts the ranks of NCCL
`busbw.env.recommend.host` decides.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.env.recommend.case import SettingsCase
from busbw.facts.advice import PublishedForMpi, published_for_mpi
from busbw.model.platform import Platform
from busbw.model.recommendation import LaunchAdvice, LeftOut, Need, Recommended, Topic

MPIS = (
    "hpcx",
    "open-mpi-4",
    "open-mpi-5",
    "mvapich2",
    "mvapich2-gdr",
    "mvapich",
    "mvapich-plus",
    "intel-mpi",
    "mpich",
    "cray-mpich",
)
# What each is made from: the same settings and the same launcher hold for it.
_MADE_FROM = {"mvapich2-gdr": "mvapich2", "mvapich-plus": "mvapich"}
_OPEN_MPI = frozenset(("hpcx", "open-mpi-4", "open-mpi-5"))
_HYDRA = frozenset(("mvapich", "mpich"))
# Whose messages go over UCX on InfiniBand and RoCE; Intel MPI by its provider mlx.
_OVER_UCX = _OPEN_MPI | _HYDRA | {"intel-mpi"}
_OVER_LIBFABRIC = _HYDRA | {"intel-mpi"}
_DERIVED = ("platform-facts",)
_NOT_PUBLISHED = "not published"
_VERBS = ("InfiniBand", "RoCE")
_PROVIDERS = {"EFA": "efa", "Slingshot": "cxi"}
_TCP = ("TCPX", "TCPXO", "Ethernet")
# Settings that bind ranks, which a launch line does by its own words.
BINDING = frozenset(("MV2_CPU_BINDING_POLICY", "MV2_CPU_BINDING_LEVEL", "I_MPI_PIN_DOMAIN"))
# Settings that a job on one node needs too.
_WITHIN_A_NODE = BINDING | {"MV2_USE_CUDA"}


@dataclass(frozen=True, kw_only=True, slots=True)
class MpiAdvice:
    """What to set for an MPI, what not, and the launcher's words that belong to it."""

    settings: tuple[Recommended, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    launch: tuple[LaunchAdvice, ...] = ()


def check_mpi(name: str) -> None:
    """Raise InputError for an MPI that is not known."""
    if name not in MPIS:
        raise InputError(
            f"{name[:40]!r} is no MPI that is known{maybe(name[:40], MPIS)}", hint="one of: " + ", ".join(MPIS)
        )


def usual_mpi(platform: Platform) -> str:
    """Return the MPI where none is named: that of HPE on Slingshot, HPC-X on InfiniBand, else Open MPI."""
    return {"Slingshot": "cray-mpich", "InfiniBand": "hpcx"}.get(platform.fabric.kind or "", "open-mpi-4")


def mpi_advice(case: SettingsCase, mpi: str) -> MpiAdvice:
    """Return what `mpi` should be told for a job on the platform."""
    gpu_memory = tuple(_gpu_memory(case, mpi))
    mpi = _MADE_FROM.get(mpi, mpi)
    published = [each for each in published_for_mpi() if mpi in each.mpi and _is_for(each, case.platform)]
    taken = [_taken(each, each.need) for each in published if each.need is not None]
    left = tuple(
        LeftOut(name=each.name, value=each.value, kind=each.left, reason=each.reason or "", source=each.source)
        for each in published
        if each.left is not None
    )
    names = {each.name for each in taken}
    derived = (each for rule in _RULES for each in rule(case, mpi))
    # Between nodes; one node needs none of it but where its ranks run.
    settings = [*gpu_memory, *taken, *(each for each in derived if each.name not in names)]
    if case.nodes == 1:
        settings = [each for each in settings if each.name in _WITHIN_A_NODE]
    return MpiAdvice(
        settings=tuple(settings), left_out=left, launch=(*_placement(case.platform, mpi), *_other_mpi(case, mpi))
    )


def _other_mpi(case: SettingsCase, mpi: str) -> Iterator[LaunchAdvice]:
    kind = case.platform.fabric.kind
    if mpi == "mvapich2" and kind in _PROVIDERS and case.nodes > 1:
        yield LaunchAdvice(
            option="--mpi mvapich",
            reason=f"MVAPICH2 sends over InfiniBand verbs; {kind} is reached through libfabric, as MVAPICH 4 does",
            source=("mvapich2-source",),
        )


def _is_for(each: PublishedForMpi, platform: Platform) -> bool:
    return platform.fabric.kind in each.fabrics or any(fnmatchcase(platform.id, one) for one in each.platforms)


def _taken(each: PublishedForMpi, need: Need) -> Recommended:
    return Recommended(
        name=each.name,
        value=each.value,
        need=need,
        topic=_topic(each.name),
        scope=each.scope,
        reason=each.reason or "",
        source=each.source,
        conditions=each.conditions,
        checks=("the application, with it and without",) if need == "check_first" else (),
    )


def _topic(name: str) -> Topic:
    if name in BINDING:
        return "affinity"
    return "nics" if "DEVICES" in name or "HCA" in name or "NIC" in name or "IFACE" in name else "transport"


def _derived(name: str, value: str, facts: str, *, need: Need = "helps", scope: str = "mpi", why: str) -> Recommended:
    return Recommended(
        name=name,
        value=value,
        need=need,
        topic=_topic(name),
        scope=scope,
        reason=f"{why} Derived from the platform's facts: {facts}; {_NOT_PUBLISHED}.",
        source=_DERIVED,
        checks=("the application, with it and without",) if need == "check_first" else (),
    )


_RANGE = re.compile(r"([A-Za-z_]\w*?)(\d{1,4})\.\.(\d{1,4})", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MOST = 64


def device_names(text: str | None) -> tuple[str, ...]:
    """Return the devices of a platform's list, `mlx5_0, mlx5_3..5`; () where it is in other words than names."""
    found: list[str] = []
    for part in (text or "").split(","):
        word = part.strip()
        several = _RANGE.fullmatch(word)
        if several is not None and int(several[2]) <= int(several[3]) < int(several[2]) + _MOST:
            found += [f"{several[1]}{number}" for number in range(int(several[2]), int(several[3]) + 1)]
        elif _NAME.fullmatch(word):
            found.append(word)
        else:
            return ()
    return tuple(found)


def _ports(platform: Platform) -> str:
    count = platform.nic.ports
    kind = platform.fabric.kind or ""
    return f"{count} port{'s' if count != 1 else ''} of {kind}, called {platform.nic.names}"


def _devices(case: SettingsCase, mpi: str) -> Iterator[Recommended]:
    platform = case.platform
    names = device_names(platform.nic.names)
    if platform.fabric.kind not in _VERBS or not names:
        return
    others = f", and {platform.frontend.names} is for other traffic" if platform.frontend.names else ""
    facts = _ports(platform) + others
    if mpi in _OVER_UCX:
        value = ",".join(f"{name}:1" for name in names)
        why = "The ports for messages alone; without it UCX takes every device that it finds."
        yield _derived("UCX_NET_DEVICES", value, facts, scope="ucx", why=why)
    if mpi == "mvapich2":
        why = "The devices for messages alone."
        yield _derived("MV2_IBA_HCA", ":".join(names), facts, why=why)
    if mpi == "mvapich2" and platform.fabric.kind == "RoCE":
        yield _derived("MV2_USE_RoCE", "1", "its network is RoCE", need="needed", why="MVAPICH2 is told of RoCE.")
    if mpi == "hpcx":
        why = "The device that hcoll uses; it looks for one by itself."
        yield _derived("HCOLL_MAIN_IB", f"{names[0]}:1", facts, need="check_first", why=why)


def _over_ucx(case: SettingsCase, mpi: str) -> Iterator[Recommended]:
    """Yield what holds of any such network where nobody has published the names of its devices."""
    platform = case.platform
    if platform.fabric.kind not in _VERBS or device_names(platform.nic.names) or mpi not in _OPEN_MPI:
        return
    why = "MPI's messages go over UCX, or the job ends and says so; without it Open MPI takes TCP where UCX fails."
    yield _derived("OMPI_MCA_pml", "ucx", f"its network is {platform.fabric.kind}", why=why)


def _alike(case: SettingsCase, mpi: str) -> Iterator[Recommended]:
    if mpi == "mvapich2":
        why = "Start-up without comparing the hosts."
        facts = f"all nodes are {case.platform.names[0]}"
        yield _derived("MV2_HOMOGENEOUS_CLUSTER", "1", facts, why=why)


def _binding(case: SettingsCase, mpi: str) -> Iterator[Recommended]:
    numa = case.platform.cpu.numa_nodes
    if mpi != "mvapich2" or numa is None or numa < 2:
        return
    facts = f"{numa} NUMA nodes"
    yield _derived("MV2_CPU_BINDING_POLICY", "scatter", facts, why="Ranks are dealt out evenly over NUMA nodes.")
    yield _derived("MV2_CPU_BINDING_LEVEL", "numanode", facts, why="Each rank has the cores of its NUMA node.")


def _provider(case: SettingsCase, mpi: str) -> Iterator[Recommended]:
    kind = case.platform.fabric.kind or ""
    if kind in _PROVIDERS and mpi not in ("mvapich2", "cray-mpich"):
        why = "No other provider is taken when this one is missing: the job says so instead."
        yield _derived("FI_PROVIDER", _PROVIDERS[kind], f"its network is {kind}", scope="libfabric", why=why)
    if kind in _VERBS and mpi == "intel-mpi":
        why = "Intel MPI's provider over UCX."
        yield _derived("FI_PROVIDER", "mlx", f"its network is {kind}", scope="libfabric", why=why)


def _gpu_memory(case: SettingsCase, mpi: str) -> Iterator[Recommended]:
    if mpi == "mvapich2-gdr" and case.platform.gpu.count > 0 and case.platform.gpu.sm is not None:
        yield Recommended(
            name="MV2_USE_CUDA",
            value="1",
            need="needed",
            topic="transport",
            scope="mpi",
            reason="Without it MPI takes pointers into GPU memory for host memory, and the program crashes.",
            source=("mvapich2-gdr-guide",),
            conditions="the program gives MPI buffers in GPU memory",
        )


def _nearest_nic(case: SettingsCase, mpi: str) -> Iterator[Recommended]:
    platform = case.platform
    if platform.fabric.kind != "Slingshot" or mpi != "cray-mpich":
        return
    ports = platform.nic.ports or 0
    if ports > 1:
        facts = f"{ports} NICs on {platform.cpu.numa_nodes or 'several'} NUMA nodes"
        why = "Each rank uses the NIC of its own NUMA node; by default consecutive ranks share one."
        yield _derived("MPICH_OFI_NIC_POLICY", "NUMA", facts, why=why)


def _over_tcp(case: SettingsCase, mpi: str) -> Iterator[Recommended]:
    platform = case.platform
    if platform.fabric.kind not in _TCP:
        return
    words = (platform.frontend.names or "").replace(";", " ").split()
    interface = words[0] if words and _NAME.fullmatch(words[0]) else None
    facts = f"MPI has no transport for {platform.fabric.kind}, and the front end is {interface or 'Ethernet'}"
    if mpi in _OPEN_MPI:
        yield _derived("OMPI_MCA_pml", "ob1", facts, why="MPI's messages go over TCP.")
        if interface is not None:
            yield _derived("OMPI_MCA_btl_tcp_if_include", interface, facts, why="One interface for MPI's messages.")
    elif mpi in _OVER_LIBFABRIC:
        yield _derived("FI_PROVIDER", "tcp", facts, scope="libfabric", why="MPI's messages go over TCP.")
        if interface is not None:
            why = "One interface for MPI's messages."
            yield _derived("FI_TCP_IFACE", interface, facts, scope="libfabric", why=why)


def _sharp(case: SettingsCase, mpi: str) -> Iterator[Recommended]:
    if case.goal != "sharp" or case.platform.fabric.kind != "InfiniBand" or case.platform.fabric.sharp is False:
        return
    condition = "the fabric offers SHARP to this job, and the library was built with it"
    named = {
        "hpcx": ("HCOLL_ENABLE_SHARP", "2", "nv-sharp-mpi", "hcoll uses SHARP, and fails where there is none."),
        "mvapich2": ("MV2_ENABLE_SHARP", "1", "mvapich2-source", "One rank of each node uses SHARP."),
    }.get(mpi)
    if named is not None:
        name, value, source, reason = named
        yield Recommended(
            name=name,
            value=value,
            need="check_first",
            topic="sharp",
            scope="mpi",
            reason=reason,
            source=(source,),
            conditions=condition,
        )


_RULES = (_devices, _over_ucx, _alike, _binding, _provider, _nearest_nic, _over_tcp, _sharp)


def _placement(platform: Platform, mpi: str) -> Iterator[LaunchAdvice]:
    """Yield the launcher's words that put as many ranks on each NUMA node."""
    cores, numa = platform.cpu.cores, platform.cpu.numa_nodes
    if cores is None or numa is None or cores % numa:
        return
    each = cores // numa
    is_azure = platform.id.startswith(("azure-hb", "azure-hc", "azure-hx"))
    facts = f"{cores} cores on {numa} NUMA nodes, {each} on each"
    said = "published with the numbers left open" if is_azure else _NOT_PUBLISHED
    why = "as many ranks on each NUMA node; a smaller number for fewer ranks"
    reason = f"{why}. Derived from the platform's facts: {facts}; {said}"
    options = {
        **dict.fromkeys(_OPEN_MPI, f"mpirun --map-by ppr:{each}:numa:pe=1 --report-bindings"),
        **dict.fromkeys(_HYDRA, "mpiexec -bind-to core -map-by numa"),
        "mvapich2": "mpirun_rsh -np RANKS -hostfile HOSTS MV2_CPU_BINDING_POLICY=scatter PROGRAM",
        "intel-mpi": f"mpirun -ppn {cores}",
        "cray-mpich": f"busbw launch --platform {platform.id} --launcher srun -- PROGRAM",
    }
    source = ("ms-mpi", "ms-placement") if is_azure else _DERIVED
    yield LaunchAdvice(option=options[mpi], reason=reason, source=source)
