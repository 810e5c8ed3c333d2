"""Rates that NCCL takes for granted, and the versions they hold for.

They are NCCL's own figures for planning, below what the hardware's data sheet says, and its path tables show them.
Source: src/graph/topo.h and topo.cc of the public releases 2.18 to 2.30.
"""

from busbw.model.topology import NumaNode

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
        # 2.18 had no figure for AMD.
        return _AMD_Bps if nccl >= (2, 19, 1) else LOCAL_Bps
    if numa.vendor in _ZHAOXIN:
        return _YONGFENG_Bps if (numa.family, numa.model) == _YONGFENG else _ZHAOXIN_Bps
    return LOCAL_Bps
