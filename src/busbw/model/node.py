"""Parts of what a host says of itself before anything is measured."""

from busbw.base.value import Integer, Value


class LoadedLibrary(Value, kw_only=True, frozen=True):
    """A library that the first rank of a host has loaded, or would load."""

    # libmpi, libnccl, libcuda, libucp, libfabric, libnccl-net...
    name: str
    path: str
    # As the library itself or its file name says; None: neither does.
    version: str | None
    # Of its size, its beginning and its end: the same for the same build.
    fingerprint: str


class NodePort(Value, kw_only=True, frozen=True):
    """A port of a network device, as the kernel shows it. None: it does not say."""

    # `mlx5_0/1`, or the name of a network interface.
    name: str
    up: bool | None
    # `400 Gb/sec (4X NDR)`, as RDMA drivers say it, or the Mbit/s of an interface.
    rate: str | None


class NodeLimit(Value, kw_only=True, frozen=True):
    """A limit of the kernel for processes of this run."""

    name: str
    # None: unlimited.
    most: Integer | None
