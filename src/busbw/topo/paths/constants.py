"""Rates that NCCL takes for granted, and the versions they hold for.

They are NCCL's own figures for planning, below what the hardware's data sheet says, and its path tables show them.
Source: src/graph/topo.h and topo.cc of the public releases 2.18 to 2.30, issues for newer ones; for XGMI RCCL's
src/graph/topo.h.
"""

import re

from busbw.model.topology import Gpu, NumaNode, NvLink

# The release whose rules hold where none is named: its path tables were held against those of a real machine.
DEFAULT_NCCL = (2, 28, 9)
# Whatever stays inside one device.
LOCAL_Bps = 5000e9
# A port without a speed, or with one that is not positive.
NO_SPEED_Mbps = 10_000
# Intel's root complex cuts traffic between GPUs into small packets: it costs this much more of a PCIe link.
INTEL_PEER_COST = 6 / 5

Nccl = tuple[int, int, int]

_POWER9_Bps = 32e9
_ARM_Bps = 6e9
_AMD_Bps = 16e9
# Since 2.31 by family: Zen 5, Zen 3 and 4 (NVIDIA/nccl issue 2441). Older ones wrote 143 and up.
_AMD_FAMILIES = ((26, 32e9), (25, 24e9))
# First model of Intel's family 6 that has the rate, the newest first; those before all of them count as Broadwell.
_INTEL = ((0xCF, 40e9), (0x8F, 22e9), (0x55, 10e9))
_BROADWELL_Bps = 6e9
_ZHAOXIN = ("CentaurHauls", "  Shanghai  ")
_ZHAOXIN_Bps = 6e9
_YONGFENG = (7, 0x5B)
_YONGFENG_Bps = 9e9
# First compute capability that has the rate; 8.6 stands out among its neighbours. Below all of them counts as 8.0.
_NVLINK = ((90, 20.6e9), (87, 20e9), (86, 12e9), (70, 20e9), (60, 18e9))
_UNKNOWN_NVLINK_Bps = 20e9
# By the beginning of the processor's name. Of MI300X and newer it is what protocol and error correction leave of 64
# GB/s (ROCm/rccl issue 1210). RCCL counts every other processor as Vega.
_XGMI = (("gfx95", 48e9), ("gfx94", 48e9), ("gfx90a", 36e9))
_VEGA_XGMI_Bps = 24e9
# RCCL's older files hold a number: 910 is gfx90a.
_GCN_NUMBER = re.compile(r"9\d\d", re.ASCII)
_GCN_OF_MI200 = "910"


def nvlink_Bps(sm: int | None, nccl: Nccl = DEFAULT_NCCL) -> float:
    """Return what NCCL counts for one NVLink of a GPU in one direction.

    `sm` is the compute capability times ten; None counts as what NCCL does not know.
    """
    if sm is None:
        return _UNKNOWN_NVLINK_Bps
    if sm >= 90 and nccl < (2, 20, 0):
        return 20e9
    if sm >= 100 and nccl >= (2, 25, 0):
        return 40.1e9 if nccl >= (2, 27, 5) else 40e9
    return next((rate_Bps for first, rate_Bps in _NVLINK if sm >= first), _UNKNOWN_NVLINK_Bps)


def xgmi_Bps(gcn: str | None) -> float:
    """Return what RCCL counts for one XGMI link of a GPU in one direction.

    `gcn` is the processor as RCCL writes it, as `gfx942` or `gfx90a:sramecc+:xnack-`; None counts as unknown, as Vega.
    """
    name = gcn or ""
    if _GCN_NUMBER.fullmatch(name):
        name = "gfx90a" if name == _GCN_OF_MI200 else f"gfx{name}"
    return next((rate_Bps for prefix, rate_Bps in _XGMI if name.startswith(prefix)), _VEGA_XGMI_Bps)


def link_rate_Bps(link: NvLink, gpu: Gpu, nccl: Nccl = DEFAULT_NCCL) -> float:
    """Return what NCCL, or RCCL, counts for all links of an entry in one direction; `gpu` is where they begin."""
    return link.count * (xgmi_Bps(gpu.gcn) if link.kind == "xgmi" else nvlink_Bps(gpu.sm, nccl))


def cpu_link_Bps(numa: NumaNode, nccl: Nccl = DEFAULT_NCCL) -> float:
    """Return what NCCL counts from one NUMA node to any other in one direction, whether in one socket or not.

    A processor that NCCL has no figure for counts as if it were no limit.
    """
    if numa.architecture == "ppc64":
        return _POWER9_Bps
    if numa.architecture == "arm64":
        return _ARM_Bps
    return _x86_Bps(numa, nccl) if numa.architecture == "x86_64" else LOCAL_Bps


def _x86_Bps(numa: NumaNode, nccl: Nccl) -> float:
    if numa.vendor == "GenuineIntel":
        # Up to 2.25 everything from Skylake on counted as Skylake.
        known = _INTEL if nccl >= (2, 26, 0) else _INTEL[-1:]
        model = numa.model if numa.family == 6 and numa.model is not None else -1
        return next((rate_Bps for first, rate_Bps in known if model >= first), _BROADWELL_Bps)
    if numa.vendor == "AuthenticAMD":
        return _amd_Bps(numa, nccl)
    if numa.vendor in _ZHAOXIN:
        return _YONGFENG_Bps if (numa.family, numa.model) == _YONGFENG else _ZHAOXIN_Bps
    return LOCAL_Bps


def _amd_Bps(numa: NumaNode, nccl: Nccl) -> float:
    # 2.18 had no figure for AMD.
    if nccl < (2, 19, 1):
        return LOCAL_Bps
    known = _AMD_FAMILIES if nccl >= (2, 31, 0) else ()
    return next((rate_Bps for first, rate_Bps in known if (numa.family or 0) >= first), _AMD_Bps)
