"""Which network NCCL takes, how data gets from a GPU into a NIC, and libfabric below NCCL's plug-in."""

import shlex

from busbw.base.errors import InputError
from busbw.env.recommend.case import HANGS, PLACES, Leave, SettingRule, SettingsCase, Take, in_effect, on_network
from busbw.model.platform import Platform, PlatformSetting
from busbw.model.recommendation import LaunchAdvice, Recommended
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.paths.view import view_of

# What NCCL_NET_GDR_LEVEL meant as a number; more than the last is the last.
_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
# Ways on which NCCL uses GPUDirect RDMA without being told.
_DIRECT_ANYWAY = frozenset({"LOC", "PIX", "PXB"})
_THROUGH_CHIP_LINK_SINCE = (2, 27)
_NO_FLUSH_SINCE = (2, 19)
_HOPPER = 90
_PLUGIN_CHECK = "NCCL_DEBUG=INFO prints `Using network {name}`"


def _network(_case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="needed",
        conditions="the name as the plug-in gives it in NCCL_DEBUG=INFO; its library has to be on LD_LIBRARY_PATH",
        checks=(_PLUGIN_CHECK.format(name=setting.value),),
    )


def _plugin(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if setting.value != "none":
        return Take(need="check_first")
    if case.goal == "sharp":
        return Leave(kind="risky", reason="SHARP comes with a plug-in: `none` would leave it out")
    return Take(
        need="check_first",
        reason="Keeps a plug-in that the image happens to hold from taking the place of NCCL's own InfiniBand code.",
        checks=(_PLUGIN_CHECK.format(name="IB"),),
    )


def _direct(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    level = _level(setting.value or "")
    if level in _DIRECT_ANYWAY:
        return Leave(kind="unreasoned", reason="no reason is published; it allows no more than NCCL does by itself")
    way = _way_to_nic(case.platform)
    if way in _DIRECT_ANYWAY:
        where = "in the topology file" if _has_topology_file(case.platform) else "here"
        return Leave(
            kind="no_effect",
            reason=f"each GPU and its NIC are {way} apart {where}, where NCCL uses GPUDirect RDMA anyway",
        )
    note = f"{setting.value!r} is the old number of {level}. " if level != setting.value else ""
    needed = case.platform.nvlink.c2c_Bps is None or case.version < _THROUGH_CHIP_LINK_SINCE
    return Take(
        need="needed" if needed else "helps",
        value=level,
        reason=f"{note}{setting.reason or 'How far apart a GPU and a NIC may be for GPUDirect RDMA.'}",
        cost="on a machine where that way passes a slow link, GPUDirect may be slower than a copy through the host",
        checks=("NCCL_DEBUG=INFO prints `GPU Direct RDMA Enabled` for each NIC, and `/GDRDMA` behind each channel",),
    )


def _level(text: str) -> str:
    return _LEVELS[min(int(text), len(_LEVELS) - 1)] if text.isascii() and text.isdecimal() else text


def _way_to_nic(platform: Platform) -> str | None:
    """Return the longest way from a GPU to its nearest NIC; None: not published."""
    try:
        spots = view_of(topology_of_platform(platform)).gpus
    except InputError:
        return None
    ways = {spot.path for spot in spots}
    return next((way for way in ("SYS", "PHB", "P2C", "PXB", "PIX") if way in ways), None)


def _has_topology_file(platform: Platform) -> bool:
    return any(setting.name == "NCCL_TOPO_FILE" and setting.goal is None for setting in platform.settings)


def _flush(case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "EFA":
        return Leave(kind="set_already", reason="the plug-in sets it when it is loaded")
    if case.version >= _NO_FLUSH_SINCE:
        return Leave(kind="default", reason="NCCL flushes only where the topology asks for it since 2.19")
    if (case.platform.gpu.sm or 0) < _HOPPER:
        return Leave(
            kind="risky",
            reason="GPUs before Hopper need the flush: without it a GPU may read data that has not arrived",
        )
    return Take(
        need="helps",
        reason="From Hopper on data that has been announced has arrived: the flush only costs time.",
    )


def _gdrcopy(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="check_first",
        reason="Control words are written into GPU memory by the CPU: fewer microseconds for short messages.",
        conditions="the kernel module gdrdrv is loaded and libgdrapi is found",
        checks=("lsmod | grep gdrdrv",),
    )


def _virtual_memory(_case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if setting.value == "0":
        return Leave(
            kind="risky", reason="turns off what buffer registration for NVLS and NVLink between nodes are made of"
        )
    return Leave(kind="default", reason="NCCL uses it by itself where driver and GPUs can")


def _rack_links(_case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if setting.value != "1":
        return Take(need="check_first")
    return Leave(
        kind="default",
        reason="NCCL uses NVLink between nodes by itself where IMEX offers it; 1 only makes its absence an error",
    )


def _buffer(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "EFA":
        return Leave(kind="set_already", reason="the plug-in sets it when it is loaded, unless the job did")
    if setting.reason is None:
        return Leave(
            kind="unreasoned",
            reason="its gain here is not published; it takes its size of GPU memory for each peer of each channel",
        )
    return Take(need="check_first", cost="its size of GPU memory for each peer of each channel")


TRANSPORT_RULES = (
    SettingRule(name="NCCL_NET", topic="transport", judge=on_network(_network)),
    SettingRule(name="NCCL_NET_PLUGIN", topic="transport", judge=on_network(_plugin)),
    SettingRule(name="NCCL_NET_GDR_LEVEL", topic="transport", judge=on_network(_direct)),
    SettingRule(name="NCCL_NET_FORCE_FLUSH", topic="transport", judge=on_network(_flush)),
    SettingRule(name="NCCL_GDRCOPY_ENABLE", topic="transport", judge=on_network(_gdrcopy)),
    SettingRule(name="NCCL_CUMEM_ENABLE", topic="transport", judge=_virtual_memory),
    SettingRule(name="NCCL_MNNVL_ENABLE", topic="transport", judge=on_network(_rack_links)),
    SettingRule(name="NCCL_BUFFSIZE", topic="transport", judge=on_network(_buffer)),
    SettingRule(name="NCCL_NVLS*_CHUNKSIZE", topic="transport", judge=on_network(_buffer)),
)


_FINDS_GID_SINCE = (2, 21)
_SHOW_GIDS = "show_gids: the row of RoCE v2 with an IPv4 address"
_ALIKE = "the same on every rank"


def _ports(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if setting.goal in PLACES and case.follow != setting.goal:
        where = setting.goal
        return Leave(kind="other_job", reason=f"devices as they are called in {where}: --follow {where} takes it")
    exact = (setting.value or "").startswith("=")
    return Take(
        need="needed" if exact else "helps",
        conditions="devices are numbered by the driver: another image may number them otherwise",
        checks=("ibv_devinfo -l", "NCCL_DEBUG=INFO lists the ports behind `NET/IB : Using`"),
    )


def _gid(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if case.version < _FINDS_GID_SINCE:
        return Take(need="needed", checks=(_SHOW_GIDS,))
    return Take(
        need="helps",
        reason=(
            f"{setting.reason or ''} NCCL looks for one by itself since 2.21; a fixed one is the same on every node."
        ).strip(),
        checks=(_SHOW_GIDS,),
    )


def _traffic_class(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Take(need="needed", cost="none; a wrong one shares the queue that drops packets")


def _service_level(_case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if setting.value == "0":
        return Leave(kind="default", reason=f"unset it is 0 as well. {setting.reason or ''}".strip())
    return Take(need="check_first")


def _queue_pairs(case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    if case.small:
        return Leave(kind="other_job", reason="more queue pairs do not shorten a short message")
    if case.is_check:
        return Leave(kind="other_job", reason="inside one node there is no choice of ways to spread over")
    return Take(need="helps", conditions=_ALIKE, cost="NIC memory: so many queue pairs for each connection")


def _timeout(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="helps",
        reason="A link that comes back within two minutes does not end the job.",
        cost="a link that stays down is noticed after about two minutes instead of half a one",
    )


def _relaxed_ordering(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Leave(kind="default", reason="NCCL uses relaxed ordering by itself where the NIC can (2, since 2.12)")


def _rails(_case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if setting.value == "0":
        return Take(
            need="helps", conditions=_ALIKE, cost="a ring cannot leave a node by another NIC than it came in by"
        )
    return Take(
        need="helps",
        conditions=_ALIKE,
        cost="on a fabric with a switch for each rail, traffic then crosses between them",
    )


def _by_plugin(case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "EFA":
        return Leave(kind="set_already", reason="the plug-in sets it when it is loaded")
    return Take(need="check_first")


def cannot_tell(case: SettingsCase, names: frozenset[str]) -> tuple[str, ...]:
    """Return what an RDMA network over Ethernet needs and nobody publishes; `names`: of what is recommended."""
    if case.platform.fabric.kind != "RoCE" or not case.over_network:
        return ()
    found = []
    if case.version < _FINDS_GID_SINCE and "NCCL_IB_GID_INDEX" not in names:
        found.append("NCCL_IB_GID_INDEX: NCCL before 2.21 takes 0; show_gids tells which is of RoCE v2")
    if "NCCL_IB_TC" not in names:
        found.append("NCCL_IB_TC: whoever runs the network knows which traffic class loses no packets")
    return tuple(found)


NIC_RULES = (
    SettingRule(name="NCCL_IB_HCA", topic="nics", judge=on_network(_ports)),
    SettingRule(name="NCCL_IB_GID_INDEX", topic="nics", judge=on_network(_gid)),
    SettingRule(name="NCCL_IB_TC", topic="nics", judge=on_network(_traffic_class)),
    SettingRule(name="NCCL_IB_SL", topic="nics", judge=on_network(_service_level)),
    SettingRule(name="NCCL_IB_QPS_PER_CONNECTION", topic="nics", judge=on_network(_queue_pairs)),
    SettingRule(name="NCCL_IB_TIMEOUT", topic="nics", judge=on_network(_timeout)),
    SettingRule(name="NCCL_IB_PCI_RELAXED_ORDERING", topic="nics", judge=on_network(_relaxed_ordering)),
    SettingRule(name="NCCL_CROSS_NIC", topic="nics", judge=on_network(_rails)),
    SettingRule(name="NCCL_NETDEVS_POLICY", topic="nics", judge=on_network(_by_plugin)),
)


_ZERO_COPY_SINCE = (2, 24)


def _chunk(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "EFA":
        return Leave(kind="set_already", reason="the plug-in sets it when it is loaded, unless the job did")
    if not case.sends:
        return Leave(kind="other_job", reason=f"only send and receive are cut into these chunks, not {case.collective}")
    if case.is_check or case.small:
        return Leave(kind="other_job", reason="messages that fit one chunk are not cut")
    reason = setting.reason or "Longer chunks for send and receive: fewer of them."
    value = in_effect(case.platform, setting.name, setting.value)
    if value != setting.value:
        reason = f"{setting.value} is published; NCCL takes an eighth of NCCL_BUFFSIZE at most, {value}. {reason}"
    return Take(
        need="check_first" if setting.reason is None else "helps",
        value=value,
        reason=reason,
        conditions="send, receive, alltoall, gather and scatter of buffers that are not registered; as on every rank",
        cost="longer staging buffers on the GPU, in step with it",
        checks=("busbw run sendrecv alltoall --backend native-nccl -b 64K -e 1G, with each value",),
    )


def _detour(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if setting.goal == HANGS:
        return Take(need="needed", cost="messages to GPUs behind another rail leave by the sender's own NIC")
    if case.is_check or not case.sends:
        return Leave(kind="other_job", reason="for send and receive without copies")
    if case.version < _ZERO_COPY_SINCE:
        return Leave(kind="no_effect", reason="send and receive without copies come with NCCL 2.24")
    return Take(
        need="check_first",
        conditions="the buffers are registered with NCCL (nccl-tests -R 1, busbw run -R 1, ncclCommRegister)",
        cost="buffers that are not registered lose the detour over NVLink, and alltoall its joined messages",
        checks=("busbw run sendrecv alltoall --backend native-nccl -R 1, with it and without",),
    )


SENDING_RULES = (
    SettingRule(name="NCCL_P2P_NET_CHUNKSIZE", topic="channels", judge=on_network(_chunk)),
    SettingRule(name="NCCL_PXN_DISABLE", topic="channels", judge=on_network(_detour)),
)


# The guide's set was measured as a whole: 162.69 GB/s on two nodes.
_MEASURED_SET = "Part of the set with which the site measured; its own effect is not published."
_REASONS = {
    "FI_CXI_DEFAULT_CQ_SIZE": "A completion queue long enough for many outstanding messages.",
    "FI_CXI_DEFAULT_TX_SIZE": "Holds the sends that the other side has not matched yet; a full queue stops the sender.",
    "FI_CXI_RX_MATCH_MODE": "Goes on when the NIC runs out of entries to match messages with.",
    "FI_CXI_RDZV_PROTO": "The rendezvous protocol that goes with a network set up without its own.",
    "FI_CXI_RDZV_THRESHOLD": "No eager messages, with which NCCL may hang.",
    "FI_CXI_RDZV_GET_MIN": "No eager messages, with which NCCL may hang.",
    "FI_CXI_RDZV_EAGER_SIZE": "No eager messages, with which NCCL may hang.",
}
_DEADLOCKS = frozenset({"FI_CXI_DISABLE_HOST_REGISTER", "FI_MR_CACHE_MONITOR"})
_HELPS = frozenset({"FI_CXI_DEFAULT_CQ_SIZE", "FI_CXI_RX_MATCH_MODE"})
_NEEDS_NETWORK_OPTION = "FI_CXI_RDZV_PROTO"
_NETWORK_OPTION = "srun --network=disable_rdzv_get"


def _slingshot(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind != "Slingshot":
        return Leave(kind="no_effect", reason="there is no Slingshot here")
    said = (_REASONS.get(setting.name), setting.reason)
    reason = " ".join(filter(None, said)) or _MEASURED_SET
    if setting.name in _DEADLOCKS:
        return Take(need="needed", reason=reason)
    if setting.name in _HELPS:
        return Take(
            need="helps",
            reason=_REASONS[setting.name],
            cost="host memory, in step with it" if "SIZE" in setting.name else None,
        )
    return Take(
        need="check_first",
        reason=reason,
        conditions=f"the job is started with {_NETWORK_OPTION}" if setting.name == _NEEDS_NETWORK_OPTION else None,
        cost="longer times for short messages" if "RDZV" in setting.name else None,
        checks=("the application, and busbw run --backend native-nccl -b 8 -e 1G, with it and without",),
    )


def _gpu_aware(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="needed",
        conditions="the program uses Cray MPICH, and hands it no GPU memory",
        cost="MPI no longer takes GPU memory",
    )


def _efa(_case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if setting.name == "FI_PROVIDER":
        return Take(need="helps", reason="No other provider is taken when EFA is missing: the job says so instead.")
    return Leave(kind="no_effect", reason=setting.reason or "today's libfabric and plug-in do without it")


def libfabric_launch(settings: tuple[Recommended, ...]) -> tuple[LaunchAdvice, ...]:
    """Return the launcher's option without which a setting of Slingshot does harm."""
    if all(each.name != _NEEDS_NETWORK_OPTION for each in settings):
        return ()
    return (
        LaunchAdvice(
            option=_NETWORK_OPTION,
            reason=f"belongs to {_NEEDS_NETWORK_OPTION}: set both or neither",
            source=("isambard-guide",),
        ),
    )


LIBFABRIC_RULES = (
    SettingRule(name="FI_CXI_*", topic="transport", judge=on_network(_slingshot)),
    SettingRule(name="FI_MR_CACHE_MONITOR", topic="transport", judge=on_network(_slingshot)),
    SettingRule(name="FI_HMEM_*", topic="transport", judge=on_network(_slingshot)),
    SettingRule(name="MPICH_GPU_SUPPORT_ENABLED", topic="start_up", judge=on_network(_gpu_aware)),
    SettingRule(name="FI_PROVIDER", topic="transport", judge=on_network(_efa)),
    SettingRule(name="FI_EFA_*", topic="transport", judge=on_network(_efa)),
)


_SCRIPT = "nccl-env-profile.sh"
# Where a platform says in which directory the plug-in and its script lie.
_DIRECTORY = "NCCL_LIB_DIR"


def _google_plugin(case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    if _directories(case.platform):
        return Leave(kind="set_already", reason=f"{_SCRIPT} of the plug-in sets it to what fits its version")
    return Take(need="needed", conditions="the plug-in of this platform's images, whose variable it is")


def _directories(platform: Platform) -> tuple[PlatformSetting, ...]:
    return tuple(each for each in platform.settings if each.name == _DIRECTORY)


def google_launch(case: SettingsCase) -> tuple[LaunchAdvice, ...]:
    """Return which script sets what the plug-in reads, for each place in which the job may run."""
    if not case.over_network:
        return ()
    return tuple(
        LaunchAdvice(
            option=f"source {shlex.quote(f'{each.value}/{_SCRIPT}')}",
            reason=(
                f"in {each.goal or 'every job'}: sets what the plug-in reads; set nothing that it does not, "
                "or its checker may refuse the job"
            ),
            source=each.source,
        )
        for each in _directories(case.platform)
        if case.follow not in PLACES or each.goal in (None, case.follow)
    )


GOOGLE_RULES = tuple(
    SettingRule(name=name, topic="transport", judge=on_network(_google_plugin))
    for name in (
        "NCCL_GPUDIRECTTCPX_*",
        "NCCL_FASTRAK_*",
        "NCCL_SHIMNET_*",
        "NCCL_TUNER_CONFIG_PATH",
        "NCCL_LIB_DIR",
        "NCCL_DYNAMIC_CHUNK_SIZE",
    )
)
