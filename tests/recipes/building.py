"""Small libraries, plug-ins and programs, made with gcc as a stack that somebody built."""

import shutil
import struct
import subprocess
from pathlib import Path

import msgspec
import pytest

from busbw.model.host import BuiltStack

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="no gcc here: stacks to adopt cannot be made")


def entry(sm: int, *, kind: int = 2, flags: int = 0x11, payload: bytes = b"\0" * 40) -> bytes:
    """Return one entry of a container: machine code (2) or PTX (1), as nvcc 13.0 writes its header."""
    return struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(payload), 0, 0, 8, 1, sm, 0, 0, flags, 0, 0) + payload


def container(*entries: bytes) -> bytes:
    """Return a container of device code."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def build(
    path: Path,
    *,
    defines: tuple[str, ...] = (),
    texts: tuple[str, ...] = (),
    needs: tuple[Path, ...] = (),
    options: tuple[str, ...] = (),
    code: bytes = b"",
    soname: str | None = None,
    program: bool = False,
) -> Path:
    """Make a shared library, or a program, that exports names, holds texts and device code, and needs others."""
    assert GCC is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_name(path.name + ".c")
    lines = [f"int {name} = 1;" for name in defines]
    lines += [f'const char text_{number}[] = "\\0" "{text}";' for number, text in enumerate(texts)]
    if code:
        blob = path.with_name(path.name + ".bin")
        blob.write_bytes(code)
        lines.append(f'__asm__(".section .nv_fatbin,\\"a\\"\\n.balign 8\\n.incbin \\"{blob}\\"\\n.previous");')
    if program:
        lines.append("int main(void) { return 0; }")
    source.write_text("\n".join(lines) + "\n")
    kind = [] if program else ["-shared", "-fPIC", *([f"-Wl,-soname,{soname}"] if soname else [])]
    subprocess.run(
        [GCC, *kind, "-nostartfiles" if not program else "-O0", "-o", path, source, "-Wl,--no-as-needed",
         "-Wl,--allow-shlib-undefined", *needs, *options],
        check=True, timeout=60, capture_output=True,
    )  # fmt: skip
    return path


def nccl(folder: Path, *, version: str = "2.27.7", code: bytes = b"", asks: range = range(6, 11)) -> Path:
    """Return a stand-in for NCCL as its file looks: what it says, what it asks plug-ins for."""
    texts = (f"NCCL version {version}+cuda12.9", *(f"ncclNetPlugin_v{number}" for number in asks))
    made = build(
        folder / f"libnccl.so.{version}", defines=("ncclCommInitRank",), texts=texts, code=code, soname="libnccl.so.2"
    )
    link(made, "libnccl.so.2")
    return made


def libfabric(
    folder: Path,
    *,
    provider: str | None = "cxi",
    version: str = "1.22.0",
    texts: tuple[str, ...] | None = None,
    **more: object,
) -> Path:
    """Return a stand-in for libfabric, with the provider of a fabric."""
    needs = ()
    if provider is not None:
        needs = (build(folder / f"lib{provider}.so.1", defines=(f"{provider}_open",), soname=f"lib{provider}.so.1"),)
    return build(
        folder / "libfabric.so.1", defines=("fi_getinfo",), texts=(version, "cudaMemcpy") if texts is None else texts,
        needs=needs, soname="libfabric.so.1", **more,  # type: ignore[arg-type] # options of build
    )  # fmt: skip


def plugin(
    folder: Path,
    fabric: Path,
    *,
    has: range = range(2, 7),
    name: str = "libnccl-net.so",
    version: str = "1.7.4-aws",
    opens: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
) -> Path:
    """Return a stand-in for aws-ofi-nccl."""
    return build(
        folder / name,
        defines=tuple(f"ncclNetPlugin_v{number}" for number in has),
        texts=(f"NET/OFI Initializing aws-ofi-nccl {version}", *opens),
        needs=(fabric,),
        options=options,
    )


def moved(stack: BuiltStack, here: Path, there: str) -> BuiltStack:
    """Return a stack as it would be read if what lies below one folder lay below another."""
    return msgspec.json.decode(msgspec.json.encode(stack).replace(str(here).encode(), there.encode()), type=BuiltStack)


def link(made: Path, name: str) -> None:
    """Make a link beside a library, as an installation does."""
    (made.parent / name).unlink(missing_ok=True)
    (made.parent / name).symlink_to(made.name)
