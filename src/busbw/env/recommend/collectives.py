"""Algorithms and protocols: what is pinned helps one size and one call, and costs the others."""

from busbw.env.recommend.case import Case, Leave, Rule, Take, on_network
from busbw.env.recommend.sharp import algorithm as with_sharp
from busbw.model.platform import PlatformSetting

_LL128_ON_SLINGSHOT_SINCE = (2, 27)


def _algorithm(case: Case, setting: PlatformSetting) -> Take | Leave:
    if case.goal == "sharp":
        return with_sharp(case, setting)
    return Leave(
        kind="risky",
        reason=(
            "pins every call at every size: right for measuring the NICs of two nodes, "
            "slower for what another algorithm does better"
        ),
    )


def _protocol(case: Case, setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "Slingshot":
        if case.version < _LL128_ON_SLINGSHOT_SINCE:
            return Leave(kind="no_effect", reason="NCCL uses LL128 here since 2.27 only")
        return Take(
            need="helps",
            conditions="the same on every rank",
            checks=("busbw run --backend native-nccl, with it and without",),
        )
    if setting.reason is None:
        return Leave(kind="unreasoned", reason="nobody says why; it takes protocols from every call at every size")
    forced = "ll128" in (setting.value or "").lower()
    return Take(
        need="check_first",
        conditions="the same on every rank",
        cost="LL128 is then used even where NCCL would not trust it" if forced else None,
    )


def _tuner(case: Case, _setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "EFA":
        return Leave(kind="set_already", reason="the plug-in over libfabric offers its tuner by itself")
    return Take(need="check_first", checks=("NCCL_DEBUG=INFO prints `TUNER/Plugin`",))


RULES = (
    Rule(name="NCCL_ALGO", topic="algorithm", judge=on_network(_algorithm)),
    Rule(name="NCCL_PROTO", topic="algorithm", judge=on_network(_protocol)),
    Rule(name="NCCL_TUNER_PLUGIN", topic="algorithm", judge=on_network(_tuner)),
)
