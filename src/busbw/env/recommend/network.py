"""Which network NCCL takes, and how data gets from a GPU into a NIC."""

from busbw.base.errors import InputError
from busbw.env.recommend.case import Case, Leave, Rule, Take, on_network
from busbw.model.platform import Platform, PlatformSetting
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


def _network(_case: Case, setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="needed",
        conditions="the name as the plug-in gives it in NCCL_DEBUG=INFO; its library has to be on LD_LIBRARY_PATH",
        checks=(_PLUGIN_CHECK.format(name=setting.value),),
    )


def _plugin(case: Case, setting: PlatformSetting) -> Take | Leave:
    if setting.value != "none":
        return Take(need="check_first")
    if case.goal == "sharp":
        return Leave(kind="risky", reason="SHARP comes with a plug-in: `none` would leave it out")
    return Take(
        need="check_first",
        reason="Keeps a plug-in that the image happens to hold from taking the place of NCCL's own InfiniBand code.",
        checks=(_PLUGIN_CHECK.format(name="IB"),),
    )


def _direct(case: Case, setting: PlatformSetting) -> Take | Leave:
    level = _level(setting.value or "")
    if level in _DIRECT_ANYWAY:
        return Leave(kind="unreasoned", reason="nobody says why; it allows no more than NCCL does by itself")
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


def _flush(case: Case, _setting: PlatformSetting) -> Take | Leave:
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
        reason="From Hopper on data that has been announced has arrived: the flush costs time for nothing.",
    )


def _gdrcopy(_case: Case, _setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="check_first",
        reason="Control words are written into GPU memory by the CPU: fewer microseconds for short messages.",
        conditions="the kernel module gdrdrv is loaded and libgdrapi is found",
        checks=("lsmod | grep gdrdrv",),
    )


def _virtual_memory(_case: Case, setting: PlatformSetting) -> Take | Leave:
    if setting.value == "0":
        return Leave(
            kind="risky", reason="turns off what buffer registration for NVLS and NVLink between nodes are made of"
        )
    return Leave(kind="default", reason="NCCL uses it by itself where driver and GPUs can")


def _rack_links(_case: Case, setting: PlatformSetting) -> Take | Leave:
    if setting.value != "1":
        return Take(need="check_first")
    return Leave(
        kind="default",
        reason="NCCL uses NVLink between nodes by itself where IMEX offers it; 1 only makes its absence an error",
    )


def _buffer(case: Case, setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "EFA":
        return Leave(kind="set_already", reason="the plug-in sets it when it is loaded, unless the job did")
    if setting.reason is None:
        return Leave(
            kind="unreasoned",
            reason="nobody says what it gains here; it takes its size of GPU memory for each peer of each channel",
        )
    return Take(need="check_first", cost="its size of GPU memory for each peer of each channel")


RULES = (
    Rule(name="NCCL_NET", topic="transport", judge=on_network(_network)),
    Rule(name="NCCL_NET_PLUGIN", topic="transport", judge=on_network(_plugin)),
    Rule(name="NCCL_NET_GDR_LEVEL", topic="transport", judge=on_network(_direct)),
    Rule(name="NCCL_NET_FORCE_FLUSH", topic="transport", judge=on_network(_flush)),
    Rule(name="NCCL_GDRCOPY_ENABLE", topic="transport", judge=on_network(_gdrcopy)),
    Rule(name="NCCL_CUMEM_ENABLE", topic="transport", judge=_virtual_memory),
    Rule(name="NCCL_MNNVL_ENABLE", topic="transport", judge=on_network(_rack_links)),
    Rule(name="NCCL_BUFFSIZE", topic="transport", judge=on_network(_buffer)),
    Rule(name="NCCL_NVLS*_CHUNKSIZE", topic="transport", judge=on_network(_buffer)),
)
