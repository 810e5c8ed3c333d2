"""The GPUs of a host: as their driver describes them, else as they stand on the PCI bus."""

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import structs

from busbw.base.errors import InputError
from busbw.machine.read import nvidia_smi
from busbw.machine.read.index import SnapshotIndex, bus_id, fields, first_number
from busbw.machine.read.nvidia_smi import NO_VALUES, ROOT, Fields, gpu_fields
from busbw.model.host import HostGpu, HostNvLink, PciFunction

_LINE = re.compile(r"GPU\[(?P<gpu>\d{1,4})\]\s*:\s*(?P<name>[A-Za-z ]{1,40}?)\s*:\s*(?P<value>.{1,200})")
_HEADING = re.compile(r"=+ (?P<title>[A-Za-z ]{1,60}) =+")
_LINK_TYPES = "Link Type between two GPUs"
_GPU = re.compile(r"GPU(\d{1,4})")
_XGMI = "XGMI"


def fields_by_gpu(text: str) -> dict[int, dict[str, str]]:
    """Return what lines as `GPU[0] : Card Series: AMD Instinct MI300X` say, by number and name in small letters."""
    said: dict[int, dict[str, str]] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None:
            value = match["value"].strip()
            if value.lower() not in NO_VALUES:
                said.setdefault(int(match["gpu"]), {}).setdefault(match["name"].lower(), value)
    return said


def xgmi_peers(text: str) -> dict[int, tuple[int, ...]]:
    """Return which GPUs each GPU reaches over XGMI, by number, as `--showtopo` says; not over how many links."""
    peers: dict[int, tuple[int, ...]] = {}
    columns: list[int] = []
    is_inside = False
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line.strip())
        if heading is not None:
            is_inside, columns = heading["title"] == _LINK_TYPES, []
            continue
        words = line.split()
        numbers = [int(match[1]) for word in words if (match := _GPU.fullmatch(word)) is not None]
        if is_inside and numbers and len(numbers) == len(words):
            columns = numbers
        elif is_inside and len(numbers) == 1 and len(words) == len(columns) + 1:
            row = zip(columns, words[1:], strict=True)
            peers[numbers[0]] = tuple(column for column, kind in row if kind == _XGMI and column != numbers[0])
    return peers


_NVIDIA = "0x10de"
_AMD = "0x1002"
_PROC = "/proc/driver/nvidia/gpus"
# Compute GPUs: 3D controllers, and processing accelerators as AMD's newer ones are; a screen's adapter is none of them.
_GPU_CLASSES = ("0x0302", "0x1200")
_DISPLAY_CLASSES = ("0x0300", "0x0380")
_SWITCH_CLASS = "0x0680"
# Eight of these are joined each to each other by one link (RCCL's own models of such machines, topo_8p_942vm.xml and
# topo_8p_950.xml).
_MESH_PROCESSORS = ("gfx942", "gfx950")
_MESH_GPUS = 8
_PROCESSOR = re.compile(r"gfx[0-9a-f]{3,4}", re.ASCII)


def gpus(index: SnapshotIndex, pci: Mapping[str, PciFunction]) -> tuple[tuple[HostGpu, ...], tuple[str, ...]]:
    """Return the GPUs by the driver's number, and in words what does not fit together or could not be read."""
    said, notes = _from_smi(index)
    if not said:
        said = _from_kernel(index, pci) or _from_rocm(index, pci)
    links = nvidia_smi.links(index.said("nvidia-smi-nvlink"), index.said("nvidia-smi-nvlink-remote"))
    chip = nvidia_smi.links(index.said("nvidia-smi-c2c"), "")
    known = {gpu.bus_id for gpu in said}
    found = tuple(
        _complete(gpu, pci, gpu.nvlinks or _with_kinds(links.get(gpu.index, ()), known, pci), chip.get(gpu.index, ()))
        for gpu in said
    )
    return found, (*notes, *_contradictions(known, pci))


def is_gpu(function: PciFunction) -> bool:
    """Whether a PCI function is a GPU that computes."""
    return function.vendor in (_NVIDIA, _AMD) and function.device_class.startswith(_GPU_CLASSES + _DISPLAY_CLASSES)


def _from_smi(index: SnapshotIndex) -> tuple[tuple[HostGpu, ...], tuple[str, ...]]:
    text = index.said("nvidia-smi-xml")
    # What a program that failed says instead of a document is told with its failure.
    if not text.strip() or (ROOT not in text and not index.output("nvidia-smi-xml")):
        return (), ()
    try:
        head, listed = gpu_fields(text)
    except InputError as error:
        return (), (f"nvidia-smi -q -x cannot be read: {error.cause}",)
    queried = nvidia_smi.capabilities(index.said("nvidia-smi-query"))
    found = []
    for place, (name, fields_) in enumerate(listed):
        address = bus_id(fields_.get(("pci", "pci_bus_id"), name))
        if address is not None:
            asked, sm = queried.get(address, (None, None))
            gpu = _from_fields(
                fields_, address, asked if asked is not None else place, sm, head.get(("driver_version",))
            )
            found.append(gpu)
    lost = tuple(
        f"the driver says no name of GPU {gpu.bus_id}: it may be lost (Xid 79)" for gpu in found if gpu.name is None
    )
    return tuple(sorted(found, key=lambda gpu: gpu.index)), lost


def _from_fields(said: Fields, address: str, place: int, sm: int | None, driver: str | None) -> HostGpu:
    link = ("pci", "pci_gpu_link_info")
    mig = said.get(("mig_mode", "current_mig"))
    memory = said.get(("fb_memory_usage", "total"), "")
    mebibytes = first_number(memory) if memory.endswith("MiB") else None
    generations = [
        first_number(said.get((*link, "pcie_gen", name))) for name in ("max_link_gen", "max_device_link_gen")
    ]
    return HostGpu(
        index=place,
        bus_id=address,
        name=said.get(("product_name",)),
        uuid=said.get(("uuid",)),
        sm=sm,
        memory_bytes=mebibytes * 2**20 if mebibytes is not None and mebibytes < 2**40 else None,
        driver=driver,
        link_generation=first_number(said.get((*link, "pcie_gen", "current_link_gen"))),
        max_link_generation=next((each for each in generations if each is not None), None),
        link_width=first_number(said.get((*link, "link_widths", "current_link_width"))),
        max_link_width=first_number(said.get((*link, "link_widths", "max_link_width"))),
        mig={"Enabled": True, "Disabled": False}.get(mig or ""),
    )


def _from_kernel(index: SnapshotIndex, pci: Mapping[str, PciFunction]) -> tuple[HostGpu, ...]:
    """Return NVIDIA's GPUs as the driver shows them without its tools, else as they stand on the bus."""
    version = re.search(
        r"Kernel Module.{0,60}?\s(\d{3}\.\d+(?:\.\d+)?)\s", index.text("/proc/driver/nvidia/version") or ""
    )
    found = []
    for name in index.names(_PROC):
        said = fields(index.text(f"{_PROC}/{name}/information") or "")
        address = bus_id(said.get("Bus Location", name))
        if address is not None:
            found.append((address, said.get("Model"), said.get("GPU UUID")))
    if not found:
        found = [(one.bus_id, None, None) for one in pci.values() if one.vendor == _NVIDIA and is_gpu(one)]
    return tuple(
        HostGpu(index=place, bus_id=address, name=model, uuid=uuid, driver=version[1] if version is not None else None)
        for place, (address, model, uuid) in enumerate(sorted(found, key=lambda each: _order(each[0])))
    )


def _from_rocm(index: SnapshotIndex, pci: Mapping[str, PciFunction]) -> tuple[HostGpu, ...]:
    """Return AMD's GPUs, by rocm-smi's number where it says one."""
    said = fields_by_gpu(index.said("rocm-smi-product"))
    driver = index.text("/sys/module/amdgpu/version")
    found = tuple(
        HostGpu(
            index=place,
            bus_id=address,
            name=each.get("card series"),
            gcn=_processor(each.get("gfx version")),
            driver=driver,
        )
        for place, each in sorted(said.items())
        if (address := bus_id(each.get("pci bus", ""))) is not None
    )
    if found:
        return _with_xgmi(found, xgmi_peers(index.said("rocm-smi-topo")))
    on_bus = (one.bus_id for one in pci.values() if one.vendor == _AMD and is_gpu(one))
    return tuple(
        HostGpu(index=place, bus_id=address, driver=driver) for place, address in enumerate(sorted(on_bus, key=_order))
    )


def _processor(text: str | None) -> str | None:
    return text if text is not None and _PROCESSOR.fullmatch(text) is not None else None


def _with_xgmi(gpus_: tuple[HostGpu, ...], peers: Mapping[int, tuple[int, ...]]) -> tuple[HostGpu, ...]:
    """Return GPUs with a link to each other one, where that is how such GPUs are joined and the driver shows it.

    Of other kinds rocm-smi does not say which pairs are joined directly, or by how many links (ROCm/rocm-systems issue
    5763).
    """
    addresses = {gpu.index: gpu.bus_id for gpu in gpus_}
    is_mesh = len(gpus_) == _MESH_GPUS and all(
        (gpu.gcn or "").startswith(_MESH_PROCESSORS) and {*peers.get(gpu.index, ()), gpu.index} == set(addresses)
        for gpu in gpus_
    )
    if not is_mesh:
        return gpus_
    return tuple(
        structs.replace(
            gpu,
            nvlinks=tuple(
                HostNvLink(link=place, target=addresses[peer], target_kind="gpu")
                for place, peer in enumerate(sorted(peers[gpu.index]))
            ),
        )
        for gpu in gpus_
    )


def _complete(
    gpu: HostGpu, pci: Mapping[str, PciFunction], nvlinks: tuple[HostNvLink, ...], chip: tuple[HostNvLink, ...]
) -> HostGpu:
    """Return a GPU with its links, and from the PCI bus what its driver does not say."""
    function = pci.get(gpu.bus_id)
    width = gpu.link_width if gpu.link_width is not None else function.link_width if function is not None else None
    most = (
        gpu.max_link_width
        if gpu.max_link_width is not None
        else function.max_link_width
        if function is not None
        else None
    )
    return structs.replace(
        gpu,
        link_width=width or None,
        max_link_width=most or None,
        numa=function.numa if function is not None else None,
        nvlinks=nvlinks,
        chip_links=chip,
    )


def _with_kinds(
    links: tuple[HostNvLink, ...], gpus_: set[str], pci: Mapping[str, PciFunction]
) -> tuple[HostNvLink, ...]:
    return tuple(
        HostNvLink(
            link=link.link,
            rate_Bps=link.rate_Bps,
            active=link.active,
            target=link.target,
            target_kind="gpu" if link.target in gpus_ else _kind(pci.get(link.target or "")),
        )
        for link in links
    )


def _kind(function: PciFunction | None) -> Literal["switch"] | None:
    return "switch" if function is not None and function.device_class.startswith(_SWITCH_CLASS) else None


def _contradictions(known: set[str], pci: Mapping[str, PciFunction]) -> tuple[str, ...]:
    on_bus = {one.bus_id for one in pci.values() if is_gpu(one) and one.device_class.startswith(_GPU_CLASSES)}
    lost = sorted(on_bus - known, key=_order)
    unseen = sorted(known - set(pci), key=_order) if pci else []
    return tuple(
        [
            f"on the PCI bus, and the driver does not show it (lost, or not given to us): GPU {address}"
            for address in lost
        ]
        + [f"shown by the driver, and not on the PCI bus: GPU {address}" for address in unseen]
    )


def _order(address: str) -> tuple[int, str]:
    domain, _colon, rest = address.partition(":")
    return int(domain, 16), rest
