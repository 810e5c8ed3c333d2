"""Algorithms and protocols: what is pinned helps one size and one call, and costs the others."""

from busbw.env.recommend.case import Leave, SettingRule, SettingsCase, Take, on_network
from busbw.facts.advice import multiprocessors
from busbw.model.platform import PlatformSetting

# From here on an algorithm that a call does not have is an error, and lists can be for one call.
_STRICT_SINCE = (2, 24)
_NVLS_SINCE = (2, 17)
_CONDITIONS = "the fabric offers SHARP to this job, and libnccl-net.so of nccl-rdma-sharp is on LD_LIBRARY_PATH"
_CHECK = "NCCL_DEBUG=INFO lists channels behind `CollNet`"


def cannot(case: SettingsCase) -> str | None:
    """Return why SHARP is out of the question, or None."""
    kind = case.platform.fabric.kind
    if kind is not None and kind != "InfiniBand":
        return f"SHARP is done by InfiniBand switches, and the network of {case.platform.id} is {kind}"
    if case.platform.fabric.sharp is False:
        return f"the fabric of {case.platform.id} does not offer SHARP"
    return None


def cannot_tell(case: SettingsCase) -> tuple[str, ...]:
    """Return what stands between a job and SHARP, or is not known about it."""
    if case.goal != "sharp":
        return ()
    refusal = cannot(case)
    if refusal is not None:
        return (refusal,)
    found = []
    if case.platform.fabric.sharp is None:
        found.append(f"it is not published whether the fabric of {case.platform.id} offers SHARP")
    if case.collective not in (None, "all_reduce"):
        found.append(f"what SHARP gains for {case.collective}: what is published is about all_reduce")
    return tuple(found)


def algorithm(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    """Judge NCCL_ALGO for a job with SHARP."""
    refusal = cannot(case)
    if refusal is not None:
        return Leave(kind="no_effect", reason=refusal)
    multicast = case.platform.nvlink.nvls is not False and case.version >= _NVLS_SINCE
    names = [name for name in (setting.value or "").split(",") if multicast or name != "NVLS"]
    strict = case.version >= _STRICT_SINCE
    return Take(
        need="helps",
        value=("allreduce:" if strict else "") + ",".join(names),
        reason="Without SHARP the job then ends with an error, instead of going over rings unseen."
        + (" For all_reduce only: since 2.24 calls that have none of these algorithms would fail." if strict else ""),
        conditions=_CONDITIONS,
        checks=(_CHECK,),
    )


def _collnet(case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    refusal = cannot(case)
    if refusal is not None:
        return Leave(kind="no_effect", reason=refusal)
    return Take(
        need="needed" if case.platform.fabric.sharp else "check_first",
        conditions=_CONDITIONS,
        cost="SHARP's resources in the switches are shared with other jobs",
        checks=(_CHECK,),
    )


def _library(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    refusal = cannot(case)
    if refusal is not None:
        return Leave(kind="no_effect", reason=refusal)
    if setting.name == "SHARP_COLL_LOG_LEVEL":
        return Leave(kind="logging", reason="prints more; set it for the first run, to see that SHARP is used")
    if setting.name == "SHARP_COLL_ENABLE_PCI_RELAXED_ORDERING":
        return Take(
            need="helps",
            reason="The NIC may write results out of order, which virtual NICs need for full rate.",
            cost="what polls the last byte of a buffer may see it before the rest",
        )
    return Take(need="helps", conditions="its default depends on the version of SHARP")


SHARP_RULES = (
    SettingRule(name="NCCL_COLLNET_ENABLE", topic="sharp", judge=on_network(_collnet)),
    SettingRule(name="SHARP_*", topic="sharp", judge=on_network(_library)),
)


_LL128_ON_SLINGSHOT_SINCE = (2, 27)


def _algorithm(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if case.goal == "sharp":
        return algorithm(case, setting)
    return Leave(
        kind="risky",
        reason=(
            "pins every call at every size: right for measuring the NICs of two nodes, "
            "slower for what another algorithm does better"
        ),
    )


def _protocol(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "Slingshot":
        if case.version < _LL128_ON_SLINGSHOT_SINCE:
            return Leave(kind="no_effect", reason="NCCL uses LL128 here since 2.27 only")
        return Take(
            need="helps",
            conditions="the same on every rank",
            checks=("busbw run --backend native-nccl, with it and without",),
        )
    if setting.reason is None:
        return Leave(
            kind="unreasoned", reason="no reason is published; it takes protocols from every call at every size"
        )
    forced = "ll128" in (setting.value or "").lower()
    return Take(
        need="check_first",
        conditions="the same on every rank",
        cost="LL128 is then used even where NCCL would not trust it" if forced else None,
    )


def _tuner(case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "EFA":
        return Leave(kind="set_already", reason="the plug-in over libfabric offers its tuner by itself")
    return Take(need="check_first", checks=("NCCL_DEBUG=INFO prints `TUNER/Plugin`",))


ALGORITHM_RULES = (
    SettingRule(name="NCCL_ALGO", topic="algorithm", judge=on_network(_algorithm)),
    SettingRule(name="NCCL_PROTO", topic="algorithm", judge=on_network(_protocol)),
    SettingRule(name="NCCL_TUNER_PLUGIN", topic="algorithm", judge=on_network(_tuner)),
)


_BUFFER_MiB = 4
# From 2.28 on NCCL lets GPUs from Blackwell on have no more.
_BLACKWELL, _FEWER_SINCE, _FEWER = 100, (2, 28), 16
# From here on more channels take enough to be felt beside computing.
_MANY = 16
_MOST_DIGITS = 4


def _fewest(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    if case.small:
        return Leave(kind="other_job", reason="short messages use few channels; more only add to their time")
    if case.is_check:
        return Leave(kind="other_job", reason="a check is of links, not of tuning")
    written = setting.value or ""
    if not (written.isascii() and written.isdecimal() and len(written) <= _MOST_DIGITS):
        return Leave(kind="risky", reason="this is not a number of channels")
    count = int(written)
    if (case.platform.gpu.sm or 0) >= _BLACKWELL and case.version >= _FEWER_SINCE and count > _FEWER:
        return Leave(kind="no_effect", reason=f"NCCL keeps to {_FEWER} on these GPUs since 2.28")
    beside = case.goal == "training" or count < _MANY
    return Take(
        need="check_first" if beside else "helps",
        reason=setting.reason,
        conditions="the same on every rank; measured within the application, which computes meanwhile",
        cost=_cost(case, count),
        checks=("the application's own step time, with it and without",),
    )


def _cost(case: SettingsCase, count: int) -> str:
    total = multiprocessors().get(case.platform.gpu.sm or 0)
    of_all = f" of the GPU's {total}" if total is not None else ""
    memory = f"{count * _BUFFER_MiB} MiB of GPU memory for each peer of a ring, at {_BUFFER_MiB} MiB a channel"
    return f"{count}{of_all} multiprocessors while a collective runs, and {memory}"


def _for_peer(_case: SettingsCase, _setting: PlatformSetting) -> Take | Leave:
    return Take(need="helps", conditions="a job of send and receive", cost="with 16 and more, slower collectives")


CHANNEL_RULES = (
    SettingRule(name="NCCL_MIN_NCHANNELS", topic="channels", judge=on_network(_fewest)),
    SettingRule(name="NCCL_MIN_CTAS", topic="channels", judge=on_network(_fewest)),
    SettingRule(name="NCCL_NCHANNELS_PER_NET_PEER", topic="channels", judge=on_network(_for_peer)),
)
