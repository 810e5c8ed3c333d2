"""Harnesses of what describes machines: topology files, platforms of a site, snapshots, tools, services, bindings."""

import contextlib
import io
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from busbw.base.errors import InputError
from busbw.facts.clouds import clouds
from busbw.facts.platforms import all_platforms, find_platform
from busbw.logs.network_use import NetworkUse
from busbw.machine.detect.ladder import detect
from busbw.machine.health.node import node_of
from busbw.machine.health.system import examine
from busbw.machine.named import host_of
from busbw.machine.read.built import assigned, read_binary
from busbw.machine.read.commands import NOISE
from busbw.machine.read.hardware import hardware_of
from busbw.machine.read.image import ImageError, NoImageError, squash_tree
from busbw.machine.read.index import SnapshotIndex
from busbw.machine.read.kernel import built_with_cuda
from busbw.machine.read.layers import archive_kind
from busbw.machine.read.loader import cache_of
from busbw.machine.read.managers import conda_package, easybuild_package, module_file, spack_package, spack_views
from busbw.machine.read.noise import noise_of, summary
from busbw.machine.read.state import state_of
from busbw.model.host import Answer, CapturedFile, CapturedLink, Hardware, Snapshot
from busbw.model.platform import Platform, SiteFile
from busbw.model.topology import Topology
from busbw.show.text.noise import noise_comparison_text, noise_text
from busbw.store.snapshots import read_snapshot
from busbw.topo.check import check
from busbw.topo.file.reader import read_document
from busbw.topo.file.writer import file_text, portable
from busbw.topo.origins.from_document import topologies_of
from busbw.topo.origins.from_hardware import topology_of_hardware
from busbw.topo.origins.from_platform import topology_of_platform
from busbw.topo.ranks.masks import masks_of
from busbw.topo.reference import TopologyReference, reference_of_platform

from .machine_seeds import SITE_FAMILY, captured


@cache
def _platforms() -> tuple[Platform, ...]:
    return all_platforms()


@cache
def _reference() -> TopologyReference:
    return reference_of_platform(find_platform("azure-nd-h100-v5").platform)


@cache
def _node() -> Topology:
    return topology_of_platform(find_platform("alps-gh200").platform)


@cache
def _hardware() -> Hardware:
    return hardware_of(captured())


def _topology_file(data: bytes) -> int:
    """Read a topology file, hold it against rules alone and beside a platform, write what it says and read that."""
    document = read_document(data, "topo.xml")
    found = [*check(document), *check(document, _reference())]
    for topology in topologies_of(document):
        for each in (topology, portable(topology)):
            read_document(file_text(each).encode(), "again.xml")
    return len(found)


def _site_file(data: bytes) -> object:
    text = data.decode("utf-8", "surrogateescape")
    return find_platform("ours", (SITE_FAMILY, SiteFile(path="/etc/busbw/platforms/ours.toml", text=text)))


def _snapshot(data: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "host.tar")
        path.write_bytes(data)
        return host_of(read_snapshot(path))


def _host(data: bytes) -> object:
    """Read a host from texts, `NAME NUL TEXT NUL`, beside what a whole machine says for itself.

    A name is the path of a file, `@` and the path of a link, or the name of an answer.
    """
    return file_text(topology_of_hardware(host_of(_made(data)).hardware))


def _made(data: bytes) -> Snapshot:
    words = data.decode("utf-8", "replace").split("\0")
    files = {file.path: file for file in captured().files}
    links = {link.path: link for link in captured().links}
    answers = {answer.name: answer for answer in captured().answers}
    for name, text in zip(words[::2], words[1::2], strict=False):
        if name.startswith("/"):
            files[name] = CapturedFile(path=name, text=text)
        elif name.startswith("@"):
            links[name[1:]] = CapturedLink(path=name[1:], target=text)
        else:
            answers[name] = Answer(name=name, argv=(name,), ended="ok", output=text)
    return Snapshot(
        busbw_version="1",
        captured="",
        hostname="h",
        root=True,
        files=tuple(files.values()),
        links=tuple(links.values()),
        answers=tuple(answers.values()),
    )


def _network(data: bytes) -> object:
    """Read the network's features from the same texts, and examine the host for them."""
    snapshot = _made(data)
    probe = host_of(snapshot)
    return [*probe.network, *examine(node_of(probe, state_of(snapshot, probe.settings), None, ()))]


def _log(data: bytes) -> object:
    """Read a log in blocks of any size: what it tells must not depend on where they end."""
    use = NetworkUse()
    size = 1 + (data[0] if data else 0)
    for start in range(0, len(data), size):
        use.feed(data[start : start + size])
    return use.told()


def _noise(data: bytes) -> object:
    """Read a test of noise, and sum up and print what is taken for one."""
    answer = Answer(name=NOISE, argv=(NOISE,), ended="ok", exit_code=0, output=data.decode("utf-8", "replace"))
    snapshot = Snapshot(busbw_version="1", captured="", hostname="h", root=True, answers=(answer,))
    found = noise_of(SnapshotIndex(snapshot))
    if found is None:
        return None
    with contextlib.redirect_stdout(io.StringIO()):
        noise_text(found)
        noise_comparison_text(found, "a", found, "b")
    return summary(found)


def _service(data: bytes) -> object:
    """Detect a machine of which each service says the same."""
    text = data.decode("utf-8", "replace")
    answers = tuple(
        Answer(name=f"metadata-{cloud.id}", argv=("GET",), ended="ok", output=text, error=text) for cloud in clouds()
    )
    return [detect(_hardware(), told, _platforms()) for told in (answers, answers[:1], answers[1:2])]


def _binding(data: bytes) -> object:
    text = data.decode("utf-8", "surrogateescape")
    return masks_of(_node(), sockets=4, binding=text)


def _binary(data: bytes) -> object:
    return read_binary(_reader(data), len(data), "/stack/lib/libnccl-net.so")


def _reader(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, count: data[offset : offset + count] if offset >= 0 and count > 0 else b""


def _image(data: bytes) -> object:
    """Read an image, and every file in its first folders."""
    archive_kind(data)
    try:
        tree = squash_tree(_reader(data), len(data))
    except (ImageError, NoImageError) as error:
        raise InputError(str(error)) from error
    found = []
    for name in tree.names("/")[:8]:
        for path in (f"/{name}", *(f"/{name}/{inner}" for inner in tree.names(f"/{name}")[:8])):
            opened = tree.opened(path)
            read = opened[0](0, min(opened[1], 2**20)) if opened is not None else b""
            found.append((path, tree.kind(path), tree.target(path), read))
    return found


def _package(data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    return (
        spack_package(data, "/stack", "spec.json"),
        easybuild_package(text.splitlines(), "/stack"),
        assigned(text, {}),
        conda_package(data, "/stack", "nccl.json"),
        module_file(text, "/apps/nccl/1.lua"),
        module_file(f"#%Module\n{text}", "/apps/nccl/1"),
        spack_views(text, "/env"),
    )


MACHINE_HARNESSES: dict[str, Callable[[bytes], object]] = {
    "topology_file": _topology_file,
    "site_platform": _site_file,
    "snapshot": _snapshot,
    "host_gpus": _host,
    "host_nvlinks": _host,
    "host_rdma": _host,
    "host_kernel": _host,
    "host_network": _network,
    "network_log": _log,
    "noise": _noise,
    "mpi_build": lambda data: built_with_cuda(data.decode("utf-8", "replace")),
    "metadata": _service,
    "binding": _binding,
    "built_binary": _binary,
    "built_image": _image,
    "built_package": _package,
    "loader_cache": cache_of,
}
