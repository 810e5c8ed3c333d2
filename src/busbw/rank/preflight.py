"""Before anything is measured on several hosts: what each is like, and whether they may be measured together."""

import secrets
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from busbw.base import layout
from busbw.model import codec
from busbw.model.plan import Plan
from busbw.model.preflight import differences, sentences, troubles
from busbw.model.record import Hello, Node
from busbw.rank.node import describe_node
from busbw.rank.refusal import refuse
from busbw.rank.world import World

_TOKEN_BYTES = 16
# A shared file system may take this long to show one host what another wrote; NFS keeps what it knows of a folder for
# up to a minute, but asks again for a file that it has not seen.
_SEEN_WITHIN_S = 10.0
_LOOK_AGAIN_S = 0.1
# What NCCL registers of its own for each connection over InfiniBand, beside buffers of GPUs, which count nowhere:
# NCCL_BUFFSIZE, 4 MiB by default.
_NCCL_LOCKED_BYTES = 4 * 2**20


def inspect_nodes(world: World, hellos: Sequence[Hello], raw: Path) -> tuple[Node, ...]:
    """Return every host of the run, on rank 0; () elsewhere. Every rank calls this."""
    sees_directory = _sees_directory(world, raw / layout.SEEN_FILE)
    gpus = [hello.gpu for hello in hellos if hello.gpu is not None]
    mine = b""
    if world.local_rank == 0:
        node = describe_node(world, gpus[0] if gpus else None, sees_directory=sees_directory)
        mine = codec.encode(node)
    free_bytes = world.from_each(min((gpu.free_bytes for gpu in gpus), default=-1))
    parts = world.to_first(mine)
    if world.rank != 0:
        return ()
    return _together([codec.decode(part, Node, where="a rank") for part in parts if part], world.ranks, free_bytes)


def admit(plan: Plan, world: World, nodes: Sequence[Node]) -> None:
    """Go on where the hosts may be measured together. Every rank calls this; rank 0 has the hosts.

    Raises RuntimeError on rank 0 where they may not, while the others wait to be ended.
    """
    words = _refusal(plan, nodes) if world.rank == 0 else ""
    if not world.from_first([len(words)])[0]:
        return
    if world.rank == 0:
        refuse(words)
        raise RuntimeError(words)
    world.barrier()


def _refusal(plan: Plan, nodes: Sequence[Node]) -> str:
    """Return why these hosts are not measured together; empty where they are."""
    together = max(plan.placement.ranks_of_hosts or (plan.placement.ranks,))
    locked = _NCCL_LOCKED_BYTES if plan.gpu_setup is not None else plan.memory.buffers_bytes // together
    found = list(troubles(nodes, hosts=len(plan.placement.hosts), locked_bytes=locked))
    stopping = [difference for difference in differences(nodes) if difference.stops]
    if stopping and not plan.allow_mixed:
        found.append(f"{sentences(stopping)} (--allow-mixed measures them all the same, and marks the run)")
    return "; ".join(found)


def _together(nodes: Sequence[Node], processes: int, free_bytes: Sequence[int]) -> tuple[Node, ...]:
    """Return nodes in the order of their ranks, each host once, with what all of its ranks know."""
    ordered = sorted(nodes, key=lambda node: node.rank)
    ends = [*(node.rank for node in ordered[1:]), processes]
    hosts: dict[tuple[str, str | None], Node] = {}
    for node, end in zip(ordered, ends, strict=True):
        # Ranks in containers of their own do not share memory, and each calls itself the first of its host.
        known = hosts.get((node.host, node.boot_id))
        free = [known.gpu_free_bytes] if known is not None else []
        least = min(
            (one for one in (*free, *free_bytes[node.rank : end]) if one is not None and one >= 0), default=None
        )
        count = end - node.rank + (known.ranks if known is not None else 0)
        kept = known if known is not None else node
        hosts[node.host, node.boot_id] = msgspec.structs.replace(kept, ranks=count, gpu_free_bytes=least)
    return tuple(hosts.values())


def _sees_directory(world: World, path: Path) -> bool:
    """Whether this process reads what rank 0 has just written into the run directory."""
    if world.rank == 0:
        written = secrets.token_hex(_TOKEN_BYTES // 2).encode()
        path.write_bytes(written)
    else:
        written = bytes(_TOKEN_BYTES)
    expected = world.bytes_from_first(written)
    if world.local_rank != 0:
        return True
    ends_s = time.monotonic() + _SEEN_WITHIN_S
    while True:
        try:
            if path.read_bytes() == expected:
                return True
        except OSError:
            pass
        if time.monotonic() > ends_s:
            return False
        time.sleep(_LOOK_AGAIN_S)
