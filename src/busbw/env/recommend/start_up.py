"""Start-up: the interface on which ranks meet, and MPI's own network, which NCCL does not use; and what is logged."""

from busbw.env.recommend.case import Case, Leave, Rule, Take
from busbw.model.platform import PlatformSetting
from busbw.model.recommendation import LeftOut, Recommended

_WITH_MPI = "MPI starts the ranks; NCCL's bandwidth does not depend on it"


def _interface(_case: Case, setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="helps",
        reason=setting.reason or "The interface on which ranks meet; NCCL would look for one by itself.",
        conditions="every node calls it so",
        checks=("ip -br address",),
    )


def _mpi(_case: Case, setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="helps",
        reason=setting.reason or "Keeps MPI's start-up on a network that it finds on every node.",
        conditions=_WITH_MPI,
    )


def consistent(settings: tuple[Recommended, ...]) -> tuple[tuple[Recommended, ...], tuple[LeftOut, ...]]:
    """Return the settings that go together, and those that another one makes impossible."""
    over_tcp = any(each.name == "UCX_TLS" and each.value == "tcp" for each in settings)
    lost = [each for each in settings if over_tcp and each.name == "UCX_NET_DEVICES" and ":" in (each.value or "")]
    dropped = tuple(
        LeftOut(
            name=each.name,
            value=each.value,
            kind="risky",
            reason="a port of an RDMA device is no interface for TCP, which UCX_TLS asks for",
            source=each.source,
        )
        for each in lost
    )
    return tuple(each for each in settings if each not in lost), dropped


def _hcoll(case: Case, setting: PlatformSetting) -> Take | Leave:
    off_already = any(each.name == "OMPI_MCA_coll" and each.value == "^hcoll" for each in case.platform.settings)
    if setting.name == "OMPI_MCA_coll_hcoll_enable" and off_already:
        return Leave(kind="no_effect", reason="OMPI_MCA_coll has it off already")
    return Take(
        need="helps",
        reason="MPI only starts the ranks here: hcoll has nothing to do, and would set up NICs of its own.",
        conditions=_WITH_MPI,
    )


def _hcoll_detail(_case: Case, _setting: PlatformSetting) -> Take | Leave:
    return Leave(kind="no_effect", reason="hcoll is off")


def _log(_case: Case, setting: PlatformSetting) -> Take | Leave:
    if setting.value == "WARN":
        return Take(
            need="helps",
            reason="NCCL says its version, and what went wrong; its default says nothing.",
            cost="a line a rank when something is wrong",
        )
    return Leave(kind="logging", reason="WARN prints the version too, and errors")


def _visible(_case: Case, _setting: PlatformSetting) -> Take | Leave:
    return Take(need="needed", conditions="the job runs in a container")


RULES = (
    Rule(name="NCCL_SOCKET_IFNAME", topic="start_up", judge=_interface),
    Rule(name="UCX_TLS", topic="start_up", judge=_mpi),
    Rule(name="UCX_NET_DEVICES", topic="start_up", judge=_mpi),
    Rule(name="OMPI_MCA_coll", topic="start_up", judge=_hcoll),
    Rule(name="OMPI_MCA_coll_hcoll_enable", topic="start_up", judge=_hcoll),
    Rule(name="HCOLL_ENABLE_MCAST_ALL", topic="start_up", judge=_hcoll_detail),
    Rule(name="NVIDIA_IMEX_CHANNELS", topic="start_up", judge=_visible),
    Rule(name="NCCL_DEBUG", topic="log", judge=_log),
)
