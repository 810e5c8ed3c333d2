"""Settings that leave one kind of link in use, for checking a node: NVLink alone, or the NICs alone."""

from busbw.base.units import format_rate
from busbw.env.recommend.case import Leave, SettingRule, SettingsCase, Take
from busbw.limits.rates import rates_of_platform
from busbw.model.platform import Platform, PlatformSetting
from busbw.model.recommendation import LaunchAdvice

# A collective needs somebody to talk to.
_FEWEST = 2
_NVLS_COST = "GPU memory for the multicast buffers of each communicator"


def _peers_off(case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    if case.goal == "nic-check":
        return Take(need="needed", cost="the node's own links stay idle: never in a job")
    return Leave(kind="risky", reason="GPUs that could reach each other directly go through the NICs instead")


def _nvls(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    able = case.platform.nvlink.nvls
    if able is False:
        return Leave(kind="no_effect", reason="the switches between these GPUs cannot reduce: there is no NVLink SHARP")
    if setting.value == "0":
        if case.goal != "nic-check":
            return Leave(kind="risky", reason="reductions within a node lose the NVSwitch's part")
        unsure = "only where the GPUs have NVLink SHARP" if able is None else None
        return Take(need="needed", conditions=unsure, cost="reductions in the NVSwitch stay off: never in a job")
    if case.goal == "nvlink-check" and able:
        return Take(
            need="helps", cost=_NVLS_COST, checks=("NCCL_DEBUG=INFO prints `NVLS multicast support is available`",)
        )
    return Leave(
        kind="default",
        reason="NCCL uses NVLink SHARP by itself where the GPUs have it; NVLink itself does not depend on it",
    )


def launch(case: SettingsCase) -> tuple[LaunchAdvice, ...]:
    """Return how to start a check."""
    if not case.is_check:
        return ()
    gpus = case.platform.gpu.count
    alone = LaunchAdvice(
        option=f"one node at a time, {gpus or 'all'} ranks",
        reason="a check is of one node; start it on each by itself",
        source=("interconnect-article",),
    )
    return (
        (alone, *_expected(case.platform, gpus)) if case.goal == "nic-check" else (alone, *_limit(case.platform, gpus))
    )


def _limit(platform: Platform, gpus: int) -> tuple[LaunchAdvice, ...]:
    if gpus < _FEWEST or platform.nvlink.gpu_Bps is None:
        return ()
    return (
        LaunchAdvice(
            option=f"busbw limit --platform {platform.id}",
            reason="says what its links carry at best, to hold the result against",
            source=platform.nvlink.source,
        ),
    )


def _expected(platform: Platform, gpus: int) -> tuple[LaunchAdvice, ...]:
    """Return what a ring inside a node reaches when each GPU has its share of the ports to itself."""
    if gpus < _FEWEST or platform.nic.ports is None:
        return ()
    nic = rates_of_platform(platform).nic
    if nic is None:
        return ()
    most = format_rate(nic.rate_Bps * platform.nic.ports / gpus)
    return (
        LaunchAdvice(
            option=f"expect at most {most} of bus bandwidth",
            reason=f"{platform.nic.ports} ports of {nic.figures}, shared by {gpus} GPUs: each sends through its own",
            source=platform.nic.source,
        ),
    )


RULES = (
    SettingRule(name="NCCL_P2P_DISABLE", topic="transport", judge=_peers_off),
    SettingRule(name="NCCL_SHM_DISABLE", topic="transport", judge=_peers_off),
    SettingRule(name="NCCL_NVLS_ENABLE", topic="transport", judge=_nvls),
)
