"""The recommendation: every published name judged, in order, with what belongs to it."""

from dataclasses import replace
from itertools import groupby

from busbw.base.errors import InputError
from busbw.env.recommend import checks, collectives, host, network, plugins
from busbw.env.recommend.case import SettingsCase
from busbw.env.recommend.claims import PLACES, Claim, claims_for, followable, holds, source_called
from busbw.env.recommend.judging import judge
from busbw.env.versions import beyond, newest, parse_version, spelled
from busbw.facts.advice import advice_sources
from busbw.model.platform import Platform, PlatformSource
from busbw.model.recommendation import Goal, LaunchAdvice, LeftOut, Recommendation, Recommended


def launch(case: SettingsCase, settings: tuple[Recommended, ...]) -> tuple[LaunchAdvice, ...]:
    """Return how the settings get into the containers of a training job."""
    if case.goal != "training" or not settings:
        return ()
    names = ",".join(each.name for each in settings)
    advice = [
        LaunchAdvice(
            option=f"srun --container-env={names}",
            reason="what the image sets for these names goes before the job's environment otherwise",
            source=("interconnect-article",),
        )
    ]
    file = next((each.value for each in settings if each.name == "NCCL_TOPO_FILE"), None)
    if file is not None:
        advice.append(
            LaunchAdvice(
                option=f"srun --container-mounts={file}",
                reason="NCCL says nothing when the file is missing in the container",
                source=("interconnect-article", "pinning-article"),
            )
        )
    return tuple(advice)


_NEED_ORDER = ("needed", "helps", "check_first")
_TOPIC_ORDER = (
    "transport", "nics", "topology", "affinity", "channels", "algorithm", "sharp", "start_up", "log", "other",
)  # fmt: skip
_MOST_NODES = 1_000_000
_UNKNOWN = "generic"
_NOTHING = "what to set on a machine that nobody has described; `busbw topo show --here` shows what NCCL sees of it"


def recommend(
    platform: Platform,
    *,
    nodes: int = 2,
    collective: str | None = None,
    size_bytes: int | None = None,
    goal: Goal = "bandwidth",
    follow: str | None = None,
    nccl: str | None = None,
    siblings: tuple[Platform, ...] = (),
) -> Recommendation:
    """Return the settings for a job on a platform, each with its reason, and those that are left out with theirs.

    `siblings`: platforms to look through for the same node under another owner. A check is always of one node.
    `nccl`: by default the newest version known. Raises InputError for a version, source or number that cannot be.
    """
    version = newest() if nccl is None else parse_version(nccl)
    if not 1 <= nodes <= _MOST_NODES:
        raise InputError(f"{nodes} nodes", hint="--nodes 2")
    claims = claims_for(platform, siblings)
    case = SettingsCase(
        platform=platform,
        nodes=1 if goal in ("nvlink-check", "nic-check") else nodes,
        goal=goal,
        nccl=spelled(version),
        version=version,
        collective=collective,
        size_bytes=size_bytes,
    )
    if goal == "sharp" and nodes == 1:
        raise InputError("SHARP adds up what several nodes send, and this is one", hint="--nodes 2")
    known = followable(claims, case)
    if follow is not None:
        case = replace(case, follow=source_called(follow, known))
    settings, left_out = _judged(claims, case)
    advice = _launch(case, settings)
    return Recommendation(
        platform=platform.id,
        nodes=case.nodes,
        goal=goal,
        collective=collective,
        size_bytes=size_bytes,
        follow=case.follow,
        nccl=case.nccl,
        settings=settings,
        launch=advice,
        left_out=left_out,
        cannot_tell=_cannot_tell(case, settings, claims),
        followable=known,
        sources=_sources(platform, siblings, settings, left_out, advice),
    )


def _judged(claims: tuple[Claim, ...], case: SettingsCase) -> tuple[tuple[Recommended, ...], tuple[LeftOut, ...]]:
    """Return what is recommended, in order, and what is left out, by name."""
    by_name = {
        name: tuple(group)
        for name, group in groupby(sorted(claims, key=lambda claim: claim.name), key=lambda claim: claim.name)
    }
    verdicts = [judge(group, case) for group in by_name.values()]
    taken = [each for each in verdicts if isinstance(each, Recommended)]
    left = tuple(each for each in verdicts if isinstance(each, LeftOut))
    taken.sort(key=lambda each: (_NEED_ORDER.index(each.need), _TOPIC_ORDER.index(each.topic), each.name))
    # Two spellings of one parameter may both be published; the first is the one with the better standing.
    unique = {each.name: each for each in reversed(taken)}
    kept, dropped = host.consistent(tuple(each for each in taken if unique[each.name] is each))
    return kept, (*left, *dropped)


def _launch(case: SettingsCase, settings: tuple[Recommended, ...]) -> tuple[LaunchAdvice, ...]:
    return (
        *checks.launch(case),
        *host.launch(case),
        *plugins.libfabric_launch(settings),
        *plugins.google_launch(case),
        *launch(case, settings),
    )


def _cannot_tell(case: SettingsCase, settings: tuple[Recommended, ...], claims: tuple[Claim, ...]) -> tuple[str, ...]:
    unknown_version = beyond(case.version)
    found = [unknown_version] if unknown_version is not None else []
    platform = case.platform
    if platform.kind == "cpu":
        found.append(f"{platform.id} has no GPUs: NCCL's settings are not for it, and no others are published")
    elif all(each.topic == "log" for each in settings) and not case.is_check:
        found.append(
            _NOTHING if platform.id == _UNKNOWN else f"nobody publishes settings for {platform.id} and this job"
        )
    found += collectives.cannot_tell(case)
    if platform.kind == "gpu" and case.is_check and platform.gpu.count == 1:
        found.append("one GPU has nobody to talk to inside its node: a check needs two")
    if case.goal == "nic-check" and not platform.nic.ports:
        found.append(f"which NICs {platform.id} has for collectives: none are published")
    if platform.gpu.model is not None and "Instinct" in platform.gpu.model:
        found.append("these GPUs run RCCL, which reads other settings than NCCL; the versions here are NCCL's")
    places = sorted({each.setting.goal or "" for each in claims if each.setting.goal in PLACES and holds(each, case)})
    if len(places) > 1 and case.follow not in places:
        found.append(f"whether the job runs as {' or '.join(places)}: choose with --follow {places[0]}")
    found += network.cannot_tell(case, frozenset(each.name for each in settings))
    return tuple(found)


def _sources(
    platform: Platform,
    siblings: tuple[Platform, ...],
    settings: tuple[Recommended, ...],
    left_out: tuple[LeftOut, ...],
    advice: tuple[LaunchAdvice, ...],
) -> tuple[PlatformSource, ...]:
    """Return the sources that are cited, by id."""
    known = {each.id: each for sibling in siblings for each in sibling.sources}
    known |= advice_sources()
    known |= {each.id: each for each in platform.sources}
    cited = {source for each in settings for source in each.source}
    cited |= {source for each in left_out for source in each.source}
    cited |= {source for each in advice for source in each.source}
    cited |= {source for each in settings for other in each.alternatives for source in other.source}
    return tuple(known[each] for each in sorted(cited) if each in known)
