"""The job that settings are for, and what a rule may say about one of them."""

from collections.abc import Callable
from dataclasses import dataclass

from busbw.model.platform import Platform, PlatformSetting
from busbw.model.recommendation import Goal, LeftOutKind, Need, Topic

# Up to here a message is sent by the protocols for low latency, and channels and queue pairs only add to its time.
_SMALL_BYTES = 64 * 2**10
# Calls that send between pairs of ranks, which is what chunks and PXN of send and receive are for.
_SENDING = frozenset({"alltoall", "alltoallv", "alltoall_2dh", "sendrecv", "gather", "scatter"})
_CHECKS = ("nvlink-check", "nic-check")


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingsCase:
    """One job. `version`: of NCCL, as a tuple; None for `collective` and `size_bytes`: everything alike."""

    platform: Platform
    nodes: int
    goal: Goal
    nccl: str
    version: tuple[int, ...]
    collective: str | None = None
    size_bytes: int | None = None
    follow: str | None = None

    @property
    def over_network(self) -> bool:
        """Whether anything passes through the NICs."""
        return self.nodes > 1 or self.goal == "nic-check"

    @property
    def is_check(self) -> bool:
        """Whether one node is to be checked, rather than a job run."""
        return self.goal in _CHECKS

    @property
    def small(self) -> bool:
        """Whether the messages that matter are short."""
        return self.goal == "latency" or (self.size_bytes is not None and self.size_bytes <= _SMALL_BYTES)

    @property
    def sends(self) -> bool:
        """Whether calls between pairs of ranks may matter."""
        return self.collective is None or self.collective in _SENDING

    @property
    def only_sends(self) -> bool:
        """Whether nothing but calls between pairs of ranks matters."""
        return self.collective in _SENDING


@dataclass(frozen=True, kw_only=True, slots=True)
class Take:
    """The setting is worth recommending. None: as it is published."""

    need: Need
    reason: str | None = None
    # Instead of the published name and value, where another says the same to this version.
    value: str | None = None
    conditions: str | None = None
    cost: str | None = None
    checks: tuple[str, ...] = ()
    # Who says so, beside those who publish it.
    source: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Leave:
    """The setting is not worth recommending for this job."""

    kind: LeftOutKind
    reason: str


# How one published setting is judged for one job.
Judge = Callable[[SettingsCase, PlatformSetting], Take | Leave]


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingRule:
    """Which setting a judge is for. `name` may end in `*`."""

    name: str
    topic: Topic
    judge: Judge


def on_network(judge: Judge) -> Judge:
    """Return a judge that leaves the setting out where nothing passes through the NICs, and else asks `judge`."""

    def judged(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
        if not case.over_network:
            return Leave(kind="other_job", reason="nothing passes through the NICs of one node")
        return judge(case, setting)

    return judged
