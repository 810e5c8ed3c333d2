"""Valid inputs for the readers of built stacks, made by hand: a library, an image, the loader's cache, a package."""

import struct
import zlib

from tests.recipes.building import container, entry

SPACK_SPEC = (
    b'{"spec": {"nodes": [{"name": "nccl", "version": "2.27.7-1", "hash": "abcdefghij", "compiler": {"name": "gcc", '
    b'"version": "12.3.0"}, "parameters": {"cuda_arch": ["90"]}}]}}'
)
IMAGE_ENVIRONMENT = (
    b"export NCCL_HOME=/opt/nccl\nexport LD_LIBRARY_PATH=$NCCL_HOME/lib:${LD_LIBRARY_PATH:-/usr/local/lib}\n"
)


class _Strings:
    """A table of strings, each with its place."""

    def __init__(self) -> None:
        self.raw = b"\0"

    def at(self, text: str) -> int:
        place = len(self.raw)
        self.raw += text.encode() + b"\0"
        return place


def elf_file(*, needs: tuple[str, ...] = ("libc.so.6",), rpath: str = "/opt/lib") -> bytes:
    """Return a library of 64 bits: a plug-in with versions of symbols, device code and texts."""
    strings, names = _Strings(), _Strings()
    entries = [(1, strings.at(name)) for name in needs]
    entries += [(14, strings.at("libnccl-net.so")), (29, strings.at(rpath))]
    symbols = bytes(24) + struct.pack("<IBBHQQ", strings.at("ncclNetPlugin_v6"), 0x11, 0, 1, 0, 8)
    wanted = struct.pack("<HHIII", 1, 1, strings.at(needs[0]), 16, 0)
    wanted += struct.pack("<IHHII", 0, 0, 2, strings.at("GLIBC_2.17"), 0)
    offered = struct.pack("<HHHHIII", 1, 0, 2, 1, 0, 20, 0) + struct.pack("<II", strings.at("NET_1.0"), 0)
    text = b"\0NET/OFI Initializing aws-ofi-nccl 1.18.0\0"
    parts = {
        ".dynstr": (3, strings.raw, 0), ".dynsym": (11, symbols, 1), ".gnu.version_r": (0x6FFFFFFE, wanted, 1),
        ".gnu.version_d": (0x6FFFFFFD, offered, 1), ".rodata": (1, text, 0),
        ".nv_fatbin": (1, container(entry(90), entry(90, kind=1)), 0),
    }  # fmt: skip
    places, body, start = {}, b"", 64 + 2 * 56
    for name, (_kind, raw, _link) in parts.items():
        body += bytes(-(start + len(body)) % 8)
        places[name] = start + len(body)
        body += raw
    entries += [(5, places[".dynstr"]), (0x6FFFFFFE, places[".gnu.version_r"]), (0x6FFFFFFC, places[".gnu.version_d"])]
    body += bytes(-(start + len(body)) % 8)
    dynamic_at = start + len(body)
    dynamic = b"".join(struct.pack("<qQ", *each) for each in (*entries, (0, 0)))
    body += dynamic
    rows = [struct.pack("<2I4Q2I2Q", *(0,) * 10)]
    for name, (kind, raw, link) in parts.items():
        rows.append(
            struct.pack("<2I4Q2I2Q", names.at(name), kind, 0, places[name], places[name], len(raw), link, 0, 8, 0)
        )
    names_at = start + len(body)
    last = names.at(".shstrtab")
    rows.append(struct.pack("<2I4Q2I2Q", last, 3, 0, 0, names_at, len(names.raw), 0, 0, 1, 0))
    body += names.raw
    sections_at = start + len(body)
    whole = sections_at + len(rows) * 64
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 2, 64, len(rows), len(rows) - 1)
    load = struct.pack("<2I6Q", 1, 5, 0, 0, 0, whole, whole, 4096)
    dynamic_segment = struct.pack("<2I6Q", 2, 6, dynamic_at, dynamic_at, 0, len(dynamic), len(dynamic), 8)
    return head + load + dynamic_segment + body + b"".join(rows)


def _meta(raw: bytes) -> bytes:
    packed = zlib.compress(raw)
    return struct.pack("<H", len(packed)) + packed


def squash_image(*, packer: int = 1) -> bytes:
    """Return a SquashFS, packed with gzip: a file of two blocks, one packed with others, a link, in a folder `lib`."""
    block = 4096
    content = bytes(range(256)) * 17
    packed = zlib.compress(content[:block])
    data_at = 96
    fragment_at = data_at + len(packed)
    rest = content[block:]
    inodes = struct.pack("<HHHHII", 2, 0o644, 0, 0, 0, 1) + struct.pack("<IIII", data_at, 0, 0, len(content))
    inodes += struct.pack("<I", len(packed))
    link_at = len(inodes)
    inodes += struct.pack("<HHHHII", 3, 0o777, 0, 0, 0, 2) + struct.pack("<II", 1, 8) + b"libx.so\0"[:8]
    folder_at = len(inodes)
    first = struct.pack("<III", 1, 0, 1)
    first += struct.pack("<HhHH", 0, 0, 2, 6) + b"libx.so" + struct.pack("<HhHH", link_at, 1, 3, 8) + b"libx.so.1"
    inodes += struct.pack("<HHHHII", 1, 0o755, 0, 0, 0, 3) + struct.pack("<IIHHI", 0, 2, len(first) + 3, 0, 4)
    root_at = len(inodes)
    second = struct.pack("<III", 0, 0, 3) + struct.pack("<HhHH", folder_at, 0, 1, 2) + b"lib"
    inodes += struct.pack("<HHHHII", 1, 0o755, 0, 0, 0, 4)
    inodes += struct.pack("<IIHHI", 0, 3, len(second) + 3, len(first), 5)
    inodes_at = fragment_at + len(rest)
    inode_table = _meta(inodes)
    folders_at = inodes_at + len(inode_table)
    folder_table = _meta(first + second)
    fragments_at = folders_at + len(folder_table)
    fragment = _meta(struct.pack("<QII", fragment_at, len(rest) | 1 << 24, 0))
    index_at = fragments_at + len(fragment)
    size = index_at + 8
    head = struct.pack(
        "<4sIIIIHHHHHHQQQQQQQQ", b"hsqs", 4, 0, block, 1, packer, 12, 0, 1, 4, 0, root_at, size, 2**64 - 1, 2**64 - 1,
        inodes_at, folders_at, index_at, 2**64 - 1,
    )  # fmt: skip
    return head + packed + rest + inode_table + folder_table + fragment + struct.pack("<Q", fragments_at)


def sif_image(system: bytes) -> bytes:
    """Return an image of Apptainer around a file system."""
    start = 1024
    extra = struct.pack("<ii3s", 1, 2, b"02\0").ljust(384, b"\0")
    size = len(system)
    row = struct.pack("<i?IIIqqqqqqq128s384s", 0x4004, True, 1, 1, 0, start, size, size, 0, 0, 0, 0, b"x", extra)
    head = b"#!/usr/bin/env run-singularity\n\0" + b"SIF_MAGIC\0" + b"01\0" + b"02\0" + bytes(16)
    head += struct.pack("<qqqqqqqq", 0, 0, 47, 48, 128, 585, start, size)
    return (head.ljust(128, b"\0") + row).ljust(start, b"\0") + system


def loader_cache() -> bytes:
    """Return what ldconfig writes, with two libraries."""
    strings, rows = b"", []
    base = 48 + 2 * 24
    for name, path in ((b"libc.so.6", b"/lib64/libc.so.6"), (b"libnccl.so.2", b"/opt/nccl/lib/libnccl.so.2")):
        name_at = base + len(strings)
        strings += name + b"\0"
        rows.append(struct.pack("<iIIIQ", 0x303, name_at, base + len(strings), 0, 0))
        strings += path + b"\0"
    head = struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", 2, len(strings), 2, 0)
    return head + b"".join(rows) + strings
