"""Google's plug-ins: some bring a script that sets what they read, and refuse what is not on its list."""

import shlex

from busbw.env.recommend.case import Case, Leave, Rule, Take, on_network
from busbw.env.recommend.claims import PLACES
from busbw.model.platform import Platform, PlatformSetting
from busbw.model.recommendation import LaunchAdvice

_SCRIPT = "nccl-env-profile.sh"
# Where a platform says in which directory the plug-in and its script lie.
_DIRECTORY = "NCCL_LIB_DIR"


def _plugin(case: Case, _setting: PlatformSetting) -> Take | Leave:
    if _directories(case.platform):
        return Leave(kind="set_already", reason=f"{_SCRIPT} of the plug-in sets it to what fits its version")
    return Take(need="needed", conditions="the plug-in of this platform's images, whose variable it is")


def _directories(platform: Platform) -> tuple[PlatformSetting, ...]:
    return tuple(each for each in platform.settings if each.name == _DIRECTORY)


def launch(case: Case) -> tuple[LaunchAdvice, ...]:
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


RULES = tuple(
    Rule(name=name, topic="transport", judge=on_network(_plugin))
    for name in (
        "NCCL_GPUDIRECTTCPX_*",
        "NCCL_FASTRAK_*",
        "NCCL_SHIMNET_*",
        "NCCL_TUNER_CONFIG_PATH",
        "NCCL_LIB_DIR",
        "NCCL_DYNAMIC_CHUNK_SIZE",
    )
)
