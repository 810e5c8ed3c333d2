"""Within a node and within an NVLink domain: peer-to-peer, shared memory, NVLS, multi-node NVLink."""

from collections.abc import Iterator

from busbw.env.together import Rule, Together
from busbw.model.understood import Interaction

_NVLS = "NVIDIA/nccl, src/transport/nvls.cc: it does not ask whether peer-to-peer is allowed"


def _p2p_and_nvls(set_: Together) -> Iterator[Interaction]:
    if set_.number("NCCL_P2P_DISABLE") == 1 and set_.number("NCCL_NVLS_ENABLE") in (1, 2):
        yield Interaction(
            id="peer-to-peer off, NVLS on",
            names=("NCCL_NVLS_ENABLE", "NCCL_P2P_DISABLE"),
            condition=f"{set_.written('NCCL_P2P_DISABLE')} with {set_.written('NCCL_NVLS_ENABLE')}",
            effect="NVLS goes on using NVLink where there is one: the run shows neither NVLink nor the network alone",
            kind="contradiction",
            fix='NCCL_NVLS_ENABLE="0" to keep off NVLink; leave NCCL_P2P_DISABLE out to use it',
            source=_NVLS,
        )


def _p2p_level(set_: Together) -> Iterator[Interaction]:
    if set_.number("NCCL_P2P_DISABLE") == 1 and set_.has("NCCL_P2P_LEVEL") and set_.taken("NCCL_P2P_LEVEL") != "LOC":
        yield Interaction(
            id="peer-to-peer off, level set",
            names=("NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE"),
            condition=f"{set_.written('NCCL_P2P_LEVEL')} with {set_.written('NCCL_P2P_DISABLE')}",
            effect="the level is not looked at",
            kind="contradiction",
            fix="leave one of them out",
            source="NVIDIA/nccl, src/graph/paths.cc, ncclGetLevel",
        )


def _nothing_within_a_node(set_: Together) -> Iterator[Interaction]:
    names = ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NET_DISABLE_INTRA")
    if all(set_.number(name) == 1 for name in names):
        yield Interaction(
            id="no way within a node",
            names=names,
            condition=" and ".join(map(set_.written, names)),
            effect="ranks of one node have no way to reach each other: connecting fails",
            kind="fails",
            fix="leave NCCL_NET_DISABLE_INTRA out to go over the network",
            source="NVIDIA/nccl, src/transport.cc and src/transport/net.cc",
        )


def _mnnvl(set_: Together) -> Iterator[Interaction]:
    if set_.number("NCCL_MNNVL_ENABLE") != 1:
        return
    for name, value, why in (
        ("NCCL_CUMEM_ENABLE", 0, "multi-node NVLink needs cuMem"),
        ("NCCL_P2P_DISABLE", 1, "multi-node NVLink is peer-to-peer"),
    ):
        if set_.number(name) == value:
            yield Interaction(
                id=f"multi-node NVLink and {name}",
                names=(name, "NCCL_MNNVL_ENABLE"),
                condition=f"{set_.written('NCCL_MNNVL_ENABLE')} with {set_.written(name)}",
                effect=f"{why}: it is asked for and cannot be had",
                kind="contradiction",
                fix=f"leave {name} out",
                source="NVIDIA/nccl, src/mnnvl.cc and src/init.cc",
            )


def _several_ranks_a_gpu(set_: Together) -> Iterator[Interaction]:
    if set_.is_on("NCCL_MULTI_RANK_GPU_ENABLE") and set_.number("NCCL_NVLS_ENABLE") == 1:
        yield Interaction(
            id="several ranks a GPU, NVLS on",
            names=("NCCL_NVLS_ENABLE", "NCCL_MULTI_RANK_GPU_ENABLE"),
            condition=f"{set_.written('NCCL_MULTI_RANK_GPU_ENABLE')} with {set_.written('NCCL_NVLS_ENABLE')}",
            effect="where ranks share a GPU, making a communicator fails",
            kind="contradiction",
            fix="leave NCCL_NVLS_ENABLE out",
            source="NVIDIA/nccl, src/transport/nvls.cc, ncclNvlsInit",
        )


def _pxn(set_: Together) -> Iterator[Interaction]:
    if set_.is_on("NCCL_PXN_DISABLE") and set_.is_on("NCCL_P2P_PXN_LEVEL"):
        yield Interaction(
            id="PXN off, level set",
            names=("NCCL_P2P_PXN_LEVEL", "NCCL_PXN_DISABLE"),
            condition=f"{set_.written('NCCL_P2P_PXN_LEVEL')} with {set_.written('NCCL_PXN_DISABLE')}",
            effect="PXN is off whatever the level",
            kind="contradiction",
            fix="leave one of them out",
            source="NVIDIA/nccl, src/graph/paths.cc, ncclPxnDisable",
        )


TRANSPORT: tuple[Rule, ...] = (_p2p_and_nvls, _p2p_level, _nothing_within_a_node, _mnnvl, _several_ranks_a_gpu, _pxn)
