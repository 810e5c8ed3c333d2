"""The job that settings are for, and what a rule may say about one of them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.env.rules.interactions_algorithms import BUFFER_BYTES, CHUNKS, STEPS
from busbw.env.versions import reaches
from busbw.facts.advice import WidelyPublished, widely_published
from busbw.model.platform import Platform, PlatformSetting
from busbw.model.recommendation import Alternative, LeftOutKind, Need, Topic
from busbw.model.request import Goal

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


Origin = Literal["own", "wide", "sibling"]

# Contexts of a platform file that say how the machine is run. A job is in one of them, and nobody says in which.
PLACES = ("vm", "gke", "azure", "oci", "coreweave")
# Contexts whose settings another job may take over.
_OTHER_WAYS = ("training",)
HANGING = "hang_workaround"
# What holds where nothing is asked for: the contexts of goals are those of `Case.goal`.
_OLD_NCCL_UNTIL = (2, 20, 3)
# Jobs of several nodes over InfiniBand or RoCE may hang with PXN.
HANGS = "hangs_with_pxn"
_HANGS_SINCE, _HANGS_UNTIL = (2, 29, 7), (2, 30, 7)
_NEVER = (HANGING, "old_libfabric")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One setting that somebody publishes. `platform`: for which."""

    setting: PlatformSetting
    origin: Origin
    platform: str

    @property
    def name(self) -> str:
        """Return the name of the variable."""
        return self.setting.name

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the ids of those who publish it."""
        return self.setting.source


def claims_for(platform: Platform, siblings: tuple[Platform, ...]) -> tuple[Claim, ...]:
    """Return everything that is published for a platform: its own first, that of the same node elsewhere last."""
    own = [Claim(setting=each, origin="own", platform=platform.id) for each in platform.settings]
    wide = [
        Claim(setting=_plain(each), origin="wide", platform=platform.id)
        for each in widely_published()
        if _is_for(each, platform)
    ]
    elsewhere = [
        Claim(setting=each, origin="sibling", platform=sibling.id)
        for sibling in siblings
        if is_same_node(platform, sibling)
        for each in sibling.settings
    ]
    return tuple(_merged([*own, *wide, *elsewhere]))


def is_same_node(one: Platform, other: Platform) -> bool:
    """Whether two platforms are the same kind of node under other owners, down to the names of the devices."""
    return one.id != other.id and _shape(one) == _shape(other) and None not in _shape(one)


def _shape(platform: Platform) -> tuple[object, ...]:
    gpu, nic = platform.gpu, platform.nic
    return gpu.model, gpu.count or None, platform.cpu.model, nic.model, nic.ports, nic.names, platform.fabric.kind


def _is_for(published: WidelyPublished, platform: Platform) -> bool:
    if platform.kind == "cpu":
        return False
    return platform.fabric.kind in published.fabrics or any(
        fnmatchcase(platform.id, pattern) for pattern in published.platforms
    )


def _plain(published: WidelyPublished) -> PlatformSetting:
    fields = {name: getattr(published, name) for name in PlatformSetting.__struct_fields__}
    return PlatformSetting(**fields)


def _merged(claims: Iterable[Claim]) -> Iterator[Claim]:
    """Yield each setting once, with the sources of all who publish it; a weaker one adds no more than its source."""
    found: dict[tuple[object, ...], Claim] = {}
    for claim in claims:
        setting = claim.setting
        key = (setting.name, setting.value, setting.goal)
        first = found.get(key)
        if first is None:
            found[key] = claim
            continue
        merged = msgspec.structs.replace(
            first.setting,
            source=tuple(dict.fromkeys([*first.setting.source, *setting.source])),
            reason=first.setting.reason or setting.reason,
        )
        found[key] = Claim(setting=merged, origin=first.origin, platform=first.platform)
    yield from found.values()


def holds(claim: Claim, case: SettingsCase) -> bool:
    """Whether a claim is meant for the job."""
    context = claim.setting.goal
    if context is None:
        return True
    if context in PLACES:
        return case.follow not in PLACES or context == case.follow
    if context in _NEVER:
        return False
    by_context = {
        "single_node": case.nodes == 1,
        "multi_node": case.nodes > 1,
        "send_receive": case.only_sends,
        HANGS: case.nodes > 1 and reaches(case.version, _HANGS_SINCE) and case.version < _HANGS_UNTIL,
        "old_nccl": case.version < _OLD_NCCL_UNTIL,
    }
    return by_context.get(context, context == case.goal)


def is_another_way(claim: Claim) -> bool:
    """Whether a claim that is not meant for the job is another way to do the same."""
    return claim.setting.goal in _OTHER_WAYS


# Says what NCCL does, not what to set.
_NO_ADVICE = ("ncclsrc",)
_NEARNESS = {"own": 0, "wide": 1, "sibling": 2}


def followable(claims: Iterable[Claim], case: SettingsCase) -> tuple[str, ...]:
    """Return what `--follow` takes for a job: every source and place that says something about its settings."""
    found: dict[str, None] = {}
    for claim in claims:
        if claim.origin != "wide" and (holds(claim, case) or is_another_way(claim)):
            found |= dict.fromkeys(source for source in claim.sources if source not in _NO_ADVICE)
            if claim.setting.goal in PLACES:
                found |= {claim.setting.goal or "": None}
    return tuple(sorted(found))


def source_called(name: str, known: tuple[str, ...]) -> str:
    """Return the source that is meant: its id, or a part of one. Raises InputError for none and for several."""
    wanted = name.strip().lower()
    found = [each for each in known if each == wanted] or [each for each in known if wanted and wanted in each]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{name!r} is part of {len(found)} sources: {', '.join(found)}", hint=f"--follow {found[0]}")
    raise InputError(
        f"{name[:80]!r} says nothing about these settings{maybe(wanted[:80], known)}",
        hint=f"sources here: {', '.join(known)}" if known else "leave out --follow: no settings are published here",
    )


def chosen(claims: tuple[Claim, ...], case: SettingsCase) -> Claim | None:
    """Return the claim to judge among those about one name; None where none is meant for this job.

    The followed source first; then what is said of this kind of job, of this platform, with a reason, by more sources.
    """
    followed = [claim for claim in claims if is_followed(claim, case) and (holds(claim, case) or is_another_way(claim))]
    meant = followed or [claim for claim in claims if holds(claim, case) and not _is_advice_against(claim)]
    if not followed and _keeps_for_hangs(claims) and all(claim.origin != "own" for claim in meant):
        return None
    return min(meant, key=lambda claim: _rank(claim, case), default=None)


def _is_advice_against(claim: Claim) -> bool:
    return claim.origin == "wide" and claim.setting.value is None


def _keeps_for_hangs(claims: tuple[Claim, ...]) -> bool:
    """Whether the platform's own site sets this for a job that hangs only."""
    return any(claim.origin == "own" and claim.setting.goal == HANGING for claim in claims)


def _rank(claim: Claim, case: SettingsCase) -> tuple[int, ...]:
    special = claim.setting.goal is not None and claim.setting.goal not in PLACES
    return (
        # Of two that the followed source has, the one for this job.
        0 if holds(claim, case) else 1,
        0 if special else 1,
        _NEARNESS[claim.origin],
        0 if claim.setting.reason else 1,
        -len(claim.sources),
    )


def is_followed(claim: Claim, case: SettingsCase) -> bool:
    """Whether the source to follow says this."""
    return case.follow is not None and (case.follow in claim.sources or case.follow == claim.setting.goal)


def in_effect(platform: Platform, name: str, value: str | None) -> str | None:
    """Return what NCCL makes of a value: chunks of send and receive are an eighth of its buffer at most."""
    if name not in CHUNKS or value is None or not value.isdecimal():
        return value
    sizes = [each.value for each in platform.settings if each.name == "NCCL_BUFFSIZE" and each.value is not None]
    buffer_bytes = max([int(size) for size in sizes if size.isdecimal()] or [BUFFER_BYTES])
    return str(min(int(value), buffer_bytes // STEPS))


def alternatives(
    taken: Claim, claims: tuple[Claim, ...], case: SettingsCase, value: str | None
) -> tuple[Alternative, ...]:
    """Return what the others say about the name, beside what was taken."""
    found: dict[str | None, Alternative] = {}
    if case.is_check:
        return ()
    for claim in claims:
        if claim.setting.goal == HANGING and claim.platform != taken.platform:
            reason = f"Sets it to {claim.setting.value} for a job that hangs only. For {claim.platform}, the same node."
            found[None] = Alternative(value=None, source=claim.sources, reason=reason)
        said = in_effect(case.platform, claim.setting.name, claim.setting.value)
        if claim is taken or said in (taken.setting.value, value) or not (holds(claim, case) or is_another_way(claim)):
            continue
        context = f" For {claim.setting.goal}." if claim.setting.goal is not None else ""
        where = f" For {claim.platform}, the same node." if claim.origin == "sibling" else ""
        reason = f"{claim.setting.reason or 'No reason is given.'}{where}{context}"
        found.setdefault(said, Alternative(value=said, source=claim.sources, reason=reason))
    return tuple(found.values())


def only_for_hangs(claims: tuple[Claim, ...], case: SettingsCase) -> bool:
    """Whether the followed source keeps a setting for jobs that hang."""
    said = [claim for claim in claims if is_followed(claim, case)]
    return bool(said) and all(claim.setting.goal == HANGING for claim in said)
