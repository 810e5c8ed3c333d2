"""What a snapshot says of the network's features: ibv_devinfo, UCX, tables of partition keys, virtual functions."""

import re

from busbw.facts.network import is_virtual_function
from busbw.machine.read.index import SnapshotIndex, bus_id, first_number, number
from busbw.machine.read.kernel import mpirun_version
from busbw.machine.read.pci import blocks
from busbw.model.host import NetworkState, PortKeys, VirtualFunctions

_PCI = "/sys/bus/pci/devices"
_RDMA = "/sys/class/infiniband"
_DEVICE = re.compile(r"hca_id:\s*(\S{1,64})")
_NO_TAGS = "tag matching not supported"
# Releases before 1.12 leave out the two spaces that later ones put before both.
_TRANSPORT = re.compile(r"#\s{1,12}Transport: (\S{1,64})\s*")
_OPENED = re.compile(r"#\s{1,12}Device: (\S{1,128})\s*")
_SETTING = re.compile(r"(?P<name>UCX_[A-Z0-9_]{1,80})=(?P<value>.{0,1000})")
_KEY = re.compile(r"0x[0-9a-fA-F]{1,4}")
# A subnet manager fills a table from its beginning, and most ports have two partitions: no more is captured.
KEY_PLACES = 16
_MOST_TRANSPORTS = 256
_MOST_DEVICES = 1024
_MOST_SETTINGS = 4096


def network_state(index: SnapshotIndex) -> NetworkState:
    """Return what a snapshot says of the network's features."""
    tags, groups = device_limits(index.said("ibv_devinfo"))
    family, _version = mpirun_version(index.output("mpirun"))
    return NetworkState(
        tags=tags,
        multicast_groups=groups,
        transports=ucx_transports(index.output("ucx_info-devices")),
        ucx=ucx_settings(index.output("ucx_info-settings")),
        keys=_keys(index),
        functions=_functions(index),
        mpi=family if family != "unknown" else None,
    )


def device_limits(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many tags each device matches, and in how many multicast groups it can be, by `ibv_devinfo -v`."""
    tags: dict[str, int] = {}
    groups: dict[str, int] = {}
    for device, lines in blocks(text, _DEVICE):
        for line in lines.splitlines():
            name, _colon, value = line.strip().partition(":")
            if name == _NO_TAGS:
                tags.setdefault(device, 0)
            elif name in ("max_num_tags", "max_mcast_grp") and (count := first_number(value)) is not None:
                (tags if name == "max_num_tags" else groups).setdefault(device, count)
    return tags, groups


def ucx_transports(text: str) -> dict[str, tuple[str, ...]] | None:
    """Return the transports that `ucx_info -d` lists, each with its devices; None where it lists none."""
    found: dict[str, list[str]] = {}
    listed: list[str] = []
    for line in text.splitlines():
        transport, device = _TRANSPORT.fullmatch(line), _OPENED.fullmatch(line)
        if transport is not None and len(found) < _MOST_TRANSPORTS:
            listed = found.setdefault(transport[1], [])
        elif device is not None and found and len(listed) < _MOST_DEVICES:
            listed.append(device[1])
    return {name: tuple(devices) for name, devices in found.items()} or None


def ucx_settings(text: str) -> dict[str, str]:
    """Return the settings that `ucx_info -c` lists."""
    matches = (_SETTING.fullmatch(line) for line in text.splitlines()[:_MOST_SETTINGS])
    return {match["name"]: match["value"] for match in matches if match is not None}


def _keys(index: SnapshotIndex) -> tuple[PortKeys, ...]:
    found = []
    for device in index.names(_RDMA):
        for name in index.names(f"{_RDMA}/{device}/ports"):
            folder, port = f"{_RDMA}/{device}/ports/{name}/pkeys", number(name)
            if port is None or not index.has(folder):
                continue
            keys = {
                place: partition_key(index.text(f"{folder}/{entry}"))
                for entry in index.names(folder)
                if (place := number(entry)) is not None
            }
            found.append(PortKeys(name=device, port=port, keys={place: key for place, key in keys.items() if key}))
    return tuple(found)


def partition_key(text: str | None) -> int | None:
    """Return a partition key as the kernel prints it, `0xffff`; None for anything else."""
    return int(text, 16) if text is not None and _KEY.fullmatch(text) is not None else None


def _functions(index: SnapshotIndex) -> tuple[VirtualFunctions, ...]:
    """Return the adapters that say something of virtual functions."""
    found = []
    for name in index.names(_PCI):
        address, folder = bus_id(name), f"{_PCI}/{name}"
        if address is None:
            continue
        by_ids = is_virtual_function(index.text(f"{folder}/vendor"), index.text(f"{folder}/device"))
        is_virtual = by_ids or index.link(f"{folder}/physfn") is not None
        shown, most = index.number(f"{folder}/sriov_numvfs"), index.number(f"{folder}/sriov_totalvfs")
        if is_virtual or most is not None:
            found.append(VirtualFunctions(bus_id=address, is_virtual=is_virtual, shown=shown, most=most))
    return tuple(found)
