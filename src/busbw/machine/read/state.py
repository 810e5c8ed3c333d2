"""A snapshot into the state of its host."""

import datetime as dt
import re
from typing import Literal

from busbw.base.cpus import parse_cpu_list
from busbw.base.errors import InputError
from busbw.facts.port_counters import port_counters
from busbw.machine.read.commands import DRIVER_STATISTICS
from busbw.machine.read.ethtool import read_ethtool
from busbw.machine.read.index import SnapshotIndex, bus_id, first_number, number
from busbw.machine.read.network import network_state
from busbw.machine.read.nvidia_smi import Fields, gpu_fields
from busbw.machine.read.pci import NONE, acs_word
from busbw.model.host import FoundSetting, GpuState, HostState, NamedFile, PortState, Snapshot
from busbw.model.machine import CountersRead

# Reasons for low clocks that something is wrong with; a power cap under load and an idle GPU are none.
_FAULTS = {
    "hw_slowdown": "hardware slowdown",
    "hw_thermal_slowdown": "heat (hardware)",
    "hw_power_brake_slowdown": "power brake",
    "sw_thermal_slowdown": "heat (driver)",
}
# Drivers before 535 have the second names.
_REASONS = (("clocks_event_reasons", "clocks_event_reason_"), ("clocks_throttle_reasons", "clocks_throttle_reason_"))
_UNCORRECTED = (
    "sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable",
)  # fmt: skip
_ESCAPE = re.compile(r"\x1b\[[0-9;]{0,8}m")
_DENIED = {"CNS", "GNS", "TNS", "NS", "DR"}
_MOST_GPUS = 128


def gpu_states(index: SnapshotIndex) -> tuple[GpuState, ...]:
    """Return the GPUs in the order of nvidia-smi; () where it says nothing that can be read."""
    text = index.said("nvidia-smi-xml")
    if not text.strip():
        return ()
    try:
        _head, listed = gpu_fields(text)
    except InputError:
        # Hardware.missing says so.
        return ()
    return tuple(
        _state(place, address, fields)
        for place, (name, fields) in enumerate(listed)
        if (address := bus_id(fields.get(("pci", "pci_bus_id"), name))) is not None
    )


def _state(place: int, address: str, said: Fields) -> GpuState:
    return GpuState(
        index=place,
        bus_id=address,
        persistence={"Enabled": True, "Disabled": False}.get(said.get(("persistence_mode",), "")),
        slowed_by=_slowed_by(said),
        uncorrected_errors=_uncorrected(said),
        repair_pending=_yes(
            said,
            ("remapped_rows", "remapped_row_pending"),
            ("retired_pages", "pending_retirement"),
            ("retired_pages", "pending_blacklist"),
        ),
        repair_failed=_yes(said, ("remapped_rows", "remapped_row_failure")),
        fabric_state=said.get(("fabric", "state")),
        fabric_status=said.get(("fabric", "status")),
        application_MHz=first_number(said.get(("applications_clocks", "graphics_clock"))),
        default_application_MHz=first_number(said.get(("default_applications_clocks", "graphics_clock"))),
    )


def _slowed_by(said: Fields) -> tuple[str, ...] | None:
    """Return the faults that are active, the general one only where no other says more; None where none is told."""
    found: dict[str, str] = {}
    for group, prefix in _REASONS:
        found |= {
            words: value for name, words in _FAULTS.items() if (value := said.get((group, prefix + name))) is not None
        }
    if not found:
        return None
    active = tuple(words for words, value in found.items() if value == "Active")
    return tuple(words for words in active if words != _FAULTS["hw_slowdown"]) or active


def _uncorrected(said: Fields) -> int | None:
    """Return the memory errors since the driver was loaded, which no correction helped against."""
    counts = [first_number(said.get(("ecc_errors", "volatile", name))) for name in _UNCORRECTED]
    counts.append(first_number(said.get(("ecc_errors", "volatile", "double_bit", "total"))))
    known = [count for count in counts if count is not None]
    return min(sum(known), 2**62) if known else None


def _yes(said: Fields, *places: tuple[str, ...]) -> bool | None:
    values = [said[place] for place in places if place in said]
    return any(value == "Yes" for value in values) if values else None


def peers_denied(matrix: str) -> tuple[tuple[str, str, str], ...] | None:
    """Return the pairs of GPUs that `nvidia-smi topo -p2p r` denies each other, lower number first; None without it."""
    rows = [line.split() for line in _ESCAPE.sub("", matrix).splitlines()]
    heading = next(
        (row for row in rows if row and row[0] == "GPU0" and all(each.startswith("GPU") for each in row)), None
    )
    if heading is None or len(heading) > _MOST_GPUS:
        return None
    cells = {row[0]: row[1:] for row in rows if row and row is not heading and row[0] in heading}
    return tuple(
        (first, second, cell)
        for place, first in enumerate(heading)
        for second, cell in list(zip(heading, cells.get(first, ()), strict=False))[place + 1 :]
        if cell in _DENIED
    )


_PCI = "/sys/bus/pci/devices"
_RDMA = "/sys/class/infiniband"
# What a port counts that is a sign of something, and not of traffic alone.
_SIGNS = tuple(each.name for each in port_counters().values() if each.owner == "rdma" and each.kind != "traffic")
_FILE_SETTINGS = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")
_LIMIT = re.compile(r"(?P<name>Max [a-z ]{3,30}?) {2,}(?P<soft>\d{1,18}|unlimited)\s")
_KERNEL = re.compile(r"Linux (\d{1,3})\.(\d{1,3})")
_UPTIME = re.compile(r"\d{1,12}(?:\.\d{1,3})?")


def state_of(snapshot: Snapshot, settings: tuple[FoundSetting, ...]) -> HostState:
    """Return the state of a captured host; `settings` are those that a job there would have."""
    index = SnapshotIndex(snapshot)
    modules = index.text("/proc/modules")
    kernel = _KERNEL.match(index.output("uname"))
    words = index.text("/proc/cmdline")
    uptime = _UPTIME.match(index.text("/proc/uptime") or "")
    return HostState(
        limits=_limits(index.text("/proc/self/limits") or ""),
        shared_bytes=_shared_bytes(index.output("df-shm")),
        numa_balancing=index.number("/proc/sys/kernel/numa_balancing"),
        kernel=(int(kernel[1]), int(kernel[2])) if kernel is not None else None,
        uptime_s=float(uptime[0]) if uptime is not None else None,
        modules=tuple(line.split()[0] for line in modules.splitlines() if line.split()) if modules else None,
        nvidia_module=_nvidia_module(index.text("/proc/driver/nvidia/version")),
        boot_words=tuple(words.split()) if words is not None else None,
        iommu=_iommu(index),
        acs=_acs(index),
        ports=_ports(index),
        gpus=gpu_states(index),
        peers_denied=peers_denied(index.output("nvidia-smi-p2p")),
        has_verbs_devices=_has_verbs_devices(index),
        allowed_cpus=_allowed(index.text("/proc/self/status") or ""),
        governor=index.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_synchronised={"yes": True, "no": False}.get(index.output("timedatectl").strip()),
        named_files=_named_files(snapshot, settings),
        network=network_state(index),
    )


def _limits(text: str) -> dict[str, int | Literal["unlimited"]]:
    rows = (_LIMIT.match(f"{line} ") for line in text.splitlines())
    return {
        row["name"]: "unlimited" if row["soft"] == "unlimited" else int(row["soft"]) for row in rows if row is not None
    }


def _shared_bytes(df: str) -> int | None:
    """Return the size that `df -k -P` says in its last line."""
    words = next((line.split() for line in reversed(df.splitlines())), [])
    blocks = number(words[1]) if len(words) > 1 else None
    return blocks * 1024 if blocks is not None and blocks < 2**50 else None


def _nvidia_module(version: str | None) -> Literal["open", "proprietary"] | None:
    if version is None or "Kernel Module" not in version:
        return None
    return "open" if "Open Kernel Module" in version else "proprietary"


def _iommu(index: SnapshotIndex) -> dict[str, str]:
    found = {}
    for name in index.names(_PCI):
        address, group = bus_id(name), index.link(f"{_PCI}/{name}/iommu_group")
        if address is not None and group is not None:
            kind = index.text(f"/sys/kernel/iommu_groups/{group.rpartition('/')[2]}/type")
            if kind is not None:
                found[address] = kind
    return found


def _acs(index: SnapshotIndex) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name in index.names(_PCI):
        address, text = bus_id(name), index.text(f"{_PCI}/{name}/config")
        word = acs_word(text)
        if address is not None and (word is not None or text == NONE):
            found[address] = word
    return found


def _ports(index: SnapshotIndex) -> tuple[PortState, ...]:
    found = []
    for device in index.names(_RDMA):
        for name in index.names(f"{_RDMA}/{device}/ports"):
            folder, port = f"{_RDMA}/{device}/ports/{name}", number(name)
            if port is None:
                continue
            counters = {each: index.number(f"{folder}/hw_counters/{each}") for each in _SIGNS}
            counters |= {
                each: count for each in _SIGNS if (count := index.number(f"{folder}/counters/{each}")) is not None
            }
            found.append(
                PortState(
                    name=device,
                    port=port,
                    state=_after_colon(index.text(f"{folder}/state")),
                    physical=_after_colon(index.text(f"{folder}/phys_state")),
                    errors={each: count for each, count in counters.items() if count is not None},
                )
            )
    return tuple(found)


def _after_colon(text: str | None) -> str | None:
    """Return the word in `4: ACTIVE`."""
    return text.rpartition(":")[2].strip()[:40] if text is not None else None


def _has_verbs_devices(index: SnapshotIndex) -> bool | None:
    answer = index.answer("ls-infiniband")
    if answer is None or answer.ended not in ("ok", "failed"):
        return None
    return "uverbs" in answer.output


def _allowed(status: str) -> tuple[int, ...] | None:
    match = re.search(r"^Cpus_allowed_list:\s*(\S{1,4096})", status, re.MULTILINE)
    return parse_cpu_list(match[1]) if match is not None else None


def _named_files(snapshot: Snapshot, settings: tuple[FoundSetting, ...]) -> tuple[NamedFile, ...]:
    files = {file.path: file for file in snapshot.files}
    found = []
    for setting in settings:
        path = setting.value.strip()
        if setting.name not in _FILE_SETTINGS or not path.startswith("/"):
            continue
        file = files.get(path)
        fault = "no such file" if file is None else (file.reason or "cannot be read") if file.text is None else None
        found.append(NamedFile(setting=setting.name, path=path, named_in=setting.path, fault=fault))
    return tuple(found)


_COUNTER_FILES = (
    re.compile(r"/sys/class/infiniband/([^/]{1,64})/ports/(\d{1,3})/(?:hw_)?counters/([^/]{1,80})"),
    re.compile(r"/sys/class/cxi/([^/]{1,64})/device/telemetry/()([^/]{1,80})"),
    re.compile(r"/run/cxi/([^/]{1,64})/()([^/]{1,80})"),
    re.compile(r"/sys/class/net/([^/]{1,64})/()(?:statistics/([^/]{1,80})|(carrier_changes))"),
)
_RETRIES = "/run/cxi/"


def counters_of(snapshot: Snapshot) -> CountersRead:
    """Return the counters of a captured host; what is no number is left out. Raises InputError as `read_ethtool`."""
    found: dict[str, int] = {}
    uptime_s: float | None = None
    for file in snapshot.files:
        if file.path == "/proc/uptime" and (match := _UPTIME.match(file.text or "")) is not None:
            uptime_s = float(match[0])
        key = _counter_key(file.path)
        # Cassini's telemetry has the time behind an "@".
        value = number((file.text or "").split("@")[0]) if key is not None else None
        if key is not None and value is not None and value >= 0:
            found.setdefault(key, value)
    for answer in snapshot.answers:
        if answer.name == DRIVER_STATISTICS and answer.ended == "ok" and answer.output.strip():
            for each in read_ethtool(answer.output, answer.name):
                found = each.counters | found
    return CountersRead(host=snapshot.hostname, unix_s=_unix_s(snapshot.captured), uptime_s=uptime_s, counters=found)


def _counter_key(path: str) -> str | None:
    for form in _COUNTER_FILES:
        match = form.fullmatch(path)
        if match is not None:
            port = f"{match[1]}/{match[2]}" if match[2] else match[1]
            name = next(each for each in reversed(match.groups()) if each)
            return f"{port} {'rh:' if path.startswith(_RETRIES) else ''}{name}"
    return None


def _unix_s(captured: str) -> float | None:
    try:
        return dt.datetime.fromisoformat(captured).timestamp()
    except (ValueError, OverflowError):
        return None
