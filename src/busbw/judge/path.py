"""Which way the bytes of a measurement went, as far as that can be told."""

from typing import Literal

from busbw.model.measurement import Measurement
from busbw.model.plan import Plan

# "memory": between ranks of one host; "loopback": TCP that did not leave it; "unknown": several hosts, or an interface
# that leaves the host, or the links between GPUs.
Path = Literal["memory", "loopback", "unknown"]

# Share of the bytes that must have crossed interfaces before the exchange counts as going over them. The bytes due are
# the least an exchange can send, so TCP gives 1.00 or more (measured: 1.002 to 1.004). Other programs' traffic is
# counted too, and was seen at 0.58 on a busy host.
CROSSED_SHARE = 0.9


def path_of(plan: Plan, measurement: Measurement) -> Path:
    """Return the way the bytes went."""
    if (
        plan.gpu_setup is not None
        or len(set(plan.placement.hosts)) > 1
        or len({view.host for view in measurement.per_rank}) > 1
    ):
        return "unknown"
    crossed = sum(share for _, share in measurement.tcp_share)
    if crossed < CROSSED_SHARE:
        return "memory"
    inside = sum(share for name, share in measurement.tcp_share if name == "lo")
    return "loopback" if inside >= crossed / 2 else "unknown"
