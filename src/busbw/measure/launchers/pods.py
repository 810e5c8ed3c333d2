"""The pods that ranks run in: what they ask the cluster for, what they see, what is set in them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec
import yaml

from busbw.base.errors import InputError
from busbw.base.value import Integer, Value
from busbw.measure.launchers import variables
from busbw.measure.launchers.hosts import even, processes_of_hosts
from busbw.model.launch import LaunchRequest, Start
from busbw.model.request import Bind

Node = str | int | bool | Sequence["Node"] | Mapping[str, "Node"]

# RFC 1123; a name that becomes the host name of a pod begins with a letter (RFC 1035).
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_DNS_LABEL = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
# `name`, or `domain/name`, as resources and the labels of nodes are called.
_QUALIFIED = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_QUANTITY = re.compile(r"[1-9][0-9]{0,9}(?:[KMGT]i?|k)?")
_IMAGE = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.:/@+]{0,511}")
# Kubernetes puts variables in for $(NAME), and takes $$ for a plain $.
_EXPANDED = re.compile(r"\$+(?=\()|\$\$+")
# What a ConfigMap may hold, and about what the API server takes of any object.
_LONGEST_BYTES = 1024 * 1024


def check_label(text: str, what: str) -> None:
    """Raise InputError for what cannot be a name of RFC 1123."""
    if _LABEL.fullmatch(text) is None:
        raise _not_a_name(text, what, "begins and ends with a letter or a digit")


def check_dns_label(text: str, what: str) -> None:
    """Raise InputError for what cannot be the first name of a host."""
    if _DNS_LABEL.fullmatch(text) is None:
        raise _not_a_name(text, what, "begins with a letter, and ends with a letter or a digit")


def _not_a_name(text: str, what: str, rule: str) -> InputError:
    return InputError(
        f"{text[:80]!r} cannot be {what}", hint=f"it has at most 63 small letters, digits and `-`, {rule}"
    )


def check_resource(name: str, quantity: str) -> None:
    """Raise InputError for what cannot be a resource and how much of it."""
    if _QUALIFIED.fullmatch(name) is None:
        raise InputError(f"{name[:80]!r} cannot be a resource", hint="for example nvidia.com/gpu, rdma/ib")
    if _QUANTITY.fullmatch(quantity) is None:
        raise InputError(f"{quantity[:80]!r} cannot be a quantity", where=name, hint="for example 8 or 64Gi")


def check_node_label(name: str, value: str) -> None:
    """Raise InputError for what cannot be a label of nodes."""
    if _QUALIFIED.fullmatch(name) is None or _LABEL_VALUE.fullmatch(value) is None:
        raise InputError(f"{name[:80]}={value[:80]} cannot be a label of nodes")


def check_image(image: str) -> None:
    """Raise InputError for what cannot be the reference of an image."""
    if _IMAGE.fullmatch(image) is None:
        raise InputError(f"{image[:80]!r} cannot be an image", hint="REGISTRY/NAME:TAG, or REGISTRY/NAME@DIGEST")


def literal(text: str, where: str) -> str:
    """Return a text so that Kubernetes expands nothing in it. Raises InputError for what it cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("a manifest holds UTF-8 only", where=where) from None
    if "\0" in text:
        raise InputError("a manifest holds no NUL", where=where)
    return _EXPANDED.sub(lambda match: match[0] * 2, text)


def literals(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a command so that Kubernetes expands nothing in them."""
    return tuple(literal(word, "the command") for word in words)


def manifest_text(documents: Sequence[Mapping[str, Node]]) -> str:
    """Return documents as YAML: ASCII, every text that could be something else in quotes.

    Raises InputError for a document that the API server would not take.
    """
    for document in documents:
        held_bytes = sum(len(text.encode()) for text in _texts(document))
        if held_bytes > _LONGEST_BYTES:
            raise InputError(
                f"{document['kind']}: {held_bytes} bytes, and Kubernetes takes {_LONGEST_BYTES}",
                hint="put large files into the image or on the volume",
            )
    texts = (
        str(yaml.safe_dump(_plain(document), sort_keys=False, default_flow_style=False, width=1 << 30))
        for document in documents
    )
    return "---\n".join(texts)


def _plain(node: Node) -> Node:
    """Return a copy of lists and dictionaries, of which none is another: YAML would write anchors for those."""
    if isinstance(node, Mapping):
        return {name: _plain(value) for name, value in node.items()}
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_plain(value) for value in node]
    return node


def _texts(node: Node) -> Iterator[str]:
    """Yield every text in a document."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, Sequence):
        for value in node:
            yield from _texts(value)


# Set by whoever lets GPUs in; a value of ours would let in others, or none.
_OF_THE_DEVICE_PLUGIN = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
_CONTAINER = "ranks"


class MountedText(Value, kw_only=True, frozen=True):
    """A file that comes into the pods with the manifest: /etc/nccl.conf, a topology file."""

    path: str
    text: str


class Pods(Value, kw_only=True, frozen=True):
    """What a cluster is asked for."""

    # Of everything that is made.
    name: str
    # None: the one kubectl is set to.
    namespace: str | None = None
    image: str
    # Of each pod beside GPUs: ("rdma/ib", "1"), ("vpc.amazonaws.com/efa", "4"), ("cpu", "96"), ("memory", "512Gi").
    resources: tuple[tuple[str, str], ...] = ()
    gpu_resource: str = "nvidia.com/gpu"
    # The network of the node, for fabrics whose NICs no plug-in hands to pods.
    host_network: bool = False
    # Of the node, into the pod: /dev/infiniband where no resource brings it.
    binds: tuple[Bind, ...] = ()
    privileged: bool = False
    # Locked memory beyond the limit, which RDMA needs.
    lock_memory: bool = True
    # Most bytes of /dev/shm, which count as memory; None: half of the node's.
    shared_memory_bytes: Integer | None = None
    texts: tuple[MountedText, ...] = ()
    # A volume that all pods can write, mounted at the run directory; None: the run directory is in the image.
    claim: str | None = None
    node_labels: tuple[tuple[str, str], ...] = ()
    # Where sshd and ssh of the image look for keys.
    ssh_directory: str = "/root/.ssh"


def asked_of(start: Start, request: LaunchRequest) -> tuple[Start, Pods]:
    """Return a start in pods and what the cluster is asked for, as `busbw launch` was told. Raises InputError."""
    if request.image is None:
        raise InputError("pods need an image", where=f"--launcher {request.launcher}", hint="--image IMAGE")
    topology = dict(start.program.env).get("NCCL_TOPO_FILE")
    # What pods see is what the image and the manifest give them.
    return msgspec.structs.replace(start, forward=(), as_root=True), Pods(
        name=request.name,
        namespace=request.namespace,
        image=request.image,
        resources=request.resources,
        host_network=request.host_network,
        binds=(Bind(source=topology, why="the topology file of the node"),) if topology is not None else (),
        claim=request.claim,
    )


def check(start: Start, pods: Pods) -> int:
    """Return how many processes start in each pod.

    Raises InputError for names that cannot be names, and for what a manifest cannot say.
    """
    last = f"{pods.name}-worker-{len(start.placement.hosts) - 1}"
    check_dns_label(pods.name, "the name of a job")
    check_dns_label(last, "the host name of its last pod")
    if pods.namespace is not None:
        check_label(pods.namespace, "a namespace")
    if pods.claim is not None:
        check_label(pods.claim, "a volume claim")
    check_image(pods.image)
    for name, quantity in pods.resources:
        check_resource(name, quantity)
    for name, value in pods.node_labels:
        check_node_label(name, value)
    _check_start(start)
    processes = even(processes_of_hosts(start))
    if processes is None:
        raise InputError("pods of one job are alike, and hosts take different numbers of ranks")
    return processes


def _check_start(start: Start) -> None:
    variables.environment(start)
    for name in _OF_THE_DEVICE_PLUGIN:
        if name in dict(start.program.env):
            raise InputError("what lets GPUs into pods sets this", where=name, hint="take it out of the settings")
    if start.forward or start.prepend:
        names = ", ".join((*start.forward, *(name for name, _folder in start.prepend)))
        raise InputError(f"pods do not see the launching shell: {names}", hint="set it with a value, or in the image")
    if start.placement.oversubscribed:
        raise InputError("more ranks than CPUs measure nothing in pods", hint="ask for fewer ranks")
    if start.container is not None:
        raise InputError("a pod is a container already", hint="name the image only")


def metadata(pods: Pods) -> dict[str, Node]:
    """Return how something made for these pods is called."""
    return {"name": pods.name, **({"namespace": pods.namespace} if pods.namespace is not None else {})}


def environment(start: Start) -> list[Node]:
    """Return the variables of the program as a container has them."""
    return [{"name": name, "value": literal(value, name)} for name, value in start.program.env]


def pod(start: Start, pods: Pods, container: Mapping[str, Node]) -> dict[str, Node]:
    """Return the specification of a pod that has everything: GPUs, NICs, memory, files.

    `container`: its command and variables.
    """
    volumes, mounts = _volumes(start, pods)
    resources = (*((pods.gpu_resource, str(start.gpus_per_host)),) * bool(start.gpus_per_host), *pods.resources)
    limits: dict[str, Node] = dict(resources)
    capabilities: dict[str, Node] = {"capabilities": {"add": ["IPC_LOCK"]}} if pods.lock_memory else {}
    security: dict[str, Node] = {**({"privileged": True} if pods.privileged else {}), **capabilities}
    return {
        **network(pods),
        **({"nodeSelector": dict(pods.node_labels)} if pods.node_labels else {}),
        # One pod a node: two would share its NICs.
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_apart(pods)]}},
        "containers": [
            {
                "name": _CONTAINER,
                "image": pods.image,
                **container,
                **({"resources": {"limits": limits}} if limits else {}),
                **({"securityContext": security} if security else {}),
                "volumeMounts": mounts,
            }
        ],
        "volumes": volumes,
    }


def network(pods: Pods) -> dict[str, Node]:
    """Return which network a pod has."""
    return {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if pods.host_network else {}


def labels(pods: Pods) -> dict[str, Node]:
    """Return what the pods with ranks are found by."""
    return {"busbw-job": pods.name}


def files(pods: Pods) -> list[Mapping[str, Node]]:
    """Return the object that holds the files of the manifest; none where there are none."""
    if not pods.texts:
        return []
    data: dict[str, Node] = {}
    for number, each in enumerate(pods.texts):
        try:
            each.text.encode()
        except UnicodeEncodeError:
            raise InputError("a manifest holds UTF-8 only", where=each.path) from None
        data[_key(number, each)] = each.text
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": _files_metadata(pods), "data": data}]


def _files_metadata(pods: Pods) -> dict[str, Node]:
    return {**metadata(pods), "name": f"{pods.name}-files"}


def _key(number: int, text: MountedText) -> str:
    name = PurePosixPath(text.path).name
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "_" for letter in name)
    return f"{number}-{plain[:200]}"


def _apart(pods: Pods) -> dict[str, Node]:
    return {"labelSelector": {"matchLabels": labels(pods)}, "topologyKey": "kubernetes.io/hostname"}


def _volumes(start: Start, pods: Pods) -> tuple[list[Node], list[Node]]:
    """Return the volumes of a pod, and where its container sees them."""
    # Without it /dev/shm has the 64 MiB of the container runtime, and NCCL and MPI cannot share memory.
    memory: dict[str, Node] = {"medium": "Memory"}
    if pods.shared_memory_bytes is not None:
        memory["sizeLimit"] = str(pods.shared_memory_bytes)
    volumes: list[Node] = [{"name": "shared-memory", "emptyDir": memory}]
    mounts: list[Node] = [{"name": "shared-memory", "mountPath": "/dev/shm"}]  # noqa: S108 - a place in the pod
    if pods.claim is not None:
        volumes.append({"name": "run", "persistentVolumeClaim": {"claimName": pods.claim}})
        mounts.append({"name": "run", "mountPath": _path(start.directory)})
    if pods.texts:
        volumes.append({"name": "files", "configMap": {"name": f"{pods.name}-files"}})
    for number, text in enumerate(pods.texts):
        place = {"name": "files", "mountPath": _path(text.path), "subPath": _key(number, text)}
        mounts.append({**place, "readOnly": True})
    for number, bind in enumerate(pods.binds):
        volumes.append({"name": f"host-{number}", "hostPath": {"path": _path(bind.source)}})
        target = _path(bind.source if bind.target is None else bind.target)
        mounts.append({"name": f"host-{number}", "mountPath": target, **({"readOnly": True} if bind.read_only else {})})
    seen: set[str] = set()
    for mount in mounts:
        path = str(mount["mountPath"]) if isinstance(mount, Mapping) else ""
        if path in seen:
            raise InputError("two things are to be mounted here", where=path)
        seen.add(path)
    return volumes, mounts


def _path(path: str) -> str:
    """Return a path that pods can mount. Raises InputError for any other."""
    parts = path.split("/")
    if not path.startswith("/") or ":" in path or ".." in parts or any(ord(letter) < 0x20 for letter in path):
        raise InputError(
            f"{path[:80]!r} cannot be mounted in a pod", hint="an absolute path without `..`, without a colon"
        )
    return literal(path, path)
