"""Send and receive between nodes: the size of their chunks, and whether they may detour over another GPU (PXN)."""

from busbw.env.recommend.case import Case, Leave, Rule, Take, on_network
from busbw.env.recommend.claims import HANGS
from busbw.model.platform import PlatformSetting

_ZERO_COPY_SINCE = (2, 24)


def _chunk(case: Case, setting: PlatformSetting) -> Take | Leave:
    if case.platform.fabric.kind == "EFA":
        return Leave(kind="set_already", reason="the plug-in sets it when it is loaded, unless the job did")
    if not case.sends:
        return Leave(kind="other_job", reason=f"only send and receive are cut into these chunks, not {case.collective}")
    if case.is_check or case.small:
        return Leave(kind="other_job", reason="messages that fit one chunk are not cut")
    return Take(
        need="check_first" if setting.reason is None else "helps",
        reason=setting.reason or "Longer chunks for send and receive: fewer of them.",
        conditions="send, receive, alltoall, gather and scatter of buffers that are not registered; as on every rank",
        cost="longer staging buffers on the GPU, in step with it",
        checks=("busbw run sendrecv alltoall --backend native-nccl -b 64K -e 1G, with each value",),
    )


def _detour(case: Case, setting: PlatformSetting) -> Take | Leave:
    if setting.goal == HANGS:
        return Take(need="needed", cost="messages to GPUs behind another rail leave by the sender's own NIC")
    if case.is_check or not case.sends:
        return Leave(kind="other_job", reason="for send and receive without copies")
    if case.version < _ZERO_COPY_SINCE:
        return Leave(kind="no_effect", reason="send and receive without copies come with NCCL 2.24")
    return Take(
        need="check_first",
        conditions="the buffers are registered with NCCL (nccl-tests -R 1, busbw run -R 1, ncclCommRegister)",
        cost="buffers that are not registered lose the detour over NVLink, and alltoall its joined messages",
        checks=("busbw run sendrecv alltoall --backend native-nccl -R 1, with it and without",),
    )


RULES = (
    Rule(name="NCCL_P2P_NET_CHUNKSIZE", topic="channels", judge=on_network(_chunk)),
    Rule(name="NCCL_PXN_DISABLE", topic="channels", judge=on_network(_detour)),
)
