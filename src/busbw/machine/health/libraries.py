"""The libraries that a job would load, and the files its settings name."""

from busbw.base.text import listed
from busbw.machine.health.node import ExaminedNode, fault, fine, found, skipped, unknown
from busbw.model.finding import Finding, HostCheck
from busbw.model.host import FoundLibrary

# Fabrics that NCCL reaches through a plug-in only, and what brings it.
_PLUGINS = {"EFA": "aws-ofi-nccl", "Slingshot": "aws-ofi-nccl"}
_NO_LIBRARIES = "no library of the interconnect was found, or none was looked for"
_BUILT_IN = ("none", "ib", "socket")


def resolution(node: ExaminedNode) -> HostCheck:
    """Check that what the first library of each name needs is there."""
    name, look = "libraries resolve", "ldd LIBRARY | grep 'not found'"
    first: dict[str, FoundLibrary] = {}
    for each in node.libraries:
        first.setdefault(each.name, each)
    told = [each for each in first.values() if each.unresolved is not None]
    if not told:
        return unknown(name, _NO_LIBRARIES if not first else "none of the libraries could be followed", look=look)
    made = [each for library in told for each in _unresolved(library, has_runtime="libcudart" in first)]
    return found(name, *made, look=look) if made else fine(name, f"{len(told)} of them", look=look)


def _unresolved(library: FoundLibrary, *, has_runtime: bool) -> list[Finding]:
    # Frameworks load their own CUDA runtime before any plug-in.
    missing = [each for each in library.unresolved or () if not (has_runtime and each.startswith("libcudart."))]
    if not missing:
        return []
    made = fault(
        "HOST040",
        library=library.name,
        evidence=f"{library.path} needs {listed(missing)}",
        fix="load the module that brings them, or add their folder to LD_LIBRARY_PATH",
        look=f"ldd {library.path}",
        confidence="likely",
    )
    return [made]


def plugin(node: ExaminedNode) -> HostCheck:
    """Check that NCCL's network plug-in is there, where the fabric or a setting needs one; else libibverbs."""
    name, look = "NCCL's network", "ldconfig -p | grep -e libnccl-net -e libibverbs; echo $NCCL_NET_PLUGIN"
    if not node.nvidia_gpus:
        return skipped(name, "no NVIDIA GPU", look=look)
    if not node.libraries:
        return unknown(name, _NO_LIBRARIES, look=look)
    wanted = node.settings.get("NCCL_NET_PLUGIN", "").strip()
    names = {each.name for each in node.libraries}
    if wanted and wanted.lower() not in _BUILT_IN:
        return _wanted(node, name, wanted, look)
    if not node.ports:
        return skipped(name, "no port of a fabric", look=look)
    made = _without_transport(node, names, look)
    if made is not None:
        return found(name, made, look=look)
    return fine(name, "libnccl-net" if "libnccl-net" in names else "libibverbs", look=look)


def _without_transport(node: ExaminedNode, names: set[str], look: str) -> Finding | None:
    """Return what NCCL lacks to use the fabric; None where it lacks nothing."""
    kinds = [port.kind for port in node.ports if port.kind in _PLUGINS]
    if kinds and "libnccl-net" not in names:
        evidence = f"{len(kinds)} ports of {kinds[0]}, and no libnccl-net*.so where a job would find it"
        fix = f"load the module of {_PLUGINS[kinds[0]]}, or add its folder to LD_LIBRARY_PATH"
        return fault("HOST041", fabric=kinds[0], evidence=evidence, fix=fix, look=look, confidence="likely")
    if node.rdma_ports and not names & {"libibverbs", "libnccl-net"}:
        evidence = f"{len(node.rdma_ports)} ports, and no libibverbs.so.1 where a job would find it"
        fix = "install libibverbs1 and ibverbs-providers (rdma-core), in the container too"
        return fault("HOST042", evidence=evidence, fix=fix, look=look, confidence="likely")
    return None


def _wanted(node: ExaminedNode, name: str, wanted: str, look: str) -> HostCheck:
    """Return whether the plug-in is there that a setting names; NCCL adds `libnccl-net-` and `.so` to a bare name."""
    files = (f"libnccl-net-{wanted}.so", wanted, f"{wanted}.so")
    hit = next((each for each in node.libraries if each.path == wanted or _is_called(each.path, files)), None)
    if hit is not None:
        return fine(name, hit.path, look=look)
    evidence = f'NCCL_NET_PLUGIN = "{wanted}"; none of {", ".join(files[:2])} was found'
    fix = "add the folder of the plug-in to LD_LIBRARY_PATH, or unset NCCL_NET_PLUGIN"
    made = fault("HOST043", plugin=wanted, evidence=evidence, fix=fix, look=look, confidence="possible")
    return found(name, made, look=look)


def _is_called(path: str, files: tuple[str, ...]) -> bool:
    return path.rpartition("/")[2].startswith(files)


def versions(node: ExaminedNode) -> HostCheck:
    """Check that there is one NCCL."""
    name, look = "NCCL versions", "ldconfig -p | grep libnccl.so; pip list | grep nccl"
    if not node.nvidia_gpus:
        return skipped(name, "no NVIDIA GPU", look=look)
    here = [each for each in node.libraries if each.name == "libnccl" and each.version is not None]
    if not here:
        return unknown(name, "no libnccl that says its version was found", look=look)
    different = {each.version: each.path for each in reversed(here)}
    if len(different) == 1:
        return fine(name, str(here[0].version), look=look)
    evidence = listed(f"{each.version} {each.path}" for each in here)
    fix = "NCCL_DEBUG=VERSION tells which one a job loads; remove the others, or put the right one first"
    made = fault("HOST044", count=len(different), evidence=evidence, fix=fix, look=look, confidence="possible")
    return found(name, made, look=look)


def named_files(node: ExaminedNode) -> HostCheck:
    """Check that the files that NCCL's settings name are there."""
    name, look = "files of NCCL's settings", "env | grep NCCL_; cat /etc/nccl.conf ~/.nccl.conf"
    named = node.state.named_files
    if not named:
        return skipped(name, "neither NCCL_TOPO_FILE nor NCCL_GRAPH_FILE is set", look=look)
    made = [
        fault(
            "HOST045",
            setting=each.setting,
            evidence=f'{each.setting} = "{each.path}" ({each.named_in or "environment"}): {each.fault}',
            fix=f"unset {each.setting}, correct it, or mount the file into the container",
            look=f"ls -l {each.path}",
        )
        for each in named
        if each.fault is not None
    ]
    return found(name, *made, look=look) if made else fine(name, f"{len(named)} there", look=look)
