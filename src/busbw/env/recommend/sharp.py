"""Reductions in the switches of an InfiniBand fabric (SHARP), which NCCL calls CollNet."""

from busbw.env.recommend.case import Case, Leave, Rule, Take, on_network
from busbw.model.platform import PlatformSetting

# From here on an algorithm that a call does not have is an error, and lists can be for one call.
_STRICT_SINCE = (2, 24)
_NVLS_SINCE = (2, 17)
_CONDITIONS = "the fabric offers SHARP to this job, and libnccl-net.so of nccl-rdma-sharp is on LD_LIBRARY_PATH"
_CHECK = "NCCL_DEBUG=INFO lists channels behind `CollNet`"


def cannot(case: Case) -> str | None:
    """Return why SHARP is out of the question, or None."""
    kind = case.platform.fabric.kind
    if kind is not None and kind != "InfiniBand":
        return f"SHARP is done by InfiniBand switches, and the network of {case.platform.id} is {kind}"
    if case.platform.fabric.sharp is False:
        return f"the fabric of {case.platform.id} does not offer SHARP"
    return None


def cannot_tell(case: Case) -> tuple[str, ...]:
    """Return what stands between a job and SHARP, or is not known about it."""
    if case.goal != "sharp":
        return ()
    refusal = cannot(case)
    if refusal is not None:
        return (refusal,)
    found = []
    if case.platform.fabric.sharp is None:
        found.append(f"nobody says whether the fabric of {case.platform.id} offers SHARP")
    if case.collective not in (None, "all_reduce"):
        found.append(f"what SHARP gains for {case.collective}: what is published is about all_reduce")
    return tuple(found)


def algorithm(case: Case, setting: PlatformSetting) -> Take | Leave:
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


def _collnet(case: Case, _setting: PlatformSetting) -> Take | Leave:
    refusal = cannot(case)
    if refusal is not None:
        return Leave(kind="no_effect", reason=refusal)
    return Take(
        need="needed" if case.platform.fabric.sharp else "check_first",
        conditions=_CONDITIONS,
        cost="SHARP's resources in the switches are shared with other jobs",
        checks=(_CHECK,),
    )


def _library(case: Case, setting: PlatformSetting) -> Take | Leave:
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


RULES = (
    Rule(name="NCCL_COLLNET_ENABLE", topic="sharp", judge=on_network(_collnet)),
    Rule(name="SHARP_*", topic="sharp", judge=on_network(_library)),
)
