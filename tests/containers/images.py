"""Images for real containers, made of folders of this machine: an empty root, and this machine's programs bound in."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import busbw
from busbw.model.request import Bind, Container

from .docker_daemon import docker_daemon

# Mount points and what programs look for before they start.
_FOLDERS = ("dev", "etc", "mnt", "proc", "run", "sys", "tmp", "usr", "var")
_LINKS = ("bin", "lib", "lib64", "sbin")
_FILES = ("group", "hosts", "passwd", "resolv.conf")
# Where a machine forbids raising limits, Podman's own defaults cannot be set.
_LOW_LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
TAG = "localhost/busbw-test:1"


@dataclass(frozen=True)
class Image:
    """An image in the form of one runtime, with the machine's programs to be bound into it."""

    container: Container
    folder: Path


def require(*programs: str) -> None:
    """Skip the test where a program or root is missing; in CI that is a failure."""
    missing = [each for each in programs if shutil.which(each) is None]
    if not missing and os.geteuid() == 0:
        return
    reason = (
        f"needs {', '.join(missing)} (Debian: podman runc, charliecloud-runtime, docker.io)"
        if missing
        else "needs root"
    )
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def host_binds() -> tuple[Bind, ...]:
    """Return the folders that this very Python, its MPI and busbw are in."""
    folders = (Path("/usr"), Path(sys.prefix), Path(sys.base_prefix), Path(busbw.__file__).parent)
    outer = [each for each in folders if not any(each != other and each.is_relative_to(other) for other in folders)]
    return tuple(Bind(source=str(each), why="Python and MPI") for each in dict.fromkeys(outer))


def root_folder(folder: Path) -> Path:
    """Make the root of an image, with a mount point for each folder that will be bound."""
    for name in _FOLDERS:
        (folder / name).mkdir(parents=True)
    for name in _LINKS:
        (folder / name).symlink_to(f"usr/{name}")
    for name in _FILES:
        (folder / "etc" / name).touch()
    shutil.copy("/etc/ld.so.cache", folder / "etc")
    for bind in host_binds():
        (folder / bind.source.lstrip("/")).mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def charliecloud(folder: Path) -> Iterator[Image]:
    """Give an image that is a folder. The host's /tmp is bound by the runtime itself."""
    require("ch-run")
    root = root_folder(folder / "root")
    binds = tuple(each for each in host_binds() if not Path(each.source).is_relative_to("/tmp"))
    yield Image(Container(runtime="charliecloud", program="ch-run", image=str(root), binds=binds), folder)


@contextlib.contextmanager
def podman(folder: Path) -> Iterator[Image]:
    """Give an image in a storage of its own, which needs no registry, no daemon and no cgroups of a service."""
    require("podman", "runc")
    storage = (
        f"--root={folder}/storage",
        f"--runroot={folder}/run",
        "--storage-driver=vfs",
        "--events-backend=none",
        "--cgroup-manager=cgroupfs",
        "--runtime=runc",
    )
    program = program_with(folder, "podman", *storage)
    import_image(program, folder, "-q")
    container = Container(runtime="podman", program=str(program), image=TAG, binds=host_binds(), options=_LOW_LIMITS)
    yield Image(container, folder)


@contextlib.contextmanager
def docker(folder: Path) -> Iterator[Image]:
    """Give an image in the storage of a daemon that ends with it."""
    require("dockerd", "docker", "runc")
    with docker_daemon(folder) as address:
        program = program_with(folder, "docker", f"--host={address}")
        import_image(program, folder)
        yield Image(Container(runtime="docker", program=str(program), image=TAG, binds=host_binds()), folder)


def program_with(folder: Path, name: str, *words: str) -> Path:
    """Make a program in `folder` that starts the one of this name on PATH with `words` first."""
    program = folder / name
    program.write_text(f'#!/bin/sh\nexec {shutil.which(name)} {" ".join(words)} "$@"\n')
    program.chmod(0o755)
    return program


def import_image(program: Path, folder: Path, *words: str) -> None:
    """Make the image of the root of a folder, `root`, which is made first."""
    root = root_folder(folder / "root")
    with tarfile.open(folder / "root.tar", "w") as archive:
        archive.add(root, arcname=".")
    made = subprocess.run(
        [program, "import", *words, folder / "root.tar", TAG], capture_output=True, text=True, timeout=60, check=False
    )
    assert made.returncode == 0, made.stderr


MAKERS = {"charliecloud": charliecloud, "podman": podman, "docker": docker}

# What a rank saw, as one line of JSON: bytes as Latin-1, so that every one of them can be told.
TELL = """
import json, os, sys
found = {name.decode("latin-1"): value.decode("latin-1") for name, value in os.environb.items()}
print("\\nSEEN " + json.dumps({"env": found, "argv": sys.argv[1:], "root": os.listdir("/")}), flush=True)
"""


def seen(output: str) -> list[dict[str, object]]:
    """Return what each rank told."""
    return [json.loads(line.removeprefix("SEEN ")) for line in output.splitlines() if line.startswith("SEEN ")]


def told(values: dict[str, str]) -> dict[str, str]:
    """Return values as `seen` has them."""
    return {name: os.fsencode(value).decode("latin-1") for name, value in values.items()}
