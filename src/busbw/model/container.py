"""A container that every rank runs in, and what it sees of its host."""

from typing import Literal

from busbw.base.value import Value

RuntimeName = Literal["apptainer", "singularity", "pyxis", "podman", "docker", "charliecloud"]


class Bind(Value, kw_only=True, frozen=True):
    """A path of the host that a container sees."""

    source: str
    # Inside; the same path where it is None.
    target: str | None = None
    read_only: bool = True
    # What it is for, in words; an error before the start names it where `source` is absent.
    why: str | None = None
    # Whether the container may start without it.
    optional: bool = False


class Container(Value, kw_only=True, frozen=True):
    """An image that every rank runs in."""

    runtime: RuntimeName
    # The runtime's program on the hosts, absolute or found on PATH there; "" for pyxis, which is part of srun.
    program: str
    image: str
    binds: tuple[Bind, ...] = ()
    # GPUs and their driver are to be seen inside.
    gpus: bool = False
    # Further words for the runtime, as they are.
    options: tuple[str, ...] = ()
