"""What is published for a job: by the platform, beside it, and for the same node elsewhere."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from busbw.env.recommend.case import Case
from busbw.env.versions import reaches
from busbw.facts.advice import WidelyPublished, widely_published
from busbw.model.platform import Platform, PlatformSetting

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


def holds(claim: Claim, case: Case) -> bool:
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
