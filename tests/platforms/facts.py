"""What the collected facts (YAML, not part of this repository) and a platform say differently, one text for each."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from busbw.base.cpus import parse_cpu_list, parse_mask
from busbw.model.platform import Platform

DIRECTORY = Path(__file__).parents[2] / ".." / "shared" / "facts" / "platforms"
Facts = dict[str, Any]


def differences(facts: Facts, platform: Platform) -> list[str]:
    """Return what differs in identity, GPUs, links, NICs, maps, settings, results and limits."""
    checks = (_identity, _gpus, _nvlink, _nics, _numa, _gpu_map, _settings, _published, _thresholds)
    return [text for check in checks for text in check(facts, platform)]


def _differs(what: str, theirs: object, ours: object) -> Iterator[str]:
    if theirs != ours:
        yield f"{what}: {theirs!r} in the facts, {ours!r} here"


def _plain(text: object) -> str:
    return re.sub(r"[\W_]+", "", str(text)).lower()


def _identity(facts: Facts, platform: Platform) -> Iterator[str]:
    yield from _differs("id", facts["id"], platform.id)
    yield from _differs("provider", facts["provider"], platform.provider)
    yield from _differs("class", facts["class"].removesuffix("-mpi"), platform.kind)
    ours = _plain(" ".join([*platform.names, *platform.match.skus, *(each.sku for each in platform.variants)]))
    for name in facts["names"]:
        # `ND A100 v4 (NDv4)` may stand as two names, and what is in parentheses may be a remark.
        if not any(_plain(part) in ours for part in re.findall(r"[^()]+", name)):
            yield f"name: {name!r}"
    firmware = facts["identity"]["dmi"] or {}
    for key in ("chassis_asset_tag", "product_name", "sys_vendor"):
        if firmware.get(key) is not None:
            yield from _differs(f"dmi {key}", str(firmware[key]), platform.match.dmi.get(key))
    size = facts["identity"].get("memory_kB")
    if isinstance(size, int):
        yield from _differs("memory", size * 1024, platform.match.memory_bytes)
    for key, ours_value in (("sockets_reported", platform.cpu.sockets), ("numa_nodes", platform.cpu.numa_nodes)):
        if (facts["cpu"] or {}).get(key) is not None:
            yield from _differs(f"cpu {key}", facts["cpu"][key], ours_value)


def _gpus(facts: Facts, platform: Platform) -> Iterator[str]:
    theirs = facts["gpus"]
    if not theirs:
        yield from _differs("GPUs", 0, platform.gpu.count)
        return
    if theirs["model"] not in (platform.gpu.model or ""):
        yield from _differs("GPU model", theirs["model"], platform.gpu.model)
    counts = theirs["count"]
    counts = set(counts.values()) if isinstance(counts, dict) else {counts}
    yield from _differs(
        "GPU count", counts, {platform.gpu.count, *(each.gpus for each in platform.variants if each.gpus)}
    )
    if isinstance(theirs["memory_GB"], int | float):
        yield from _differs("GPU memory", theirs["memory_GB"] * 10**9, platform.gpu.memory_bytes)


def _nvlink(facts: Facts, platform: Platform) -> Iterator[str]:
    theirs, ours = facts["nvlink"] or {}, platform.nvlink
    for key, value in (
        ("generation", ours.generation), ("links_per_gpu", ours.links_per_gpu), ("nvswitch", ours.switched),
        ("nvls", ours.nvls), ("domain_gpus", ours.domain_gpus),
    ):  # fmt: skip
        if theirs.get(key) is not None:
            yield from _differs(f"NVLink {key}", theirs[key], value)
    for key, value_Bps in (
        ("per_direction_GBps", ours.gpu_Bps), ("per_gpu_per_direction_GBps", ours.gpu_Bps),
        ("per_pair_per_direction_GBps", ours.pair_Bps), ("per_link_per_direction_GBps", ours.pair_Bps),
        ("c2c_per_direction_GBps", ours.c2c_Bps),
    ):  # fmt: skip
        if theirs.get(key) is not None:
            yield from _differs(f"NVLink {key}", theirs[key] * 1e9, value_Bps)


def _nics(facts: Facts, platform: Platform) -> Iterator[str]:
    theirs = facts["nics"]["compute"]
    for key, ours in (
        ("count", platform.nic.ports),
        ("mtu", platform.nic.mtu_bytes),
        ("hca_list", platform.nic.hca_list),
    ):
        if theirs.get(key) is not None:
            yield from _differs(f"NIC {key}", theirs[key], ours)
    rate = theirs.get("gbps_each")
    if isinstance(rate, int | float):
        yield from _differs("NIC rate", rate * 1e9, platform.nic.port_bps)
    if isinstance(rate, dict):
        variants = {each.nic_bps for each in platform.variants}
        yield from (f"NIC rate of a size: {each}" for each in rate.values() if each * 1e9 not in variants)
    if theirs.get("total_gbps") is not None and platform.nic.ports and platform.nic.port_bps:
        yield from _differs("NIC total", theirs["total_gbps"] * 1e9, platform.nic.ports * platform.nic.port_bps)


def _numa(facts: Facts, platform: Platform) -> Iterator[str]:
    theirs = {node["node"]: node for node in facts["numa"] or ()}
    ours = {node.id: node for node in platform.numa}
    yield from _differs("NUMA ids", sorted(theirs), sorted(ours))
    for number in theirs.keys() & ours.keys():
        node, cpus = theirs[number], parse_cpu_list(ours[number].cpus or "") or None
        if node["cpu_mask"] is not None:
            yield from _differs(f"mask of NUMA {number}", parse_mask(node["cpu_mask"]), cpus)
        if node["cpus"] is not None:
            yield from _differs(f"CPUs of NUMA {number}", parse_cpu_list(str(node["cpus"])), cpus)
        if node.get("gpu_memory_numa") is not None:
            yield from _differs(f"GPU memory of NUMA {number}", (node["gpu_memory_numa"],), ours[number].gpu_memory)
        for kind, places in (("gpu_pci", platform.gpus), ("nic_pci", platform.nics)):
            known = {each.lower() for each in node.get(kind) or () if each is not None}
            held = {place.bus_id for place in places if place.numa == number and place.bus_id is not None}
            if node.get(kind) is not None:
                yield from _differs(f"{kind} of NUMA {number}", sorted(known), sorted(held))


def _gpu_map(facts: Facts, platform: Platform) -> Iterator[str]:
    ours = {gpu.gpu: gpu for gpu in platform.gpus}
    theirs: dict[int, list[Facts]] = {}
    for row in facts["gpu_map"] or ():
        theirs.setdefault(row["gpu"], []).append(row)
    yield from _differs("mapped GPUs", sorted(theirs), sorted(ours))
    for number in theirs.keys() & ours.keys():
        for row in theirs[number]:
            if row["gpu_pci"] is not None:
                yield from _differs(f"address of GPU {number}", row["gpu_pci"].lower(), ours[number].bus_id)
            if row["numa"] is not None:
                yield from _differs(f"NUMA node of GPU {number}", row["numa"], ours[number].numa)
            # `hsn0 (cxi0)` names one NIC twice.
            names = re.findall(r"[\w.-]+", str(row["nic"])) if row["nic"] is not None else []
            if names and not set(names) & set(ours[number].nics):
                yield f"NIC {row['nic']} of GPU {number}: {ours[number].nics} here"
            # The second port of a card is its second function, or port 2 of its first: vendors write both.
            cards = re.findall(r"([0-9a-f:]{10})\.[0-9a-f]", str(row["nic_pci"]).lower())
            # Where the vendor's list of names does not say which is which, the switch that they share does.
            held = {
                (nic.bus_id or "").split(".")[0]
                for nic in platform.nics
                if nic.name in ours[number].nics or (nic.parent is not None and nic.parent == ours[number].parent)
            }
            yield from (f"NIC at {each} of GPU {number}" for each in cards if each not in held)


def _settings(facts: Facts, platform: Platform) -> Iterator[str]:
    ours: dict[str, set[str | None]] = {}
    for each in platform.settings:
        ours.setdefault(each.name, set()).add(each.value)
    named = set()
    for row in facts["env"] or ():
        named.add(row["var"])
        for value in str(row["value"]).split(" | "):
            clean = re.sub(r" \([^()]*\)$", "", value)
            if (None if clean == "unset" else clean) not in ours.get(row["var"], set()):
                yield f"setting {row['var']}={clean}"
    yield from (f"setting {each} is not in the facts" for each in ours if each not in named)


def _published(facts: Facts, platform: Platform) -> Iterator[str]:
    expected = [row for row in facts["expected"] if not _is_in_a_table(row, platform)]
    theirs = sorted((float(row["value"]), row["unit"], row["kind"]) for row in expected if row["value"] is not None)
    # What the makers give for a part stands in its family, and holds for every platform with that part.
    ours = sorted(
        (each.value, each.unit, each.kind)
        for each in platform.published
        if each.kind != "reference" or (each.value, each.unit, each.kind) in theirs
    )
    yield from _leftover("published", theirs, ours)
    for row in expected:
        same = [each for each in platform.published if each.value == row["value"] and each.unit == row["unit"]]
        counts = tuple(row[key] if isinstance(row[key], int) else None for key in ("nodes", "gpus"))
        if same and counts not in {(each.nodes, each.gpus) for each in same}:
            yield f"published {row['value']} {row['unit']}: on {row['nodes']} nodes and {row['gpus']} GPUs"


def _is_in_a_table(row: Facts, platform: Platform) -> bool:
    """Return whether a measured figure, however it was rounded, stands in a table of several sizes here."""
    if row["kind"] != "measured" or row["metric"] != "busbw":
        return False
    return any(
        abs(rate - row["value"]) < 0.5 and f"{rate:g}".startswith(f"{row['value']:g}"[:-1])
        for sweep in platform.sweeps
        if (sweep.test, sweep.nodes, sweep.gpus) == (row["test"], row["nodes"], row["gpus"])
        for _, rate in sweep.points
    )


def _thresholds(facts: Facts, platform: Platform) -> Iterator[str]:
    theirs = [(float(row["value"]), row["unit"], row["pass_if"]) for row in facts["thresholds"]]
    ours = [(each.value, each.unit, each.passes) for each in platform.thresholds]
    yield from _leftover("threshold", theirs, ours)


def _leftover(what: str, theirs: list[tuple[Any, ...]], ours: list[tuple[Any, ...]]) -> Iterator[str]:
    left = list(ours)
    for each in theirs:
        if each in left:
            left.remove(each)
        else:
            yield f"{what} {each} is missing"
    yield from (f"{what} {each} is not in the facts" for each in left)
