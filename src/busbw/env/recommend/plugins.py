"""libfabric below NCCL's plug-in: Slingshot (CXI) and EFA."""

import shlex

from busbw.env.recommend.case import PLACES, Leave, SettingRule, SettingsCase, Take, on_network
from busbw.model.platform import Platform, PlatformSetting
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


def _slingshot(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
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


def _gpu_aware(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Take(
        need="needed",
        conditions="the program uses Cray MPICH, and hands it no GPU memory",
        cost="MPI no longer takes GPU memory",
    )


def _efa(_case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if setting.name == "FI_PROVIDER":
        return Take(need="helps", reason="No other provider is taken when EFA is missing: the job says so instead.")
    return Leave(kind="no_effect", reason=setting.reason or "today's libfabric and plug-in do without it")


def libfabric_launch(settings: tuple[Recommended, ...]) -> tuple[LaunchAdvice, ...]:
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


LIBFABRIC_RULES = (
    SettingRule(name="FI_CXI_*", topic="transport", judge=on_network(_slingshot)),
    SettingRule(name="FI_MR_CACHE_MONITOR", topic="transport", judge=on_network(_slingshot)),
    SettingRule(name="FI_HMEM_*", topic="transport", judge=on_network(_slingshot)),
    SettingRule(name="MPICH_GPU_SUPPORT_ENABLED", topic="start_up", judge=on_network(_gpu_aware)),
    SettingRule(name="FI_PROVIDER", topic="transport", judge=on_network(_efa)),
    SettingRule(name="FI_EFA_*", topic="transport", judge=on_network(_efa)),
)


_SCRIPT = "nccl-env-profile.sh"
# Where a platform says in which directory the plug-in and its script lie.
_DIRECTORY = "NCCL_LIB_DIR"


def _plugin(case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    if _directories(case.platform):
        return Leave(kind="set_already", reason=f"{_SCRIPT} of the plug-in sets it to what fits its version")
    return Take(need="needed", conditions="the plug-in of this platform's images, whose variable it is")


def _directories(platform: Platform) -> tuple[PlatformSetting, ...]:
    return tuple(each for each in platform.settings if each.name == _DIRECTORY)


def google_launch(case: SettingsCase) -> tuple[LaunchAdvice, ...]:
    """Return which script sets what the plug-in reads, for each place in which the job may run."""
    if not case.over_network:
        return ()
    return tuple(
        LaunchAdvice(
            option=f"source {shlex.quote(f'{each.value}/{_SCRIPT}')}",
            reason=(
                f"in {each.goal or 'every job'}: sets what the plug-in reads; set nothing that it does not, "
                "or its checker may refuse the job"
            ),
            source=each.source,
        )
        for each in _directories(case.platform)
        if case.follow not in PLACES or each.goal in (None, case.follow)
    )


GOOGLE_RULES = tuple(
    SettingRule(name=name, topic="transport", judge=on_network(_plugin))
    for name in (
        "NCCL_GPUDIRECTTCPX_*",
        "NCCL_FASTRAK_*",
        "NCCL_SHIMNET_*",
        "NCCL_TUNER_CONFIG_PATH",
        "NCCL_LIB_DIR",
        "NCCL_DYNAMIC_CHUNK_SIZE",
    )
)
