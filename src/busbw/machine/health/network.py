"""What the network can do for a job, what of it is switched on, what a job would use; and what is asked for in vain."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from busbw.base.text import listed
from busbw.facts.network import FabricCard, FabricFeature, FeatureId, Reader, card_of, fabric_features
from busbw.machine.health import gpus
from busbw.machine.health.node import ExaminedNode, fault, fine, found, port_name, skipped, unknown
from busbw.machine.read.index import number
from busbw.machine.read.network import KEY_PLACES, partition_key
from busbw.model.finding import Finding, HostCheck, NetworkFeature, Told
from busbw.model.host import HostPort, PortKeys

_NO_FABRIC = "no port of a fabric"
_OFF = {"0", "n", "no", "off", "false"}
_ON = {"1", "y", "yes", "on", "true"}
# The aliases of UCX's transports, by its own list (ucx_info -cf): those over which a NIC reaches its peers.
_DC = ("dc", "dc_x", "dc_mlx5")
_IB = ("all", "ib")
_DEFAULT_KEYS = (0xFFFF, 0x7FFF)
_FULL_MEMBER = 0x8000
_NEVER = ("LOC", "0")


class _Answers(NamedTuple):
    """The three answers about one feature."""

    available: Told
    switched_on: Told
    used: Told


def features(node: ExaminedNode, logged: Mapping[str, Told] | None = None) -> tuple[NetworkFeature, ...]:
    """Return what the network of a node can do, is set up to do, and does; () without a port of a fabric.

    `logged`: what the log of a job says that it used, by the id of the feature; it goes before its settings.
    """
    if not node.ports:
        return ()
    told = logged or {}
    return tuple(_feature(node, feature, told.get(feature.id)) for feature in fabric_features())


def _feature(node: ExaminedNode, feature: FabricFeature, logged: Told | None) -> NetworkFeature:
    kinds = dict.fromkeys(port.kind for port in node.ports)
    if any(kind in feature.fabrics for kind in kinds):
        answers = _ANSWERS[feature.id](node)
    else:
        never = _no(f"{' and '.join(kinds)} {'have' if len(kinds) > 1 else 'has'} no such thing")
        answers = _Answers(never, never, never)
    is_here = answers.available.answer != "no"
    return NetworkFeature(
        id=feature.id,
        name=feature.name,
        means=feature.means,
        available=answers.available,
        switched_on=answers.switched_on,
        used=logged or answers.used,
        compare=tuple(each.command for each in feature.compare if is_here and _is_read(node, each.reader)),
        ask=feature.ask if is_here and "InfiniBand" in kinds else None,
        source=feature.source,
    )


def _is_read(node: ExaminedNode, reader: Reader) -> bool:
    """Whether something here can be expected to read a setting of that owner."""
    kinds = {port.kind for port in node.ports}
    if reader == "NCCL":
        return bool(node.nvidia_gpus) and bool(node.rdma_ports)
    if reader == "CXI":
        return "Slingshot" in kinds
    if not node.rdma_ports:
        return False
    if reader == "MVAPICH2":
        return node.state.network.mpi == "MVAPICH"
    return node.state.network.mpi in (None, "Open MPI", "MPICH") if reader == "UCX" else _has_hcoll(node)


def _has_hcoll(node: ExaminedNode) -> bool:
    return node.state.network.mpi == "Open MPI" and any("/hpcx" in each.path for each in node.libraries)


def _yes(because: str) -> Told:
    return Told(answer="yes", because=because)


def _no(because: str) -> Told:
    return Told(answer="no", because=because)


def _open(because: str) -> Told:
    return Told(answer="cannot_tell", because=because)


def _card(node: ExaminedNode, port: HostPort) -> FabricCard | None:
    function = next((each for each in node.hardware.pci if each.bus_id == port.bus_id), None)
    return card_of(function.vendor, function.device) if function is not None else None


def _by_card(node: ExaminedNode, feature: FeatureId) -> Told:
    """Return whether the adapters have a feature by what is published of them."""
    cards = {card.name: card for port in node.ports if (card := _card(node, port)) is not None}
    having = [card for card in cards.values() if feature in card.has]
    lacking = [card for card in cards.values() if feature in card.lacks]
    if having and not lacking and len(having) == len(cards):
        return _yes(f"{listed(card.name for card in having)} ({having[0].source})")
    if lacking and not having:
        return _no(f"{listed(card.name for card in lacking)} ({lacking[0].source})")
    return _open("nothing is published of the adapters here" if not cards else f"not known of {listed(cards)}")


def _setting(node: ExaminedNode, *names: str) -> tuple[str, str] | None:
    """Return the first of these settings that is set, with its value."""
    return next(((name, node.settings[name].strip()) for name in names if node.settings.get(name, "").strip()), None)


def _switch(node: ExaminedNode, *names: str) -> Told | None:
    """Return what the first of these switches says; None where none is set to a yes or no."""
    made = _setting(node, *names)
    if made is None:
        return None
    said = f'{made[0]} = "{made[1]}"'
    value = made[1].lower()
    if value in _OFF:
        return _no(said)
    return _yes(said) if value in _ON or (value.isascii() and value.isdecimal()) else None


def _dct(node: ExaminedNode) -> _Answers:
    transports = node.state.network.transports
    devices = (transports or {}).get("dc_mlx5", ())
    by_ucx = _yes(f"ucx_info -d lists dc_mlx5 on {listed(devices)}") if devices else None
    if by_ucx is not None:
        switched_on = by_ucx
    elif transports is not None and any(name.startswith(("rc_", "ud_")) for name in transports):
        switched_on = _no(f"ucx_info -d lists {listed(sorted(transports))}, and no dc_mlx5")
    else:
        switched_on = _open("no ucx_info here, or it lists no transport of these adapters")
    return _Answers(by_ucx or _by_card(node, "dct"), switched_on, _dct_used(node))


def _dct_used(node: ExaminedNode) -> Told:
    made = _ucx(node, "UCX_TLS")
    if made is None or made[0] in ("all", ""):
        return _open("UCX_TLS leaves it to UCX, which takes it for many peers; UCX_LOG_LEVEL=info says")
    said = f'UCX_TLS = "{made[0]}" ({made[1]})'
    takes = takes_transport(made[0], _DC)
    only = takes and not takes_transport(made[0], ("rc", "rc_x", "rc_v", "rc_mlx5", "rc_verbs"))
    return _yes(said) if only else _open(f"{said} allows it") if takes else _no(said)


def _ucx(node: ExaminedNode, name: str) -> tuple[str, str] | None:
    """Return a setting of UCX and who says so: the environment, else ucx_info, which reads UCX's own files too."""
    if node.settings.get(name) is not None:
        return node.settings[name].strip(), "environment"
    value = node.state.network.ucx.get(name)
    return (value.strip(), "ucx_info -c") if value is not None else None


def takes_transport(transports: str, names: tuple[str, ...]) -> bool:
    """Whether a value of UCX_TLS allows one of these transports of a NIC; `^` in front takes all but those it lists."""
    words = [word.strip().removeprefix("\\") for word in transports.removeprefix("^").split(",")]
    is_listed = any(word in (*names, *_IB) for word in words)
    return is_listed != transports.startswith("^")


def _tag_matching(node: ExaminedNode) -> _Answers:
    if any(port.kind == "Slingshot" for port in node.ports):
        return _slingshot_tags(node)
    told = {
        port.name: node.state.network.tags[port.name] for port in node.ports if port.name in node.state.network.tags
    }
    if told and all(told.values()):
        available = _yes(f"ibv_devinfo -v: max_num_tags {min(told.values())} on {listed(told)}")
    elif told and not any(told.values()):
        available = _no(f"ibv_devinfo -v: tag matching not supported on {listed(told)}")
    elif told:
        without = listed(name for name, count in told.items() if not count)
        available = _no(f"ibv_devinfo -v: tag matching not supported on {without}, others have it")
    elif any(port.kind != "InfiniBand" for port in node.ports):
        available = _open("ibv_devinfo -v does not say, and over Ethernet firmware differs")
    else:
        available = _by_card(node, "tag_matching")
    names = ("UCX_RC_MLX5_TM_ENABLE", "UCX_DC_MLX5_TM_ENABLE")
    made = [(name, value) for name in names if (value := _ucx(node, name)) is not None]
    on = next((each for each in made if each[1][0].lower() in (*_ON, "try")), None)
    if on is not None:
        used = _yes(f'{on[0]} = "{on[1][0]}" ({on[1][1]}), for messages from UCX_TM_THRESH on')
    else:
        used = _no("UCX_RC_MLX5_TM_ENABLE and UCX_DC_MLX5_TM_ENABLE are off, which is UCX's default")
    # The adapter needs no set-up: a setting of the job is all there is.
    return _Answers(available, used, used)


def _slingshot_tags(node: ExaminedNode) -> _Answers:
    made = _setting(node, "FI_CXI_RX_MATCH_MODE")
    if made is None:
        used = _yes("FI_CXI_RX_MATCH_MODE is not set, and hardware is libfabric's default")
    else:
        said = f'FI_CXI_RX_MATCH_MODE = "{made[1]}"'
        used = _no(said) if made[1] == "software" else _yes(said)
    return _Answers(_by_card(node, "tag_matching"), used, used)


def _multicast(node: ExaminedNode) -> _Answers:
    groups = {
        port.name: node.state.network.multicast_groups[port.name]
        for port in node.ports
        if port.name in node.state.network.multicast_groups
    }
    if not groups:
        available = _open("no ibv_devinfo here, or it does not say max_mcast_grp")
    elif all(groups.values()):
        available = _yes(f"ibv_devinfo -v: max_mcast_grp {min(groups.values())} on {listed(groups)}")
    else:
        available = _no(f"ibv_devinfo -v: max_mcast_grp 0 on {listed(name for name, n in groups.items() if not n)}")
    names = ("MV2_USE_MCAST", "HCOLL_ENABLE_MCAST_ALL")
    used = _switch(node, *names) or _no("neither MV2_USE_MCAST nor HCOLL_ENABLE_MCAST_ALL is set: both default to 0")
    return _Answers(available, _open("groups are the subnet manager's: saquery -g"), used)


def _sharp(node: ExaminedNode) -> _Answers:
    parts = [each for each in node.libraries if each.name == "libsharp_coll"]
    if parts:
        switched_on = _open(f"{parts[0].path} is here; whether sharp_am answers only sharp_hello tells")
    elif not node.libraries:
        switched_on = _open("no library was looked for")
    else:
        switched_on = _no("no libsharp_coll.so where a job would find it")
    asked = _sharp_asked(node)
    used = asked or _no("none of NCCL_COLLNET_ENABLE, HCOLL_ENABLE_SHARP, MV2_ENABLE_SHARP is set: all default to 0")
    return _Answers(_open("the switches and their aggregation manager decide, which no node sees"), switched_on, used)


def _sharp_asked(node: ExaminedNode) -> Told | None:
    """Return whether the settings ask for SHARP: a yes goes before a no."""
    made = [_switch(node, name) for name in ("NCCL_COLLNET_ENABLE", "HCOLL_ENABLE_SHARP", "MV2_ENABLE_SHARP")]
    told = [each for each in made if each is not None]
    return next((each for each in told if each.answer == "yes"), told[0] if told else None)


def _adaptive_routing(node: ExaminedNode) -> _Answers:
    published = _by_card(node, "adaptive_routing")
    if published.answer == "yes":
        always = _yes("the fabric does it by itself, and no setting of a job is known to switch it")
        return _Answers(published, always, always)
    switches = _open("the switches and their subnet manager decide, which no node sees")
    made = _switch(node, "NCCL_IB_ADAPTIVE_ROUTING", "UCX_IB_AR_ENABLE")
    if made is not None:
        used = made if made.answer == "no" else _open(f"{made.because} allows it; the service level decides")
    elif any(port.kind == "InfiniBand" for port in node.ports):
        used = _open("nothing forbids it: NCCL allows it on InfiniBand, UCX goes by its service level")
    else:
        used = _no("NCCL_IB_ADAPTIVE_ROUTING is not set, and NCCL's default on RoCE is 0")
    return _Answers(switches, switches, used)


def _shield(_node: ExaminedNode) -> _Answers:
    switches = _open("it works between switches, which no node sees")
    return _Answers(switches, switches, _open("no setting of a job switches it: where it is on, every job has it"))


def _gpu_direct(node: ExaminedNode) -> _Answers:
    check = gpus.gpu_direct(node)
    if not node.hardware.gpus:
        never = _no("no GPU here")
        return _Answers(never, never, never)
    if check.outcome == "ok":
        available = switched_on = _yes(check.because or "")
    elif check.outcome == "found":
        available = _yes("NVIDIA GPUs, and ports that NCCL drives itself")
        switched_on = _no(check.findings[0].evidence)
    else:
        available = switched_on = _open(check.because or "")
    copies = (
        "gdrdrv is loaded (GDRCopy)" if "gdrdrv" in (node.state.modules or ()) else "gdrdrv (GDRCopy) is not loaded"
    )
    if node.state.modules is not None:
        switched_on = Told(answer=switched_on.answer, because=f"{switched_on.because}; {copies}")
    off = _direct_off(node)
    used = _no(off) if off is not None else _open("no setting forbids it; NCCL_DEBUG=INFO says GDRDMA where it is used")
    return _Answers(available, switched_on, used)


def _direct_off(node: ExaminedNode) -> str | None:
    """Return the setting that forbids NICs to reach the memory of GPUs."""
    for name in ("NCCL_NET_GDR_LEVEL", "NCCL_IB_GDR_LEVEL"):
        if node.settings.get(name, "").strip() in _NEVER:
            return f'{name} = "{node.settings[name].strip()}"'
    made = _ucx(node, "UCX_IB_GPU_DIRECT_RDMA")
    if made is not None and made[0].lower() in _OFF:
        return f'UCX_IB_GPU_DIRECT_RDMA = "{made[0]}" ({made[1]})'
    return None


def _partition_keys(node: ExaminedNode) -> _Answers:
    tables = [table for table in node.state.network.keys if (table.name, table.port) in _places(node)]
    if not tables:
        unread = _open("the tables under /sys/class/infiniband/*/ports/*/pkeys were not captured")
        return _Answers(unread, unread, unread)
    where = f"/sys/class/infiniband/{tables[0].name}/ports/{tables[0].port}/pkeys"
    all_keys = sorted({key for table in tables for key in table.keys.values()})
    own = [key for key in all_keys if key not in _DEFAULT_KEYS]
    shown = ", ".join(f"{key:#06x}" for key in all_keys[:4]) or "none"
    switched_on = _yes(f"{where}: {shown}") if own else _no(f"{where}: {shown}, the default partition alone")
    said, taken = _key_taken(node, tables[0])
    if taken is None:
        used = _open(f"{said} of {where}: it is empty, or was not captured")
    else:
        used = Told(answer="no" if taken in _DEFAULT_KEYS else "yes", because=f"{said} is {taken:#06x}")
    return _Answers(_yes(f"every port of InfiniBand has a table: {where}"), switched_on, used)


def _places(node: ExaminedNode) -> set[tuple[str, int]]:
    return {(port.name, port.port) for port in node.ports if port.kind == "InfiniBand"}


def _key_taken(node: ExaminedNode, table: PortKeys) -> tuple[str, int | None]:
    """Return which partition key NCCL takes of a table, in words, and the key; None where there is none."""
    wanted = partition_key(node.settings.get("NCCL_IB_PKEY_VALUE", "").strip())
    if wanted is not None:
        place = next(
            (place for place, key in table.keys.items() if key & ~_FULL_MEMBER == wanted & ~_FULL_MEMBER), None
        )
        return f"the entry of NCCL_IB_PKEY_VALUE = {wanted:#06x}", table.keys.get(place) if place is not None else None
    place = _key_place(node)
    return f"entry {place}, NCCL's," if place == 0 else f"entry {place}, of NCCL_IB_PKEY,", table.keys.get(place)


def _key_place(node: ExaminedNode) -> int:
    """Return the entry of the table that NCCL takes: NCCL_IB_PKEY, 0 by default."""
    return number(node.settings.get("NCCL_IB_PKEY")) or 0


def _sriov(node: ExaminedNode) -> _Answers:
    addresses = {port.bus_id for port in node.ports}
    told = [each for each in node.state.network.functions if each.bus_id in addresses]
    virtual = [each for each in told if each.is_virtual]
    if virtual:
        said = _yes(f"{listed(each.bus_id for each in virtual)}: virtual functions, by physfn or by their ids")
        return _Answers(said, said, said)
    if not told:
        unsaid = _open("no adapter here has sriov_totalvfs, which a virtual machine hides")
        return _Answers(unsaid, unsaid, unsaid)
    first = told[0]
    folder = f"/sys/bus/pci/devices/{first.bus_id}"
    most, shown = max(each.most or 0 for each in told), max(each.shown or 0 for each in told)
    available = _yes(f"{folder}/sriov_totalvfs: {most}") if most else _no(f"{folder}/sriov_totalvfs: 0")
    switched_on = _yes(f"{folder}/sriov_numvfs: {shown}") if shown else _no(f"{folder}/sriov_numvfs: 0")
    return _Answers(available, switched_on, _no("the ports that jobs use here are physical functions"))


_ANSWERS: dict[FeatureId, Callable[[ExaminedNode], _Answers]] = {
    "dct": _dct,
    "tag_matching": _tag_matching,
    "multicast": _multicast,
    "sharp": _sharp,
    "adaptive_routing": _adaptive_routing,
    "shield": _shield,
    "gpudirect": _gpu_direct,
    "partition_keys": _partition_keys,
    "sriov": _sriov,
}


def direct_forbidden(node: ExaminedNode) -> HostCheck:
    """Check that no setting forbids GPUDirect RDMA where the node has it."""
    name, look = "GPUDirect RDMA in the settings", "env | grep -e GDR_LEVEL -e UCX_IB_GPU_DIRECT; cat /etc/nccl.conf"
    answers = _gpu_direct(node)
    if answers.switched_on.answer != "yes":
        return skipped(name, "no GPUDirect RDMA here, or it cannot be told", look=look)
    forbidden = _direct_off(node)
    if forbidden is None:
        return fine(name, "no setting forbids it", look=look)
    fix = f"unset {forbidden.partition(' ')[0]}; what it costs: busbw compare, as below network"
    made = fault("HOST026", evidence=f"{forbidden}; {answers.switched_on.because}", fix=fix, look=look)
    return found(name, made, look=look)


def asked_in_vain(node: ExaminedNode) -> HostCheck:
    """Check that what the settings ask of the network is here."""
    name, look = (
        "features that settings ask for",
        "env | grep -e SHARP -e COLLNET -e TM_ENABLE -e MCAST -e GDRCOPY -e UCX_TLS",
    )
    if not node.ports:
        return skipped(name, _NO_FABRIC, look=look)
    made = [
        each
        for check in (_sharp_in_vain, _tags_in_vain, _multicast_in_vain, _dct_in_vain, _copies_in_vain)
        if (each := check(node, look)) is not None
    ]
    return found(name, *made, look=look) if made else fine(name, "nothing is asked for that is not here", look=look)


def _in_vain(setting: str, what: str, missing: str, fix: str, look: str) -> Finding:
    evidence = f"{setting}; {missing}"
    return fault("HOST027", what=what, evidence=evidence, fix=fix, look=look, confidence="likely")


def _sharp_in_vain(node: ExaminedNode, look: str) -> Finding | None:
    asked, on = _sharp_asked(node), _sharp(node).switched_on
    kinds = {port.kind for port in node.ports}
    if asked is None or asked.answer != "yes":
        return None
    if "InfiniBand" not in kinds:
        fix = f"unset {asked.because.partition(' ')[0]}: SHARP is InfiniBand's"
        return _in_vain(asked.because, "SHARP", f"the fabric is {' and '.join(sorted(kinds))}", fix, look)
    if on.answer != "no":
        return None
    fix = "load the module of HPC-X with its NCCL plug-in (nccl_rdma_sharp_plugin), or unset the setting"
    return _in_vain(asked.because, "SHARP", on.because, fix, look)


def _tags_in_vain(node: ExaminedNode, look: str) -> Finding | None:
    answers = _tag_matching(node)
    if answers.used.answer != "yes" or answers.available.answer != "no" or not node.rdma_ports:
        return None
    fix = "unset the setting: UCX matches tags on the CPU, as it does by default"
    return _in_vain(answers.used.because, "hardware tag matching", answers.available.because, fix, look)


def _multicast_in_vain(node: ExaminedNode, look: str) -> Finding | None:
    answers = _multicast(node)
    if answers.used.answer != "yes" or answers.available.answer != "no":
        return None
    return _in_vain(answers.used.because, "multicast", answers.available.because, "unset the setting", look)


def _dct_in_vain(node: ExaminedNode, look: str) -> Finding | None:
    if not node.rdma_ports:
        return None
    answers = _dct(node)
    if answers.used.answer != "yes" or answers.switched_on.answer != "no":
        return None
    fix = "load a UCX that was built with DC (ucx_info -d lists dc_mlx5), or UCX_TLS=rc,sm,self"
    return _in_vain(answers.used.because, "the DC transport", answers.switched_on.because, fix, look)


def _copies_in_vain(node: ExaminedNode, look: str) -> Finding | None:
    asked = _switch(node, "NCCL_GDRCOPY_ENABLE")
    modules = node.state.modules
    if asked is None or asked.answer != "yes" or modules is None or "gdrdrv" in modules or not node.nvidia_gpus:
        return None
    fix = "sudo modprobe gdrdrv (package gdrdrv-dkms), or unset NCCL_GDRCOPY_ENABLE"
    return _in_vain(asked.because, "GDRCopy", "gdrdrv is not among the modules that are loaded", fix, look)


def partition_members(node: ExaminedNode) -> HostCheck:
    """Check that the partition key that NCCL takes of each port is there and of a full member."""
    name, look = "partition keys", "grep . /sys/class/infiniband/*/ports/*/pkeys/* | grep -v 0x0000"
    places = _places(node)
    if not places:
        return skipped(name, "no port of InfiniBand", look=look)
    tables = [table for table in node.state.network.keys if (table.name, table.port) in places]
    if not tables:
        return unknown(name, "the tables were not captured", look=look)
    if not 0 <= _key_place(node) < KEY_PLACES:
        return unknown(name, f"only the first {KEY_PLACES} entries of the tables were captured", look=look)
    ports = {(port.name, port.port): port for port in node.ports}
    made = []
    for table in tables:
        said, key = _key_taken(node, table)
        if key is not None and key & _FULL_MEMBER:
            continue
        full = next((other for other, each in table.keys.items() if each & _FULL_MEMBER), None)
        state = "empty" if key is None else f"{key:#06x}: a limited member"
        fix = f"export NCCL_IB_PKEY={full}" if full is not None else "ask the fabric's administrator for the partition"
        device = port_name(ports[table.name, table.port])
        made.append(
            fault("HOST028", device=device, evidence=f"{said} is {state}", fix=fix, look=look, confidence="likely")
        )
    if made:
        return found(name, *made, look=look)
    said, _key = _key_taken(node, tables[0])
    return fine(name, f"{said} is a full member's, on each of {len(tables)}", look=look)
