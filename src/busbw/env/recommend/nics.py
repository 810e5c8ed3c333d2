"""Which NICs, which queue and which way through the fabric."""

from busbw.env.recommend.case import Case, Leave, Rule, Take, on_network
from busbw.env.recommend.claims import PLACES
from busbw.model.platform import PlatformSetting

_FINDS_GID_SINCE = (2, 21)
_SHOW_GIDS = "show_gids: the row of RoCE v2 with an IPv4 address"
_ALIKE = "the same on every rank"


def _ports(case: Case, setting: PlatformSetting) -> Take | Leave:
    if setting.goal in PLACES and case.follow != setting.goal:
        where = setting.goal
        return Leave(kind="other_job", reason=f"devices as they are called in {where}: --follow {where} takes it")
    exact = (setting.value or "").startswith("=")
    return Take(
        need="needed" if exact else "helps",
        conditions="devices are numbered by the driver: another image may number them otherwise",
        checks=("ibv_devinfo -l", "NCCL_DEBUG=INFO lists the ports behind `NET/IB : Using`"),
    )


def _gid(case: Case, setting: PlatformSetting) -> Take | Leave:
    if case.version < _FINDS_GID_SINCE:
        return Take(need="needed", checks=(_SHOW_GIDS,))
    return Take(
        need="helps",
        reason=(
            f"{setting.reason or ''} NCCL looks for one by itself since 2.21; a fixed one is the same on every node."
        ).strip(),
        checks=(_SHOW_GIDS,),
    )


def _traffic_class(_case: Case, _setting: PlatformSetting) -> Take | Leave:
    return Take(need="needed", cost="none; a wrong one shares the queue that drops packets")


def _service_level(_case: Case, setting: PlatformSetting) -> Take | Leave:
    if setting.value == "0":
        return Leave(kind="default", reason=f"unset it is 0 as well. {setting.reason or ''}".strip())
    return Take(need="check_first")


def _queue_pairs(case: Case, _setting: PlatformSetting) -> Take | Leave:
    if case.small:
        return Leave(kind="other_job", reason="more queue pairs do not shorten a short message")
    if case.is_check:
        return Leave(kind="other_job", reason="inside one node there is no choice of ways to spread over")
    return Take(need="helps", conditions=_ALIKE, cost="NIC memory: so many queue pairs for each connection")


def _timeout(_case: Case, _setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="helps",
        reason="A link that comes back within two minutes does not end the job.",
        cost="a link that stays down is noticed after about two minutes instead of half a one",
    )


def _relaxed_ordering(_case: Case, _setting: PlatformSetting) -> Take | Leave:
    return Leave(kind="default", reason="NCCL uses relaxed ordering by itself where the NIC can (2, since 2.12)")


def _rails(_case: Case, setting: PlatformSetting) -> Take | Leave:
    if setting.value == "0":
        return Take(
            need="helps", conditions=_ALIKE, cost="a ring cannot leave a node by another NIC than it came in by"
        )
    return Take(
        need="helps",
        conditions=_ALIKE,
        cost="on a fabric with a switch for each rail, traffic then crosses between them",
    )


def _by_plugin(case: Case, _setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "EFA":
        return Leave(kind="set_already", reason="the plug-in sets it when it is loaded")
    return Take(need="check_first")


def cannot_tell(case: Case, names: frozenset[str]) -> tuple[str, ...]:
    """Return what an RDMA network over Ethernet needs and nobody publishes; `names`: of what is recommended."""
    if case.platform.fabric.kind != "RoCE" or not case.over_network:
        return ()
    found = []
    if case.version < _FINDS_GID_SINCE and "NCCL_IB_GID_INDEX" not in names:
        found.append("NCCL_IB_GID_INDEX: NCCL before 2.21 takes 0; show_gids tells which is of RoCE v2")
    if "NCCL_IB_TC" not in names:
        found.append("NCCL_IB_TC: whoever runs the network knows which traffic class loses no packets")
    return tuple(found)


RULES = (
    Rule(name="NCCL_IB_HCA", topic="nics", judge=on_network(_ports)),
    Rule(name="NCCL_IB_GID_INDEX", topic="nics", judge=on_network(_gid)),
    Rule(name="NCCL_IB_TC", topic="nics", judge=on_network(_traffic_class)),
    Rule(name="NCCL_IB_SL", topic="nics", judge=on_network(_service_level)),
    Rule(name="NCCL_IB_QPS_PER_CONNECTION", topic="nics", judge=on_network(_queue_pairs)),
    Rule(name="NCCL_IB_TIMEOUT", topic="nics", judge=on_network(_timeout)),
    Rule(name="NCCL_IB_PCI_RELAXED_ORDERING", topic="nics", judge=on_network(_relaxed_ordering)),
    Rule(name="NCCL_CROSS_NIC", topic="nics", judge=on_network(_rails)),
    Rule(name="NCCL_NETDEVS_POLICY", topic="nics", judge=on_network(_by_plugin)),
)
