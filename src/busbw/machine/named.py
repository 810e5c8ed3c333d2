"""The machine that somebody names: a platform, this host or a captured one; and its topology."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from busbw.base.cpus import format_cpu_list, parse_cpu_list
from busbw.base.errors import InputError, RunError
from busbw.base.units import format_size
from busbw.base.value import Value
from busbw.env.versions import beyond, parse_version
from busbw.facts.platforms import facts_of_gpus, find_platform, platform_ids
from busbw.limits.ceiling import ceiling
from busbw.limits.rates import rates_of_hardware, rates_of_platform
from busbw.machine.capture.anonymous import anonymous, user
from busbw.machine.capture.sites import site_files
from busbw.machine.capture.snapshot import (
    capture,
    capture_anonymously,
    capture_counters,
    capture_hardware,
    capture_noise,
)
from busbw.machine.health.network import features
from busbw.machine.health.node import node_of
from busbw.machine.read.hardware import hardware_of
from busbw.machine.read.index import SnapshotIndex, number
from busbw.machine.read.noise import noise_of
from busbw.machine.read.state import counters_of, state_of
from busbw.model.host import FoundLibrary, FoundSetting, Hardware, HostGpu, PciFunction, Probe, Snapshot
from busbw.model.limit import Bound, NodeRates
from busbw.model.machine import CountersRead
from busbw.model.platform import Platform, ResolvedPlatform
from busbw.model.topology import NodeView, Topology
from busbw.store.snapshots import read_snapshot, write_snapshot
from busbw.store.sources import read_topology_file, source_kind
from busbw.topo.file.document import TopologyDocument
from busbw.topo.file.reader import read_document
from busbw.topo.origins.from_document import obstacles, topologies_of
from busbw.topo.origins.from_hardware import topology_of_hardware
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.paths.graph import DEFAULT_NCCL, LAST_OF_SERIES, OLDEST_NCCL, Nccl
from busbw.topo.paths.view import view_of
from busbw.topo.search.channels import planned

_SETTING = re.compile(r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=(?P<value>.*)")
_CONF_NAMES = ("nccl.conf",)
_FILE_SETTINGS = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")
# NCCL keeps buffers of tens of MiB a GPU there; Docker's default is 64 MiB.
_LEAST_SHARED_BYTES = 2**30
# Registering memory for RDMA locks it.
_LEAST_LOCKED_BYTES = 2**30
_PEER_MODULES = {"nvidia_peermem", "nv_peer_mem"}
_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s")


def host_of(snapshot: Snapshot) -> Probe:
    """Return what a snapshot says of its host."""
    index = SnapshotIndex(snapshot)
    hardware = hardware_of(snapshot)
    settings = _settings(snapshot)
    remarks = (
        *_links(hardware),
        *_ports(index, hardware),
        *_named_files(snapshot, settings),
        *_limits(index, hardware),
        *_libraries(snapshot.libraries),
    )
    probe = Probe(
        captured=snapshot.captured,
        root=snapshot.root,
        anonymous=snapshot.anonymous,
        hardware=hardware,
        libraries=snapshot.libraries,
        settings=settings,
        remarks=remarks,
    )
    node = node_of(probe, state_of(snapshot, settings), None, ())
    return structs.replace(probe, network=features(node), noise=noise_of(index))


def _settings(snapshot: Snapshot) -> tuple[FoundSetting, ...]:
    """Return the settings of NCCL's files and of the environment, in the order in which they stand there."""
    found = []
    for file in snapshot.files:
        if file.path.endswith(_CONF_NAMES) and file.text is not None:
            matches = (_SETTING.fullmatch(line) for line in file.text.splitlines())
            found += [
                FoundSetting(name=match["name"], value=match["value"], path=file.path)
                for match in matches
                if match is not None
            ]
    found += [FoundSetting(name=name, value=value) for name, value in sorted(snapshot.environment.items())]
    return tuple(found)


def _links(hardware: Hardware) -> list[str]:
    """Return which links of GPUs and NICs are narrower or slower than both ends could be, and which NVLinks are off."""
    pci = {function.bus_id: function for function in hardware.pci}
    notes = []
    joined = {gpu.name for gpu in hardware.gpus if any(link.active for link in gpu.nvlinks)}
    for gpu in hardware.gpus:
        name = f"GPU {gpu.index} ({gpu.bus_id})"
        # A GPU with links to its own CPU sends nothing over PCIe.
        if not gpu.chip_links and gpu.link_width and gpu.max_link_width and gpu.link_width < gpu.max_link_width:
            notes.append(
                f"{name} has {gpu.link_width} of {gpu.max_link_width} PCIe lanes: its slot has no more, or it is loose"
            )
        notes += _slow_gpu(gpu, name)
        dead = [link.link for link in gpu.nvlinks if not link.active]
        if dead and len(dead) < len(gpu.nvlinks):
            notes.append(f"{name}: NVLink {format_cpu_list(tuple(dead))} of {len(gpu.nvlinks)} inactive")
        elif dead:
            notes.append(f"{name}: none of its {len(dead)} NVLinks is active")
        elif not gpu.nvlinks and gpu.name in joined:
            notes.append(f"{name}: no active NVLink, and other GPUs of its kind have some")
    for address in dict.fromkeys(port.bus_id for port in hardware.ports if port.kind != "Ethernet"):
        function = pci.get(address or "")
        if function is not None:
            notes += _slow_nic(function, next(port.name for port in hardware.ports if port.bus_id == address))
    return notes


def _slow_gpu(gpu: HostGpu, name: str) -> list[str]:
    now, most = gpu.link_generation, gpu.max_link_generation
    if now is None or most is None or now >= most:
        return []
    return [f"{name} runs PCIe generation {now}, and could {most}: normal while idle, look again under load"]


def _slow_nic(function: PciFunction, name: str) -> list[str]:
    notes = []
    width, most = function.link_width, function.max_link_width
    if width is not None and most is not None and width < most:
        notes.append(f"{name} ({function.bus_id}) has {width} of {most} PCIe lanes")
    now, could = (_SPEED.match(speed or "") for speed in (function.link_speed, function.max_link_speed))
    if now is not None and could is not None and float(now[1]) < float(could[1]):
        notes.append(f"{name} ({function.bus_id}) runs at {now[0]} a lane, and could at {could[0]}")
    return notes


def _ports(index: SnapshotIndex, hardware: Hardware) -> list[str]:
    fast = [port for port in hardware.ports if port.kind != "Ethernet"]
    notes = [f"{port.name} port {port.port} is down" for port in fast if port.up is False]
    rdma = [port for port in fast if port.kind != "Slingshot"]
    listed = index.answer("ls-infiniband")
    if rdma and listed is not None and "uverbs" not in listed.output:
        notes.append("RDMA devices, but none under /dev/infiniband: programs here cannot use them")
    modules = {line.split()[0] for line in (index.text("/proc/modules") or "").splitlines() if line.split()}
    if hardware.gpus and rdma and "nvidia" in modules and not modules & _PEER_MODULES:
        notes.append("no nvidia_peermem: GPUDirect RDMA works through DMA-BUF only (NCCL 2.13 and later, open driver)")
    return notes


def _named_files(snapshot: Snapshot, settings: tuple[FoundSetting, ...]) -> list[str]:
    notes = []
    files = {file.path: file for file in snapshot.files}
    for setting in settings:
        value = setting.value.strip()
        if setting.name not in _FILE_SETTINGS or not value.startswith("/"):
            continue
        file = files.get(value)
        where = f" ({setting.path})" if setting.path is not None else ""
        if file is None:
            notes.append(f'{setting.name} = "{value}"{where}: no such file here, which NCCL mentions at INFO only')
        elif file.text is None:
            notes.append(f'{setting.name} = "{value}"{where}: {file.reason or "cannot be read"}')
    if snapshot.container is not None and "/etc/nccl.conf" not in files:
        notes.append(f"a container ({snapshot.container}) without /etc/nccl.conf: settings of its host do not reach it")
    return notes


def _limits(index: SnapshotIndex, hardware: Hardware) -> list[str]:
    notes = []
    row = next((line.split() for line in reversed(index.output("df-shm").splitlines())), [])
    blocks = number(row[1]) if len(row) > 1 else None
    if blocks is not None and blocks * 1024 < _LEAST_SHARED_BYTES and hardware.gpus:
        size = format_size(blocks * 1024)
        notes.append(f"shared memory has {size}: NCCL may find no room in it; docker run --shm-size=8g")
    locked = next(
        (line.split() for line in (index.text("/proc/self/limits") or "").splitlines() if "locked" in line), []
    )
    most = number(locked[3]) if len(locked) > 3 else None
    if most is not None and most < _LEAST_LOCKED_BYTES and any(port.kind != "Ethernet" for port in hardware.ports):
        notes.append(f"locked memory is limited to {format_size(most)}: RDMA needs it unlimited (ulimit -l)")
    status = index.text("/proc/self/status") or ""
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    cpus = parse_cpu_list(allowed[1]) if allowed is not None else None
    if cpus and hardware.cpus and set(hardware.cpus) - set(cpus):
        notes.append(f"this process may use CPUs {format_cpu_list(cpus)} of {format_cpu_list(hardware.cpus)} only")
    return notes


def _libraries(libraries: tuple[FoundLibrary, ...]) -> list[str]:
    return [*_versions(libraries), *_in_place_of_nccl(libraries)]


def _in_place_of_nccl(libraries: tuple[FoundLibrary, ...]) -> list[str]:
    """Return a remark where the libnccl that jobs load is no NCCL of NVIDIA's."""
    first = next((one for one in libraries if one.name == "libnccl"), None)
    if first is None or first.kind in (None, "NCCL"):
        return []
    return [f"{first.path} is {first.kind}, which stands in NCCL's place: jobs load it as NCCL"]


def _versions(libraries: tuple[FoundLibrary, ...]) -> list[str]:
    versions = dict.fromkeys(one.version for one in libraries if one.name == "libnccl" and one.version is not None)
    if len(versions) < 2:
        return []
    return [f"{len(versions)} versions of NCCL here ({', '.join(versions)}): the first in the search order is loaded"]


def platform(name: str) -> ResolvedPlatform:
    """Return the platform with this id, name or SKU, with the origin of each value.

    Raises InputError for a name that none has, and for a site's file that cannot be used.
    """
    return find_platform(name, site_files())


def platforms() -> tuple[ResolvedPlatform, ...]:
    """Return every platform, by id. Raises InputError for a site's file that cannot be used."""
    site = site_files()
    return tuple(find_platform(each, site) for each in platform_ids(site))


_CHOICES = "name an NCCL topology file, a platform, or a snapshot of `busbw probe`; or give --here"
_FILE_ENDINGS = (".xml", ".tar", ".tgz", ".gz", ".txt")


class NamedTopology(Value, kw_only=True, frozen=True):
    """A topology, and what to know of how it was found, in words."""

    topology: Topology
    # What it was made of, as it was named: one of these.
    document: TopologyDocument | None = None
    hardware: Hardware | None = None
    platform: Platform | None = None
    notes: tuple[str, ...] = ()
    # Of a file: why NCCL would not see what it means.
    obstacles: tuple[str, ...] = ()


def topology(source: str | None, *, here: bool = False) -> Topology:
    """Return the topology of a file, a platform, a snapshot, or of this host; see `named_topology`."""
    return named_topology(source, here=here).topology


def named_topology(source: str | None, *, here: bool = False) -> NamedTopology:
    """Return the topology of a file, a platform, a snapshot, or of this host, with notes for whoever asked.

    A file is told from a snapshot by content, and goes before a platform of the same name. Raises InputError when
    nothing or too much is given, and for what is none of these.
    """
    if here and source is not None:
        raise InputError(f"both {source!r} and --here are given", hint="choose one of them")
    if here:
        return _of_hardware(hardware_here())
    if not source:
        raise InputError("no node is named", hint=_CHOICES)
    kind = source_kind(source)
    if kind == "absent":
        return _of_platform(source)
    notes = tuple(_shadowed(source))
    if kind == "snapshot":
        return structs.replace(_of_hardware(hardware_of_file(Path(source))), notes=notes)
    document = read_document(read_topology_file(Path(source)), source)
    found = topologies_of(document)
    if len(found) > 1:
        hash_ = found[0].host_hash or "none"
        notes += (f"{source} holds {len(found)} hosts; this is the first, with host_hash {hash_}",)
    return NamedTopology(topology=found[0], document=document, notes=notes, obstacles=obstacles(document))


def node_view(source: str | None, *, here: bool = False, nccl: Nccl = DEFAULT_NCCL) -> NodeView:
    """Return a topology with everything that follows from it, by the rules of a release of NCCL.

    Raises as `named_topology` does.
    """
    named = named_topology(source, here=here)
    plan = planned(named.topology, nccl)
    return view_of(named.topology, (*named.notes, *named.obstacles), nccl, _bounds(named, source), plan)


def nccl_release(text: str | None) -> tuple[Nccl, str | None]:
    """Return the release that a version names, of a series the last; and what is doubtful about it, None for nothing.

    Raises InputError for what is no version.
    """
    if text is None:
        return DEFAULT_NCCL, None
    version = parse_version(text)
    number = version[2] if len(version) > 2 else LAST_OF_SERIES
    release = (version[0], version[1], number)
    if release < OLDEST_NCCL:
        return release, f"how NCCL {text} counts is not known; told as of {OLDEST_NCCL[0]}.{OLDEST_NCCL[1]}"
    return release, beyond(version)


_ALGORITHMS = ("ring", "tree")


def _bounds(named: NamedTopology, source: str | None) -> tuple[Bound, ...]:
    """Return the bounds of ring and tree within one node, as `busbw limit` has them, where they are known."""
    rates = None
    if named.hardware is not None:
        rates = captured_rates(named.hardware)
    elif named.platform is not None and named.platform.gpu.count:
        rates = rates_of_platform(named.platform, name=source)
    if rates is None or rates.gpus < 2:
        return ()
    limit = ceiling(rates, nodes=1, collective="all_reduce")
    return tuple(each for each in limit.bounds if each.algorithm in _ALGORITHMS and each.busbw_Bps is not None)


def captured_rates(hardware: Hardware, *, gpus: int | None = None) -> NodeRates:
    """Return the line rates of a captured host, with what is published of its GPUs."""
    name = next((gpu.name for gpu in hardware.gpus if gpu.name), None)
    facts = facts_of_gpus(tuple(each.platform for each in platforms())) if name is not None else {}
    return rates_of_hardware(hardware, facts.get(name or ""), gpus=gpus)


def _of_hardware(hardware: Hardware) -> NamedTopology:
    return NamedTopology(topology=topology_of_hardware(hardware), hardware=hardware)


def _of_platform(name: str) -> NamedTopology:
    if _is_a_file_name(name):
        raise InputError(f"there is no file {name}", where=name, hint=_CHOICES)
    try:
        found = platform(name)
    except InputError as error:
        raise InputError(f"no file here, and {error.cause}", where=error.where, hint=error.hint) from error
    return NamedTopology(topology=topology_of_platform(found.platform), platform=found.platform)


def _shadowed(name: str) -> Iterator[str]:
    """Say that a platform has the name of the file."""
    if _is_a_file_name(name):
        return
    try:
        known = platform(name).platform.id
    except InputError:
        return
    yield f"{name} is a file here, and it is read; the platform {known} has that name too"


def _is_a_file_name(name: str) -> bool:
    """Return whether nobody would call a platform so."""
    return "/" in name or name.endswith(_FILE_ENDINGS)


def snapshot_here() -> Snapshot:
    """Return this host as it is now. It takes some seconds, at most two minutes."""
    return capture()


def anonymous_snapshot_here() -> Snapshot:
    """Return this host without names, serial numbers and addresses."""
    return capture_anonymously()


def measured_snapshot_here(seconds: float) -> Snapshot:
    """Return this host as it is now, with a test of its noise in front, which takes `seconds`.

    Raises RunError where the test does not end well.
    """
    answer = capture_noise(seconds)
    if answer.ended != "ok":
        said = answer.error.strip().splitlines()
        raise RunError(f"the test of noise did not end: {said[-1] if said else answer.ended}")
    snapshot = capture()
    return structs.replace(snapshot, answers=(*snapshot.answers, answer))


def anonymous_measured_snapshot_here(seconds: float) -> Snapshot:
    """Return the same without names, serial numbers and addresses. Raises as `measured_snapshot_here`."""
    return anonymous(measured_snapshot_here(seconds), user=user())


def snapshot_of_file(path: Path) -> Snapshot:
    """Return a captured host. Raises InputError for a file that is not a snapshot."""
    return read_snapshot(path)


def anonymous_snapshot_of_file(path: Path) -> Snapshot:
    """Return a captured host without names, serial numbers and addresses. Raises as `snapshot_of_file`."""
    return anonymous(read_snapshot(path))


def counters_here() -> CountersRead:
    """Return the counters of this host's network ports as they are now."""
    return counters_of(capture_counters())


def counters_of_file(path: Path) -> CountersRead:
    """Return the counters that a captured host had. Raises InputError for a file that is not a snapshot."""
    return counters_of(read_snapshot(path))


def hardware_here() -> Hardware:
    """Return what this host says of itself."""
    return hardware_of(capture_hardware())


def hardware_of_file(path: Path) -> Hardware:
    """Return what a captured host said of itself. Raises InputError for a file that is not a snapshot."""
    return hardware_of(read_snapshot(path))


def host_of_snapshot(snapshot: Snapshot) -> Probe:
    """Return what a captured host says: hardware, libraries, settings, and what is unusual."""
    return host_of(snapshot)


def keep_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot. Raises InputError or RunError when it cannot be written."""
    write_snapshot(path, snapshot)
