"""libfabric below NCCL's plug-in: Slingshot (CXI) and EFA."""

from busbw.env.recommend.case import Case, Leave, Rule, Take, on_network
from busbw.model.platform import PlatformSetting
from busbw.model.recommendation import LaunchAdvice, Recommended

# The guide's set was measured as a whole: 162.69 GB/s on two nodes.
_MEASURED_SET = "Part of the set with which the site measured; nobody says what it does by itself."
_REASONS = {
    "FI_CXI_DEFAULT_CQ_SIZE": "A completion queue long enough for many outstanding messages.",
    "FI_CXI_DEFAULT_TX_SIZE": "Holds the sends that the other side has not matched yet; a full queue stops the sender.",
    "FI_CXI_RX_MATCH_MODE": "Goes on when the NIC runs out of entries to match messages with.",
    "FI_CXI_RDZV_PROTO": "The rendezvous protocol that goes with a network set up without its own.",
    "FI_CXI_RDZV_THRESHOLD": "No eager messages, with which NCCL may hang.",
    "FI_CXI_RDZV_GET_MIN": "No eager messages, with which NCCL may hang.",
    "FI_CXI_RDZV_EAGER_SIZE": "No eager messages, with which NCCL may hang.",
}
_DEADLOCKS = frozenset({"FI_CXI_DISABLE_HOST_REGISTER", "FI_MR_CACHE_MONITOR"})
_HELPS = frozenset({"FI_CXI_DEFAULT_CQ_SIZE", "FI_CXI_RX_MATCH_MODE"})
_NEEDS_NETWORK_OPTION = "FI_CXI_RDZV_PROTO"
_NETWORK_OPTION = "srun --network=disable_rdzv_get"


def _slingshot(case: Case, setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind != "Slingshot":
        return Leave(kind="no_effect", reason="there is no Slingshot here")
    said = (_REASONS.get(setting.name), setting.reason)
    reason = " ".join(filter(None, said)) or _MEASURED_SET
    if setting.name in _DEADLOCKS:
        return Take(need="needed", reason=reason)
    if setting.name in _HELPS:
        return Take(
            need="helps",
            reason=_REASONS[setting.name],
            cost="host memory, in step with it" if "SIZE" in setting.name else None,
        )
    return Take(
        need="check_first",
        reason=reason,
        conditions=f"the job is started with {_NETWORK_OPTION}" if setting.name == _NEEDS_NETWORK_OPTION else None,
        cost="longer times for short messages" if "RDZV" in setting.name else None,
        checks=("the application, and busbw run --backend native-nccl -b 8 -e 1G, with it and without",),
    )


def _gpu_aware(_case: Case, _setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="needed",
        conditions="the program uses Cray MPICH, and hands it no GPU memory",
        cost="MPI no longer takes GPU memory",
    )


def _efa(_case: Case, setting: PlatformSetting) -> Take | Leave:
    if setting.name == "FI_PROVIDER":
        return Take(need="helps", reason="No other provider is taken when EFA is missing: the job says so instead.")
    return Leave(kind="no_effect", reason=setting.reason or "today's libfabric and plug-in do without it")


def launch(settings: tuple[Recommended, ...]) -> tuple[LaunchAdvice, ...]:
    """Return the launcher's option without which a setting of Slingshot does harm."""
    if all(each.name != _NEEDS_NETWORK_OPTION for each in settings):
        return ()
    return (
        LaunchAdvice(
            option=_NETWORK_OPTION,
            reason=f"belongs to {_NEEDS_NETWORK_OPTION}: set both or neither",
            source=("isambard-guide",),
        ),
    )


RULES = (
    Rule(name="FI_CXI_*", topic="transport", judge=on_network(_slingshot)),
    Rule(name="FI_MR_CACHE_MONITOR", topic="transport", judge=on_network(_slingshot)),
    Rule(name="FI_HMEM_*", topic="transport", judge=on_network(_slingshot)),
    Rule(name="MPICH_GPU_SUPPORT_ENABLED", topic="start_up", judge=on_network(_gpu_aware)),
    Rule(name="FI_PROVIDER", topic="transport", judge=on_network(_efa)),
    Rule(name="FI_EFA_*", topic="transport", judge=on_network(_efa)),
)
