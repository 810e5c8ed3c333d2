"""Synthetic snapshots of nodes with nothing wrong, and the means to plant one fault in them. None was captured."""

import msgspec
from tests.probe.hosts import snapshot_of
from tests.probe.machines import MACHINES

from busbw.api.diagnoses import examine_captured
from busbw.model.finding import HostCheck, HostDiagnosis
from busbw.model.host import Answer, CapturedFile, CapturedLink, FoundLibrary, Snapshot
from busbw.store.snapshots import write_snapshot

BARE, VIRTUAL, EFA, SUPERCHIP = "oci-bm-gpu4-8", "azure-nd-h100-v5", "aws-p5", "gh200-slingshot"
_HEALTH = """\t\t<persistence_mode>Enabled</persistence_mode>
\t\t<clocks_event_reasons>
\t\t\t<clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
\t\t\t<clocks_event_reason_sw_power_cap>Not Active</clocks_event_reason_sw_power_cap>
\t\t\t<clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>
\t\t\t<clocks_event_reason_hw_thermal_slowdown>Not Active</clocks_event_reason_hw_thermal_slowdown>
\t\t</clocks_event_reasons>
\t\t<ecc_errors>
\t\t\t<volatile>
\t\t\t\t<sram_uncorrectable>0</sram_uncorrectable>
\t\t\t\t<dram_uncorrectable>0</dram_uncorrectable>
\t\t\t</volatile>
\t\t</ecc_errors>
\t\t<remapped_rows>
\t\t\t<remapped_row_pending>No</remapped_row_pending>
\t\t\t<remapped_row_failure>No</remapped_row_failure>
\t\t</remapped_rows>
\t\t<fabric>
\t\t\t<state>Completed</state>
\t\t\t<status>Success</status>
\t\t</fabric>
\t\t<applications_clocks>
\t\t\t<graphics_clock>1980 MHz</graphics_clock>
\t\t</applications_clocks>
\t\t<default_applications_clocks>
\t\t\t<graphics_clock>1980 MHz</graphics_clock>
\t\t</default_applications_clocks>
"""
_LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max open files            1048576              1048576              files     \n"
    "Max locked memory         unlimited            unlimited            bytes     \n"
)
_DF = "Filesystem     1024-blocks  Used Available Capacity Mounted on\ntmpfs 131072000 0 131072000 0% /dev/shm\n"
_LIBRARIES = tuple(
    FoundLibrary(name=name, path=path, version=version, found_by="loader", unresolved=())
    for name, path, version in (
        ("libnccl", "/usr/lib/x86_64-linux-gnu/libnccl.so.2", "2.27.3"),
        ("libnccl-net", "/opt/plugin/lib/libnccl-net.so", None),
        ("libibverbs", "/usr/lib/x86_64-linux-gnu/libibverbs.so.1", None),
    )
)


def healthy(name: str) -> Snapshot:
    """Return a machine of tests.probe.machines with everything that the checks look at, and nothing wrong."""
    found = snapshot_of(MACHINES[name])
    gpus = [
        file.path for file in found.files if file.path.endswith("/class") and (file.text or "").startswith("0x0302")
    ]
    bridges = [file.path for file in found.files if file.path.endswith("/class") and "0x0604" in (file.text or "")]
    ports = [file.path.removesuffix("/state") for file in found.files if file.path.endswith("/ports/1/state")]
    cpus = next(file.text for file in found.files if file.path == "/sys/devices/system/cpu/online")
    files = {
        "/proc/sys/kernel/numa_balancing": "0\n",
        "/proc/uptime": "276480.12 1000.0\n",
        "/proc/self/limits": _LIMITS,
        "/proc/self/status": f"Cpus_allowed:\tff\nCpus_allowed_list:\t{cpus}",
        "/proc/modules": "nvidia 1 1\nnvidia_peermem 1 0\nmlx5_core 1 1\n",
        "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5\n",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        "/sys/kernel/iommu_groups/7/type": "identity\n",
    }
    files |= {path.removesuffix("class") + "config": "0000\n" for path in bridges}
    files |= {f"{port}/counters/symbol_error": "3\n" for port in ports}
    files |= {f"{port}/counters/link_downed": "0\n" for port in ports}
    files |= {f"{port}/phys_state": "5: LinkUp\n" for port in ports}
    made = with_files(found, files)
    groups = tuple(
        CapturedLink(path=path.removesuffix("class") + "iommu_group", target="../../../kernel/iommu_groups/7")
        for path in gpus
    )
    made = msgspec.structs.replace(made, links=made.links + groups, libraries=_LIBRARIES)
    made = with_files(made, {"/opt/microsoft/ndv5-topo.xml": "<system version='1'/>\n"})
    made = with_answer(made, "df-shm", _DF)
    made = with_answer(made, "timedatectl", "yes\n")
    made = with_answer(made, "nvidia-smi-p2p", peers(len(gpus)))
    made = with_answer(made, "ibv_devinfo", _devinfo(made))
    return in_smi(made, "\t\t<processes>", _HEALTH + "\t\t<processes>", most=-1) if gpus else made


def with_files(snapshot: Snapshot, files: dict[str, str]) -> Snapshot:
    """Return a snapshot with files added, or with other text in them."""
    kept = tuple(file for file in snapshot.files if file.path not in files)
    new = tuple(CapturedFile(path=path, text=text) for path, text in files.items())
    return msgspec.structs.replace(snapshot, files=kept + new)


def without_files(snapshot: Snapshot, ending: str) -> Snapshot:
    """Return a snapshot without the files whose path ends so."""
    kept = tuple(file for file in snapshot.files if not file.path.endswith(ending))
    return msgspec.structs.replace(snapshot, files=kept)


def with_answer(snapshot: Snapshot, name: str, output: str) -> Snapshot:
    """Return a snapshot in which a command has said something else."""
    kept = tuple(answer for answer in snapshot.answers if answer.name != name)
    new = Answer(name=name, argv=(name,), ended="ok", exit_code=0, output=output)
    return msgspec.structs.replace(snapshot, answers=(*kept, new))


def in_smi(snapshot: Snapshot, old: str, new: str, most: int = 1) -> Snapshot:
    """Return a snapshot with something else in the document of nvidia-smi, at the first GPUs that have it."""
    text = next(answer.output for answer in snapshot.answers if answer.name == "nvidia-smi-xml")
    assert old in text
    return with_answer(snapshot, "nvidia-smi-xml", text.replace(old, new, most))


def peers(count: int, denied: str = "OK") -> str:
    """Return what `nvidia-smi topo -p2p r` prints; the first pair is `denied`."""
    names = [f"GPU{place}" for place in range(count)]
    lines = [" \t" + "\t".join(f"\x1b[4m{name}\x1b[0m" for name in names)]
    for row in range(count):
        cells = ["X" if row == column else denied if {row, column} == {0, 1} else "OK" for column in range(count)]
        lines.append(f" {names[row]}\t" + "\t".join(cells))
    return "\n".join([*lines, "", "Legend:", "", "  X    = Self", "  OK   = Status Ok", ""])


def examined(snapshot: Snapshot, folder, platform: str | None = None) -> HostDiagnosis:
    """Return the diagnosis of a snapshot, by way of its file."""
    path = folder / "host.tar"
    write_snapshot(path, snapshot)
    return examine_captured(path, platform=platform)


def codes(diagnosis: HostDiagnosis) -> list[str]:
    """Return the codes of what was found, in order."""
    return [found.code for check in diagnosis.checks for found in check.findings]


def check(diagnosis: HostDiagnosis, name: str) -> HostCheck:
    """Return one check by name."""
    return next(each for each in diagnosis.checks if each.name == name)


def _devinfo(snapshot: Snapshot) -> str:
    """Return what `ibv_devinfo -v` prints of the devices, as far as their MTU goes."""
    names = sorted(
        {link.path.split("/")[4] for link in snapshot.links if link.path.startswith("/sys/class/infiniband/")}
    )
    return "".join(f"hca_id:\t{name}\n\t\tport:\t1\n\t\t\tactive_mtu:\t\t4096 (5)\n\n" for name in names)
