"""Which CPUs the ranks and NCCL's own threads run on, and how GPUs are numbered."""

import shlex
from collections import Counter

from busbw.base.errors import InputError
from busbw.env.recommend.case import Leave, SettingRule, SettingsCase, Take
from busbw.model.host import Hardware, HostPort
from busbw.model.platform import FabricKind, GpuKind, NicKind, Platform, PlatformSetting, PlatformSource
from busbw.model.recommendation import LaunchAdvice, LeftOut, Recommended
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.ranks.masks import cpus_beside_gpus

# Who measured with and without.
_MEASURED = frozenset({"pinning-article"})


def checks_of(path: str, platform: str) -> tuple[str, ...]:
    """Return how to see that a topology file is right, and that it helps."""
    file = shlex.quote(path)
    return (
        f"busbw topo check {file} --here",
        f"busbw topo diff {file} {platform}",
        "busbw run all_reduce alltoall --backend native-nccl -b 8 -e 1G, with it and with NCCL_TOPO_FILE= in front",
    )


def _topology(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    path = setting.value or ""
    return Take(
        need="helps" if _MEASURED & set(setting.source) else "check_first",
        conditions=(
            "the file is there, in containers too (mount it): NCCL says nothing when it is not; "
            "and it is no older copy with wrong CPU masks"
        ),
        cost="a wrong file is obeyed: GPUs get far CPUs or far NICs",
        checks=checks_of(path, case.platform.id),
    )


def _graph(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="check_first",
        conditions="all GPUs of the node take part, in this order",
        cost="NCCL no longer searches for channels itself: the file holds for one kind of node only",
        checks=("busbw run all_reduce --backend native-nccl, with it and with NCCL_GRAPH_FILE= in front",),
    )


TOPOLOGY_FILE_RULES = (
    SettingRule(name="NCCL_TOPO_FILE", topic="topology", judge=_topology),
    SettingRule(name="NCCL_GRAPH_FILE", topic="topology", judge=_graph),
)


def _ignored(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    file = next((each.value for each in case.platform.settings if each.name == "NCCL_TOPO_FILE" and each.value), None)
    return Take(
        need="check_first" if setting.reason is None else "helps",
        reason=setting.reason or "NCCL's threads go to the CPUs of their GPU, whatever the launcher bound the rank to.",
        conditions="the CPU masks that NCCL knows are right: with 1 it obeys them alone",
        cost="the application's own threads stay where the launcher put them: bind the ranks too",
        checks=checks_of(file, case.platform.id)[:1] if file else ("busbw topo show --here",),
    )


def _order(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Take(need="helps", cost="none; programs that count on CUDA's own order (fastest first) see other numbers")


def launch(case: SettingsCase) -> tuple[LaunchAdvice, ...]:
    """Return how to bind the ranks, where the platform's map of GPUs and CPUs is published."""
    try:
        topology = topology_of_platform(case.platform)
    except InputError:
        return _beside_processors(case.platform)
    if not topology.numa or not all(numa.cpus for numa in topology.numa):
        return ()
    return (
        LaunchAdvice(
            option=f"busbw topo masks {case.platform.id}",
            reason=(
                "prints the CPUs of each rank's GPU for srun, mpirun and taskset; "
                "`--bind-to numa` alone goes by launch order"
            ),
            source=case.platform.numa[0].source if case.platform.numa else (),
        ),
    )


def _beside_processors(platform: Platform) -> tuple[LaunchAdvice, ...]:
    """Return how to bind ranks where each GPU has a processor of its own and no map is published."""
    beside = cpus_beside_gpus(platform)
    if not beside:
        return ()
    cores = (platform.cpu.cores or 0) // len(beside)
    mpi = "; Cray MPICH is introduced with --mpi=cray_shasta" if platform.fabric.kind == "Slingshot" else ""
    return (
        LaunchAdvice(
            option=f"busbw launch --platform {platform.id} --launcher srun -- PROGRAM",
            reason=f"a task for each GPU on the {cores} cores of the CPU beside it: CPUs {', '.join(beside)}{mpi}",
            source=platform.cpu.source,
        ),
    )


AFFINITY_RULES = (
    SettingRule(name="NCCL_IGNORE_CPU_AFFINITY", topic="affinity", judge=_ignored),
    SettingRule(name="CUDA_DEVICE_ORDER", topic="affinity", judge=_order),
)


_WITH_MPI = "MPI starts the ranks; NCCL's bandwidth does not depend on it"


def _interface(_case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="helps",
        reason=setting.reason or "The interface on which ranks meet; NCCL would look for one by itself.",
        conditions="every node calls it so",
        checks=("ip -br address",),
    )


def _mpi(_case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="helps",
        reason=setting.reason or "Keeps MPI's start-up on a network that it finds on every node.",
        conditions=_WITH_MPI,
    )


def consistent(settings: tuple[Recommended, ...]) -> tuple[tuple[Recommended, ...], tuple[LeftOut, ...]]:
    """Return the settings that go together, and those that another one makes impossible."""
    over_tcp = any(each.name == "UCX_TLS" and each.value == "tcp" for each in settings)
    lost = [each for each in settings if over_tcp and each.name == "UCX_NET_DEVICES" and ":" in (each.value or "")]
    reason = "a port of an RDMA device is not an interface for TCP, which UCX_TLS asks for"
    dropped = tuple(LeftOut.of(each, "risky", reason) for each in lost)
    return tuple(each for each in settings if each not in lost), dropped


def _hcoll(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    off_already = any(each.name == "OMPI_MCA_coll" and each.value == "^hcoll" for each in case.platform.settings)
    if setting.name == "OMPI_MCA_coll_hcoll_enable" and off_already:
        return Leave(kind="no_effect", reason="OMPI_MCA_coll has it off already")
    return Take(
        need="helps",
        reason="MPI only starts the ranks here: hcoll has nothing to do, and would set up NICs of its own.",
        conditions=_WITH_MPI,
    )


def _hcoll_detail(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Leave(kind="no_effect", reason="hcoll is off")


def _log(_case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if setting.value == "WARN":
        return Take(
            need="helps",
            reason="NCCL says its version, and what went wrong; its default says nothing.",
            cost="a line a rank when something is wrong",
        )
    return Leave(kind="logging", reason="WARN prints the version too, and errors")


def _visible(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Take(need="needed", conditions="the job runs in a container")


START_UP_RULES = (
    SettingRule(name="NCCL_SOCKET_IFNAME", topic="start_up", judge=_interface),
    SettingRule(name="UCX_TLS", topic="start_up", judge=_mpi),
    SettingRule(name="UCX_NET_DEVICES", topic="start_up", judge=_mpi),
    SettingRule(name="OMPI_MCA_coll", topic="start_up", judge=_hcoll),
    SettingRule(name="OMPI_MCA_coll_hcoll_enable", topic="start_up", judge=_hcoll),
    SettingRule(name="HCOLL_ENABLE_MCAST_ALL", topic="start_up", judge=_hcoll_detail),
    SettingRule(name="NVIDIA_IMEX_CHANNELS", topic="start_up", judge=_visible),
    SettingRule(name="NCCL_DEBUG", topic="log", judge=_log),
)


_SOURCE = "this-host"
# Networks that NCCL uses for data, by the name of their kind.
_VERBS = ("InfiniBand", "RoCE")
_FAST = (*_VERBS, "EFA", "Slingshot")


def platform_of_host(hardware: Hardware) -> Platform:
    """Return a platform that says of a host what its hardware shows: GPUs, ports for data, their kind of network."""
    ports = _data_ports(hardware)
    kind = ports[0].kind if ports else None
    first = hardware.gpus[0] if hardware.gpus else None
    return Platform(
        id="generic",
        names=("generic",),
        provider="any",
        kind="gpu",
        status="read from the hardware of this host",
        gpu=GpuKind(
            model=first.name if first is not None else None,
            count=len(hardware.gpus),
            sm=first.sm if first is not None else None,
            source=(_SOURCE,),
        ),
        nic=NicKind(ports=len(ports) or None, names=",".join(port.name for port in ports) or None, source=(_SOURCE,)),
        fabric=FabricKind(kind=kind, source=(_SOURCE,)),
        settings=(*_device_order(hardware), *_port_list(hardware, ports)),
        sources=(PlatformSource(id=_SOURCE, reference=f"the hardware of {hardware.hostname or 'this host'}"),),
    )


def _data_ports(hardware: Hardware) -> tuple[HostPort, ...]:
    """Return the ports that collectives should use: of those that are not down, the fastest of the commonest kind."""
    usable = [port for port in hardware.ports if port.kind in _FAST and port.up is not False]
    if not usable:
        return ()
    fastest = max(port.rate_bps or 0.0 for port in usable)
    best = [port for port in usable if (port.rate_bps or 0.0) == fastest]
    kind = Counter(port.kind for port in best).most_common(1)[0][0]
    return tuple(port for port in best if port.kind == kind)


def _device_order(hardware: Hardware) -> tuple[PlatformSetting, ...]:
    if len(hardware.gpus) < 2:
        return ()
    return (
        PlatformSetting(
            name="CUDA_DEVICE_ORDER",
            value="PCI_BUS_ID",
            scope="cuda",
            reason="Numbers GPUs by PCI address, as nvidia-smi does.",
            source=(_SOURCE,),
        ),
    )


def _port_list(hardware: Hardware, ports: tuple[HostPort, ...]) -> tuple[PlatformSetting, ...]:
    """Return the list of ports, where the host has others that NCCL would take too."""
    others = [port for port in hardware.ports if port.kind in _VERBS and port not in ports]
    if not others or not ports or ports[0].kind not in _VERBS:
        return ()
    several = Counter(port.name for port in hardware.ports)
    names = [f"{port.name}:{port.port}" if several[port.name] > 1 else port.name for port in ports]
    left_out = ", ".join(sorted({port.name for port in others} - {port.name for port in ports})) or "its other ports"
    return (
        PlatformSetting(
            name="NCCL_IB_HCA",
            value=f"={','.join(names)}",
            scope="nccl",
            reason=f"The fastest ports, by their exact names; leaves out {left_out}, which are slower or down.",
            source=(_SOURCE,),
        ),
    )
