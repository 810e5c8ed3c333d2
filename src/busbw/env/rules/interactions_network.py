"""Which network is used, and settings of another that then do nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from busbw.env.values import read_value
from busbw.env.values_c import leading_integer
from busbw.env.versions import reaches
from busbw.facts.envvars import variables
from busbw.model.envvar import Interaction


@dataclass(frozen=True, slots=True)
class Together:
    """What is set, for which NCCL, for how many nodes; None: the newest that is known, not known."""

    values: Mapping[str, str]
    version: tuple[int, ...] | None
    nodes: int | None

    def has(self, name: str) -> bool:
        """Return whether a variable is set, to whatever."""
        return name in self.values

    def text(self, name: str) -> str | None:
        """Return the text of a variable; None: it is not set."""
        return self.values.get(name)

    def taken(self, name: str) -> str | None:
        """Return what NCCL takes a variable for; None: it is not set, or NCCL does not get that far."""
        text = self.values.get(name)
        return None if text is None else read_value(variables()[name], text, self.version).value

    def number(self, name: str) -> int | None:
        """Return the number that NCCL takes a variable for; None: it is not set, or is none."""
        taken = self.taken(name)
        number = None if taken is None else leading_integer(taken)
        return None if number is None or number.rest else number.value

    def is_on(self, name: str) -> bool:
        """Return whether a variable is set to a number other than 0."""
        return self.number(name) not in (None, 0)

    def is_off(self, name: str) -> bool:
        """Return whether a variable is set to 0."""
        return self.number(name) == 0

    def written(self, name: str) -> str:
        """Return `NAME="value"` as it is set."""
        return f'{name}="{self.values[name][:40]}"'

    def from_version(self, *since: int) -> bool:
        """Return whether the version is `since` or later."""
        return reaches(self.version, since)


Rule = Callable[[Together], Iterator[Interaction]]


_NET = "NVIDIA/nccl, src/plugin/net.cc"
_IB = "NVIDIA/nccl, src/transport/net_ib"
# Settings of NCCL's own InfiniBand and RoCE; plug-ins that build on it read some of them too.
_OF_IB = ("NCCL_IB_HCA", "NCCL_IB_TC", "NCCL_IB_SL", "NCCL_IB_GID_INDEX", "NCCL_IB_QPS_PER_CONNECTION")
_GID_CHOICE = ("NCCL_IB_ADDR_FAMILY", "NCCL_IB_ADDR_RANGE", "NCCL_IB_ROCE_VERSION_NUM")
_SAME_FOR_UCX = (("NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX"), ("NCCL_IB_TC", "UCX_IB_TRAFFIC_CLASS"))


def _own_plugin(set_: Together) -> bool:
    """Return whether a plug-in is asked for by name."""
    return set_.taken("NCCL_NET_PLUGIN") not in (None, "none")


def _network(set_: Together) -> str:
    return (set_.taken("NCCL_NET") or "").lower()


def _ib_and_off(set_: Together) -> Iterator[Interaction]:
    if _network(set_) == "ib" and set_.is_on("NCCL_IB_DISABLE"):
        yield Interaction(
            id="IB asked for and off",
            names=("NCCL_IB_DISABLE", "NCCL_NET"),
            condition=f"{set_.written('NCCL_NET')} with {set_.written('NCCL_IB_DISABLE')}",
            effect="no network of that name is left: making a communicator fails",
            kind="fails",
            fix="leave NCCL_IB_DISABLE out",
            source=_NET,
        )


def _ib_settings_unused(set_: Together) -> Iterator[Interaction]:
    chosen = [name for name in _OF_IB if set_.has(name)]
    off = "NCCL_IB_DISABLE" if set_.is_on("NCCL_IB_DISABLE") else "NCCL_NET" if _network(set_) == "socket" else None
    if chosen and off is not None and not _own_plugin(set_):
        yield Interaction(
            id="IB settings without IB",
            names=(*chosen, off),
            condition=f"{', '.join(chosen)} with {set_.written(off)}",
            effect="data goes over TCP sockets, for which these settings do nothing",
            kind="no effect",
            fix=f"leave {off} out, or the others",
            source=_IB,
        )


def _plugin_passed_over(set_: Together) -> Iterator[Interaction]:
    if _network(set_) in ("ib", "socket") and _own_plugin(set_):
        yield Interaction(
            id="plug-in passed over",
            names=("NCCL_NET", "NCCL_NET_PLUGIN"),
            condition=f"{set_.written('NCCL_NET')} with {set_.written('NCCL_NET_PLUGIN')}",
            effect="NCCL takes its own network: the plug-in's has another name, unless it took this one",
            kind="misleading",
            fix="leave NCCL_NET out, or set it to the name that the plug-in prints",
            source=_NET,
        )


def _plugin_needed(set_: Together) -> Iterator[Interaction]:
    if set_.taken("NCCL_NET_PLUGIN") == "none" and _network(set_) not in ("", "ib", "socket"):
        yield Interaction(
            id="plug-in needed and off",
            names=("NCCL_NET_PLUGIN", "NCCL_NET"),
            condition=f"{set_.written('NCCL_NET')} with {set_.written('NCCL_NET_PLUGIN')}",
            effect="only a plug-in has a network of that name, and none is loaded: making a communicator fails",
            kind="fails",
            fix="leave NCCL_NET_PLUGIN out",
            source=_NET,
        )


def _collnet_without_plugin(set_: Together) -> Iterator[Interaction]:
    without = "NCCL_NET_PLUGIN" if set_.taken("NCCL_NET_PLUGIN") == "none" else None
    without = "NCCL_NET" if _network(set_) in ("ib", "socket") else without
    if set_.number("NCCL_COLLNET_ENABLE") == 1 and without is not None:
        yield Interaction(
            id="CollNet without plug-in",
            names=("NCCL_COLLNET_ENABLE", without),
            condition=f"{set_.written('NCCL_COLLNET_ENABLE')} with {set_.written(without)}",
            effect="CollNet is in a plug-in, and NCCL's own networks have none: a line in the log says so",
            kind="no effect",
            fix=f"leave {without} out, with the plug-in of HPC-X in LD_LIBRARY_PATH",
            source=_NET,
        )


def _gid(set_: Together) -> Iterator[Interaction]:
    chosen = [name for name in _GID_CHOICE if set_.has(name)]
    index = set_.number("NCCL_IB_GID_INDEX")
    if chosen and index is not None and index >= 0:
        yield Interaction(
            id="GID by number and by choice",
            names=(*chosen, "NCCL_IB_GID_INDEX"),
            condition=f"{', '.join(chosen)} with {set_.written('NCCL_IB_GID_INDEX')}",
            effect="the number decides: the others are for choosing one",
            kind="no effect",
            fix="leave NCCL_IB_GID_INDEX out, which since 2.21 lets NCCL choose",
            source="NVIDIA/nccl, src/transport/net_ib/connect.cc, ncclIbGetGidIndex",
        )


def _partition_key(set_: Together) -> Iterator[Interaction]:
    value = set_.number("NCCL_IB_PKEY_VALUE")
    if set_.has("NCCL_IB_PKEY") and value is not None and value >= 0 and set_.from_version(2, 31):
        yield Interaction(
            id="partition key twice",
            names=("NCCL_IB_PKEY", "NCCL_IB_PKEY_VALUE"),
            condition=f"{set_.written('NCCL_IB_PKEY')} with {set_.written('NCCL_IB_PKEY_VALUE')}",
            effect="the key by value decides",
            kind="no effect",
            fix="leave NCCL_IB_PKEY out",
            source="NVIDIA/nccl, wheel 2.31.2 and its manual",
        )


def _split(set_: Together) -> Iterator[Interaction]:
    queue_pairs = set_.number("NCCL_IB_QPS_PER_CONNECTION")
    if set_.number("NCCL_IB_SPLIT_DATA_ON_QPS") == 1 and queue_pairs in (None, 1):
        yield Interaction(
            id="splitting over one queue pair",
            names=("NCCL_IB_SPLIT_DATA_ON_QPS",),
            condition=f"{set_.written('NCCL_IB_SPLIT_DATA_ON_QPS')} with one queue pair",
            effect="there is nothing to split a message over",
            kind="no effect",
            fix="NCCL_IB_QPS_PER_CONNECTION is the number of queue pairs",
            source=_IB,
        )


def _unlike_ucx(set_: Together) -> Iterator[Interaction]:
    for name, ucx in _SAME_FOR_UCX:
        one, other = set_.number(name), set_.number(ucx)
        if one is not None and other is not None and one != other and one >= 0:
            yield Interaction(
                id=f"{name} unlike {ucx}",
                names=(ucx, name),
                condition=f"{set_.written(name)} with {set_.written(ucx)}",
                effect="MPI and NCCL then use the network differently",
                kind="misleading",
                fix=f"{ucx}={one}",
                source="openucx/ucx and NVIDIA/nccl: both name the same field of the fabric",
            )


NETWORK: tuple[Rule, ...] = (
    _ib_and_off,
    _ib_settings_unused,
    _plugin_passed_over,
    _plugin_needed,
    _collnet_without_plugin,
    _gid,
    _partition_key,
    _split,
    _unlike_ucx,
)


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
