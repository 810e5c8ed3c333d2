"""Images that are still in layers, or packed as an archive: what they are, and which command unpacks them."""

import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from busbw.base.errors import InputError

LayeredKind = Literal["oci", "dir", "oci-archive", "docker-archive", "files", "packed"]

# A first header of tar is 512 bytes; what gzip needs to give so many is less than this.
ARCHIVE_HEAD_BYTES = 64 * 2**10
_TAR_MARK, _TAR_MARK_AT, _TAR_NAME_BYTES = b"ustar", 257, 100
_GZIP = b"\x1f\x8b"
# zstd, xz and bzip2: what is inside is not looked at.
_OTHER_PACKERS = (b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh")
# What `docker save` and `podman save` write first (moby/docker-image-spec; containers/image, docker/archive).
_OF_DOCKER = re.compile(r"[0-9a-f]{64}(?:/.*|\.tar|\.json)?|manifest\.json|repositories")
# opencontainers/image-spec, image-layout.md.
_OF_OCI = re.compile(r"blobs(?:/.*)?|oci-layout|index\.json")
_IN_REGISTRY = re.compile(
    r"(?:docker|dockerd|oras|library|shub|podman|docker-daemon|https?):/.+|[\w.-]+\.[a-z]+#[\w./:-]+"
)


def folder_kind(names: Iterable[str]) -> LayeredKind | None:
    """Return how a folder with these names holds an image in layers; None: it does not."""
    there = set(names)
    if "oci-layout" in there:
        return "oci"
    # containers/image, directory: a manifest, a version, and blobs by their sums.
    return "dir" if {"manifest.json", "version"} <= there else None


def archive_kind(head: bytes) -> LayeredKind | None:
    """Return what an archive with this beginning holds; None: it is no archive. At least 512 bytes of a plain one."""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, 512)
        except zlib.error:
            return "packed"
    elif head.startswith(_OTHER_PACKERS):
        return "packed"
    if head[_TAR_MARK_AT : _TAR_MARK_AT + len(_TAR_MARK)] != _TAR_MARK:
        return None
    name = head[:_TAR_NAME_BYTES].partition(b"\0")[0].decode("utf-8", "replace").removeprefix("./").rstrip("/")
    if _OF_OCI.fullmatch(name):
        return "oci-archive"
    return "docker-archive" if _OF_DOCKER.fullmatch(name) else "files"


def is_in_registry(name: str) -> bool:
    """Whether a name is that of an image in a registry, as Apptainer and enroot write it; a path has lost a slash."""
    return _IN_REGISTRY.fullmatch(name) is not None


def refused_layers(kind: LayeredKind, image: Path) -> InputError:
    """Return what to say of such an image, with the command that unpacks it."""
    said = "holds an image in layers, which are not unpacked"
    if kind == "files":
        said = "is an archive of files, which are not unpacked"
        hint = f"mkdir FOLDER && tar -xf {image} -C FOLDER; then --image FOLDER"
    elif kind == "packed":
        said = "is a packed archive, which is not unpacked"
        hint = f"see what it is: tar -tf {image} | head; unpack it, and name the folder"
    elif kind == "dir":
        hint = f"skopeo copy dir:{image} docker-archive:NAME.tar; apptainer build NAME.sif docker-archive:NAME.tar"
    else:
        hint = f"apptainer build NAME.sif {kind}:{image}; or unpack it, and name the folder"
    return InputError(f"{image} {said}", where="--image", hint=hint)
