"""How many channels: each is a block of threads that holds a multiprocessor while it runs, with buffers of its own."""

from busbw.env.recommend.case import Case, Leave, Rule, Take, on_network
from busbw.facts.advice import multiprocessors
from busbw.model.platform import PlatformSetting

_BUFFER_MiB = 4
# From 2.28 on NCCL lets GPUs from Blackwell on have no more.
_BLACKWELL, _FEWER_SINCE, _FEWER = 100, (2, 28), 16
# From here on more channels take enough to be felt beside computing.
_MANY = 16
_MOST_DIGITS = 4


def _fewest(case: Case, setting: PlatformSetting) -> Take | Leave:
    if case.small:
        return Leave(kind="other_job", reason="short messages use few channels; more only add to their time")
    if case.is_check:
        return Leave(kind="other_job", reason="a check is of links, not of tuning")
    written = setting.value or ""
    if not (written.isascii() and written.isdecimal() and len(written) <= _MOST_DIGITS):
        return Leave(kind="risky", reason="this is no number of channels")
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


def _cost(case: Case, count: int) -> str:
    total = multiprocessors().get(case.platform.gpu.sm or 0)
    of_all = f" of the GPU's {total}" if total is not None else ""
    memory = f"{count * _BUFFER_MiB} MiB of GPU memory for each peer of a ring, at {_BUFFER_MiB} MiB a channel"
    return f"{count}{of_all} multiprocessors while a collective runs, and {memory}"


def _for_peer(_case: Case, _setting: PlatformSetting) -> Take | Leave:
    return Take(need="helps", conditions="a job of send and receive", cost="with 16 and more, slower collectives")


RULES = (
    Rule(name="NCCL_MIN_NCHANNELS", topic="channels", judge=on_network(_fewest)),
    Rule(name="NCCL_MIN_CTAS", topic="channels", judge=on_network(_fewest)),
    Rule(name="NCCL_NCHANNELS_PER_NET_PEER", topic="channels", judge=on_network(_for_peer)),
)
