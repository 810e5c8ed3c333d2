"""The compute NICs of a host held against those of a platform."""

from collections import Counter

from busbw.machine.detect.parts import Comparison, agrees, differs, listed, matches, unseen
from busbw.model.host import Hardware, HostPort
from busbw.model.platform import Platform

_KINDS = ("InfiniBand", "RoCE", "EFA", "Slingshot")
# A rate is exact but for rounding.
_RATE_TOLERANCE = 0.02
# Names that any machine with such cards may have: they tell nothing.
_COMMON_NAMES = ("mlx5_bond_0", "ibp24s0", "ens1", "cxi0", "hsn0", *(f"mlx5_{number}" for number in range(32)))
_NIC_CLASS = "0x02"


def nics(platform: Platform, hardware: Hardware) -> list[Comparison]:
    """Compare names, addresses, number and rate of the ports that collectives use."""
    found = [_names(platform, hardware), _addresses(platform, hardware), _ports(platform, hardware)]
    return [each for each in found if each is not None]


def has_own_names(platform: Platform) -> bool:
    """Whether the NICs have names that say whose machine it is, as Azure's `mlx5_ib0` do and `mlx5_0` does not."""
    globs = platform.match.rdma_names
    return bool(globs) and not any(matches(name, globs) for name in _COMMON_NAMES)


def compute_ports(platform: Platform, hardware: Hardware) -> tuple[HostPort, ...]:
    """Return the ports that are the platform's compute NICs: by address, by name, or by the kind of fabric."""
    slots = {_slot(address) for address in _published_addresses(platform)}
    by_address = tuple(port for port in hardware.ports if _slot(port.bus_id or "") in slots)
    # Of some platforms only a few addresses are published: these do not tell the other ports.
    if by_address and all(place.bus_id is not None for place in platform.nics):
        return by_address
    by_name = tuple(port for port in hardware.ports if matches(port.name, platform.match.rdma_names))
    if by_name:
        return by_name
    kind = platform.fabric.kind
    return tuple(port for port in hardware.ports if port.kind == kind and kind in _KINDS)


def missing_ports(platform: Platform, hardware: Hardware) -> tuple[str, ...]:
    """Return which published compute NICs are not here, by name or else by address, where that can be told.

    A port of a card may be published at the card's first function, and be at its second.
    """
    here = compute_ports(platform, hardware)
    names = {port.name for port in here}
    on_slot = Counter(_slot(port.bus_id) for port in here if port.bus_id is not None)
    missing = []
    for place in platform.nics:
        label = place.name or place.bus_id or ""
        if place.bus_id is None:
            missing += [label] if place.name is not None and place.name not in names else []
        elif on_slot[_slot(place.bus_id)] == 0:
            missing.append(label)
        else:
            on_slot[_slot(place.bus_id)] -= 1
    return tuple(dict.fromkeys(missing))


def _names(platform: Platform, hardware: Hardware) -> Comparison | None:
    globs = platform.match.rdma_names
    if not globs:
        return None
    rdma = [port.name for port in hardware.ports if port.kind != "Ethernet"]
    named = [port.name for port in hardware.ports if matches(port.name, globs)]
    if named:
        return agrees("NIC names", f"NICs are called {listed(named, 2)}")
    if not rdma:
        return unseen("NIC names", f"no RDMA device can be seen ({listed(globs, 2)})")
    return differs("NIC names", f"NICs are called {listed(rdma, 2)}, not {listed(globs, 2)}")


def _addresses(platform: Platform, hardware: Hardware) -> Comparison | None:
    published = _published_addresses(platform)
    if not published:
        return None
    if not hardware.pci:
        return unseen("NIC addresses", "the PCI bus cannot be seen")
    here = {each.bus_id.lower() for each in hardware.pci if each.device_class.startswith(_NIC_CLASS)}
    lost = sorted(published - here)
    if not lost:
        return agrees("NIC addresses", f"NICs are at {len(published)} of its {len(published)} published PCI addresses")
    return differs("NIC addresses", f"no NIC at {listed(lost)}")


def _ports(platform: Platform, hardware: Hardware) -> Comparison | None:
    wanted, rate_bps = platform.nic.ports, platform.nic.port_bps
    if not wanted:
        return None
    at = f" of {rate_bps / 1e9:g} Gb/s" if rate_bps else ""
    here = compute_ports(platform, hardware)
    if not here and (platform.fabric.kind not in _KINDS or not hardware.ports or hardware.container is not None):
        return unseen("NIC ports", f"no compute NIC can be told from others ({_ports_in_words(wanted)}{at})")
    slow = [port for port in here if rate_bps and port.rate_bps and _is_other(port.rate_bps, rate_bps)]
    if slow:
        runs = "runs" if len(slow) == 1 else "run"
        shown = f"{listed(port.name for port in slow)} {runs} at {(slow[0].rate_bps or 0) / 1e9:g} Gb/s"
        return differs("NIC ports", f"{shown}, not {(rate_bps or 0) / 1e9:g}")
    if len(here) == wanted:
        return agrees("NIC ports", f"{_ports_in_words(wanted)}{at}")
    lost = missing_ports(platform, hardware)
    named = f": {listed(lost)} {'is' if len(lost) == 1 else 'are'} missing" if lost and len(here) < wanted else ""
    if not here:
        return differs("NIC ports", f"none of its {_ports_in_words(wanted)}{at} is here")
    return differs("NIC ports", f"{len(here)} of {_ports_in_words(wanted)}{at} are here{named}")


def _slot(bus_id: str) -> str:
    return bus_id.lower().rpartition(".")[0]


def _is_other(rate_bps: float, wanted_bps: float) -> bool:
    return abs(rate_bps / wanted_bps - 1) > _RATE_TOLERANCE


def _ports_in_words(number: int) -> str:
    return f"{number} port" if number == 1 else f"{number} ports"


def _published_addresses(platform: Platform) -> set[str]:
    return {place.bus_id.lower() for place in platform.nics if place.bus_id is not None}
