#!/usr/bin/env python3
"""List the variables that an NCCL library reads, by the strings in it.

    scripts/nccl_names.py libnccl.so.2                            print the names, one a line
    scripts/nccl_names.py cu13==2.32.3 cu12==2.18.3 ...           the same of wheels, which pip downloads
    scripts/nccl_names.py --table cu12==2.18.3 cu12==2.19.3 ...   print tests/env/nccl_names.txt anew

How a variable is told from other text. The name of a variable is passed to getenv, so it stands in the read-only data
(.rodata) as a text of its own, with a zero byte on either side; names of enumerators and macros stand in the debugging
sections only, which are not looked at. A linker may let a text that ends in a name share its bytes ("... set
NCCL_NTHREADS"), so what ends a text after a space or a sign counts too, but for NOT_READ: names that messages end in
and nothing reads.
"""

import mmap
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Macros and constants of nccl.h and of the source, in messages: `... use NCCL_CONFIG_INITIALIZER`.
NOT_READ = re.compile(
    r"NCCL_\w+_INITIALIZER|NCCL_GIN_CONNECTION_\w+|NCCL_IB_MAX_DEVS_PER_NIC|NCCL_IB_RECV_WR_ID_DUMMY"
    r"|NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_MSG_ID"
)
_WHOLE = re.compile(rb"(?<=\0)NCCL_[A-Z0-9_]+(?=\0)")
_END = re.compile(rb"(?<![A-Za-z0-9_])NCCL_[A-Z0-9_]+(?=\0)")
# Where the name of another text ends in that of a variable: "..._NCCL_SOCKET_MAGIC".
_TAIL = re.compile(rb"(?=(NCCL_[A-Z0-9_]+)\0)")
LIBRARY = "nvidia/nccl/lib/libnccl.so.2"


def read_only_data(library: Path) -> bytes:
    """Return the .rodata sections of a 64-bit little-endian ELF file, one after the other."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
        if image[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"error: {library} is no 64-bit ELF library")
        (table,) = struct.unpack_from("<Q", image, 40)
        size, count, names_at = struct.unpack_from("<HHH", image, 58)
        headers = [struct.unpack_from("<IIQQQQ", image, table + number * size) for number in range(count)]
        names = headers[names_at][4]
        found = []
        for name, _kind, _flags, _address, offset, length in headers:
            if image[names + name : names + name + 7] == b".rodata":
                found.append(image[offset : offset + length])
        return b"\0".join([b"", *found, b""])


def read_names(data: bytes) -> set[str]:
    """Return the names of the variables that a library with these texts reads."""
    ends = {name for name in map(bytes.decode, _END.findall(data)) if NOT_READ.fullmatch(name) is None}
    return {*map(bytes.decode, _WHOLE.findall(data)), *ends}


def possible_names(data: bytes) -> set[str]:
    """Return every name that getenv could be called with: also those that share the end of a longer word."""
    return {name.decode() for name in _TAIL.findall(data)}


def wheel_data(requirement: str) -> tuple[str, bytes]:
    """Return version and texts of the library in a wheel: `cu13==2.32.3`, or `cu13` for the newest."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--dest", folder, f"nvidia-nccl-{requirement}"], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            library = Path(archive.extract(LIBRARY, folder))
        return wheel.name.split("-")[1], read_only_data(library)


def table(wheels: list[str]) -> str:
    """Return a line for each variable: its name, the first and the last of the versions whose library reads it."""
    found = dict(wheel_data(requirement) for requirement in wheels)
    every = set().union(*map(read_names, found.values()))
    # What one library shares with a longer word is a variable where another has it by itself.
    held = {version: possible_names(data) & every for version, data in found.items()}
    versions = sorted(held, key=lambda version: [int(part) for part in version.split(".")])
    lines = [
        "# Made by scripts/nccl_names.py --table: name, first and last wheel that reads it, of:",
        f"# {' '.join(versions)}",
    ]
    for name in sorted(every):
        readers = [version for version in versions if name in held[version]]
        between = versions[versions.index(readers[0]) : versions.index(readers[-1]) + 1]
        if readers != between:
            raise SystemExit(f"error: {name} comes and goes: {' '.join(readers)}")
        lines.append(f"{name} {readers[0]} {readers[-1]}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    """Print what the command line asks for."""
    if arguments[:1] == ["--table"]:
        print(table(arguments[1:]), end="")
    elif arguments:
        for argument in arguments:
            data = read_only_data(Path(argument)) if Path(argument).exists() else wheel_data(argument)[1]
            print(*sorted(read_names(data)), sep="\n")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
