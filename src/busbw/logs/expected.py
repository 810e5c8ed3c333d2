"""What a network can reach on a platform, and what its sockets can: bounds by arithmetic, never a guess."""

from typing import NamedTuple

from busbw.base.units import format_rate
from busbw.limits.ceiling import ceiling
from busbw.limits.from_platform import rates_of_platform
from busbw.model.platform import Platform


class Reach(NamedTuple):
    """Bus bandwidth of a ring between nodes at best, and where the number comes from."""

    rate_Bps: float
    words: str


def network_reach(platform: Platform, nodes: int) -> Reach | None:
    """Return what a ring over the platform's own network can reach; None: it cannot be told."""
    if platform.kind != "gpu" or platform.gpu.count < 1 or nodes < 2:
        return None
    limit = ceiling(rates_of_platform(platform), nodes=nodes, collective="all_reduce", algorithm="ring")
    bound = limit.bounds[0]
    if bound.busbw_Bps is None:
        return None
    return Reach(bound.busbw_Bps, f"busbw limit --platform {platform.id} --nodes {nodes}")


def socket_reach(platform: Platform) -> Reach | None:
    """Return what a ring over the platform's other network can reach; None: nobody has published its rate."""
    rate_bps = platform.frontend.usable_bps or platform.frontend.rate_bps
    if rate_bps is None:
        return None
    return Reach(rate_bps / 8, f"the other network's {rate_bps / 1e9:g} Gb/s ({', '.join(platform.frontend.source)})")


def socket_words(platform: Platform | None, nodes: int) -> str | None:
    """Return what sockets cost on a platform, with the sources of both numbers; None: it is not known."""
    if platform is None:
        return None
    network, sockets = network_reach(platform, nodes), socket_reach(platform)
    if network is None:
        return None
    instead = f"instead of at most {format_rate(network.rate_Bps)} ({network.words})"
    if sockets is None:
        return f"expect what TCP gives over one interface {instead}; the rate of that interface is not published"
    return f"expect at most {format_rate(sockets.rate_Bps)} ({sockets.words}) {instead}"
