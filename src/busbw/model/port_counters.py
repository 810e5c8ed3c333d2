"""Counters of a host's network ports as they were read, by ranks, from snapshots or from perfquery."""

import msgspec

from busbw.base.value import Integer, Value


class CountersRead(Value, kw_only=True, frozen=True):
    """The counters of a host, or of a switch, at one moment."""

    host: str
    # None: nobody said when.
    unix_s: float | None = None
    # How long the host has been up; None: not known.
    uptime_s: float | None = None
    # By port and name: `mlx5_0/1 symbol_error`, `cxi0 hni_pcs_uncorrected_cw`, `eth0 rx_errors`, of a switch `/12 ...`.
    counters: dict[str, Integer]
    # Whether InfiniBand's counters have 64 bits, as `perfquery -x` prints them.
    extended: bool = False
    # What is at the other end of a port, where a topology says so: `/12` has `node07 mlx5_3 port 1`.
    linked: dict[str, str] = msgspec.field(default_factory=dict)
