"""The recommendation: every published name judged, in order, with what belongs to it."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby

from busbw.base.errors import InputError
from busbw.base.units import format_rate
from busbw.env.recommend import collectives, host, mpi, network
from busbw.env.recommend.case import (
    PLACES,
    Claim,
    Leave,
    SettingRule,
    SettingsCase,
    Take,
    alternatives,
    chosen,
    claims_for,
    followable,
    holds,
    is_followed,
    only_for_hangs,
    source_called,
)
from busbw.env.versions import beyond, default_in, known_in, newest, parse_version, spelled
from busbw.facts.advice import advice_sources
from busbw.facts.envvars import misspellings, variables
from busbw.limits.rates import rates_of_platform
from busbw.model.envvar import EnvVar
from busbw.model.platform import Platform, PlatformSetting, PlatformSource
from busbw.model.recommendation import Alternative, LaunchAdvice, LeftOut, Recommendation, Recommended
from busbw.model.request import Goal

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


def link_launch(case: SettingsCase) -> tuple[LaunchAdvice, ...]:
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


LINK_RULES = (
    SettingRule(name="NCCL_P2P_DISABLE", topic="transport", judge=_peers_off),
    SettingRule(name="NCCL_SHM_DISABLE", topic="transport", judge=_peers_off),
    SettingRule(name="NCCL_NVLS_ENABLE", topic="transport", judge=_nvls),
)


_NCCL = "NCCL"
# A default that was only seen in recipes is no reason to leave a setting out.
_UNCHECKED = "recipe"
# The default that is known is today's; older releases of libfabric, which clusters keep for long, have 1024.
_SMALLER_ONCE = "FI_CXI_DEFAULT_CQ_SIZE"


@dataclass(frozen=True, kw_only=True, slots=True)
class Spelling:
    """How a setting is written for a version. `published_as`: where that differs from what is published."""

    variable: EnvVar
    published_as: str | None = None


def spelling(setting: PlatformSetting, case: SettingsCase) -> Spelling | Leave:
    """Return how this version of NCCL reads a setting, or why it does not."""
    known = variables()
    variable = known.get(setting.name)
    if variable is None:
        return _unknown(setting.name)
    if variable.owner != _NCCL:
        return Spelling(variable=variable)
    standing = known_in(variable, case.version)
    other = next(
        (
            known[name]
            for name in (variable.replaced_by, variable.same_as, *_older_names(variable.name))
            if name is not None and name in known and known_in(known[name], case.version) == "yes"
        ),
        None,
    )
    if other is not None and (standing != "yes" or (variable.deprecated and variable.replaced_by == other.name)):
        return Spelling(variable=other, published_as=setting.name)
    if standing == "not yet":
        return Leave(kind="not_yet", reason=f"NCCL reads it since {variable.since}, and this is {case.nccl}")
    if standing == "removed":
        return Leave(kind="removed", reason=f"NCCL no longer reads it since {variable.until}")
    return Spelling(variable=variable)


def _older_names(name: str) -> tuple[str, ...]:
    return tuple(each.name for each in variables().values() if name in (each.replaced_by, each.same_as))


def _unknown(name: str) -> Leave:
    seen = misspellings().get(name)
    if seen is None:
        return Leave(kind="unread", reason="it is not a variable of NCCL, nor of anything else that busbw knows")
    meant = " or ".join(seen.intended)
    return Leave(
        kind="unread", reason=f"nothing reads it: {meant} is meant" if meant else seen.note or "nothing reads it"
    )


def is_default(value: str | None, spelled: Spelling, case: SettingsCase) -> bool:
    """Whether a value is what happens anyway."""
    variable = spelled.variable
    if variable.checked == _UNCHECKED or variable.name == _SMALLER_ONCE:
        return False
    default = default_in(variable, case.version) if variable.owner == _NCCL else variable.default
    return default is not None and value is not None and default.casefold() == value.casefold()


RULES: tuple[SettingRule, ...] = (
    *LINK_RULES,
    *network.TRANSPORT_RULES,
    *network.LIBFABRIC_RULES,
    *network.NIC_RULES,
    *host.TOPOLOGY_FILE_RULES,
    *host.AFFINITY_RULES,
    *collectives.CHANNEL_RULES,
    *network.SENDING_RULES,
    *collectives.ALGORITHM_RULES,
    *collectives.SHARP_RULES,
    *host.START_UP_RULES,
    *network.GOOGLE_RULES,
)
# Left out for one of these, a setting is taken all the same where its source is followed.
_ARGUABLE = ("risky", "unreasoned", "logging")


def judge(claims: tuple[Claim, ...], case: SettingsCase) -> Recommended | LeftOut | None:
    """Return what becomes of one name; None where nothing that is said of it concerns this job."""
    claim = chosen(claims, case)
    if claim is None:
        return _not_now(claims)
    spelled = spelling(claim.setting, case)
    if isinstance(spelled, Leave):
        return _left(claim, spelled)
    rule = rule_for(claim.name)
    verdict = _verdict(claim, claims, rule, spelled, case)
    if isinstance(verdict, Take):
        value = verdict.value if verdict.value is not None else claim.setting.value
        return _taken(claim, verdict, rule, spelled, alternatives(claim, claims, case, value))
    return None if claim.origin == "sibling" else _left(claim, verdict)


def _verdict(
    claim: Claim, claims: tuple[Claim, ...], rule: SettingRule | None, spelled: Spelling, case: SettingsCase
) -> Take | Leave:
    if claim.setting.value is None:
        return Leave(kind="default", reason=f"leave it unset. {claim.setting.reason or ''}".strip())
    if is_default(claim.setting.value, spelled, case):
        return Leave(kind="default", reason=f"{_reader(spelled, case)} does so anyway")
    if only_for_hangs(claims, case):
        return Leave(kind="other_job", reason=f"{case.follow} sets it for a job that hangs only")
    verdict = _published(case, claim.setting) if rule is None else rule.judge(case, claim.setting)
    return _after_followed(verdict, claim, case)


def _reader(spelled: Spelling, case: SettingsCase) -> str:
    owner = spelled.variable.owner
    return f"{owner} {case.nccl}" if owner == "NCCL" else owner


def rule_for(name: str) -> SettingRule | None:
    """Return the rule for a name; None where there is none."""
    return next((rule for rule in RULES if fnmatchcase(name, rule.name)), None)


def _published(case: SettingsCase, setting: PlatformSetting) -> Take | Leave:
    """Judge a setting that no rule knows: by whether its publisher says why."""
    if setting.scope == "nccl" and not case.over_network:
        return Leave(kind="other_job", reason="published for jobs of several nodes")
    if setting.reason is None:
        return Leave(kind="unreasoned", reason="whoever publishes it does not say why")
    return Take(need="check_first", checks=("the application, with it and without",))


def _after_followed(verdict: Take | Leave, claim: Claim, case: SettingsCase) -> Take | Leave:
    """Return the verdict after what was asked to be followed, and after where it was published."""
    if isinstance(verdict, Leave) and is_followed(claim, case) and verdict.kind in _ARGUABLE:
        reason = claim.setting.reason or f"{case.follow} publishes it and does not say why."
        return Take(need="check_first", reason=reason, cost=verdict.reason)
    if isinstance(verdict, Leave) or is_followed(claim, case):
        return verdict
    if claim.origin == "sibling":
        reason = f"{verdict.reason or claim.setting.reason or ''} Published for {claim.platform}, the same node."
        return replace(verdict, need="check_first", reason=reason.strip())
    if claim.setting.goal in PLACES:
        conditions = "; ".join(filter(None, (f"the job runs as {claim.setting.goal}", verdict.conditions)))
        return replace(verdict, need="check_first", conditions=conditions)
    return verdict


def _taken(
    claim: Claim, verdict: Take, rule: SettingRule | None, spelled: Spelling, others: tuple[Alternative, ...]
) -> Recommended:
    setting = claim.setting
    return Recommended(
        name=spelled.variable.name,
        value=verdict.value if verdict.value is not None else setting.value,
        need=verdict.need,
        topic=rule.topic if rule is not None else "other",
        scope=setting.scope,
        reason=verdict.reason or setting.reason or spelled.variable.meaning,
        source=tuple(dict.fromkeys([*claim.sources, *verdict.source])),
        conditions=verdict.conditions,
        cost=verdict.cost,
        checks=verdict.checks,
        published_as=spelled.published_as,
        alternatives=others,
    )


def _left(claim: Claim, leave: Leave) -> LeftOut:
    setting = claim.setting
    return LeftOut(name=setting.name, value=setting.value, kind=leave.kind, reason=leave.reason, source=claim.sources)


_WORKAROUNDS = {
    "hang_workaround": "for a job that hangs",
    "old_libfabric": "for older versions of libfabric and the plug-in",
    "old_nccl": "for older versions of NCCL",
    "send_receive": "for a job of send and receive: --collective sendrecv",
}


def _not_now(claims: tuple[Claim, ...]) -> LeftOut | None:
    """Return that a setting is for another job, where its own platform says for which."""
    claim = next((each for each in claims if each.origin == "own" and each.setting.goal in _WORKAROUNDS), None)
    if claim is None:
        return None
    words = _WORKAROUNDS[claim.setting.goal or ""]
    reason = f"{words}. {claim.setting.reason or ''}".strip()
    return _left(claim, Leave(kind="other_job", reason=reason))


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
_NOTHING = "what to set on a machine that is not in the catalogue; `busbw topo show --here` shows what NCCL sees of it"


def recommend(
    platform: Platform,
    *,
    nodes: int = 2,
    collective: str | None = None,
    size_bytes: int | None = None,
    goal: Goal = "bandwidth",
    follow: str | None = None,
    nccl: str | None = None,
    mpi_name: str | None = None,
    siblings: tuple[Platform, ...] = (),
) -> Recommendation:
    """Return the settings for a job on a platform, each with its reason, and those that are left out with theirs.

    `siblings`: platforms to look through for the same node under another owner. A check is always of one node.
    `nccl`: by default the newest version known. `mpi_name`: settings for this MPI too; None: where there are no GPUs
    those of the MPI that is usual there, else none. Raises InputError for a version, source or number that cannot be.
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
    library = _mpi_of(platform, mpi_name)
    found = mpi.mpi_advice(case, library) if library is not None else mpi.MpiAdvice()
    if library is not None:
        settings, left_out = _with_mpi(*_without_start_up(settings, left_out), found)
    advice = (*_launch(case, settings), *found.launch)
    return Recommendation(
        platform=platform.id,
        nodes=case.nodes,
        goal=goal,
        collective=collective,
        size_bytes=size_bytes,
        follow=case.follow,
        nccl=case.nccl,
        mpi=library,
        settings=settings,
        launch=advice,
        left_out=left_out,
        cannot_tell=_cannot_tell(case, settings, claims),
        followable=known,
        sources=_sources(platform, siblings, settings, left_out, advice),
    )


def _mpi_of(platform: Platform, name: str | None) -> str | None:
    if name is not None:
        mpi.check_mpi(name)
        return name
    return mpi.usual_mpi(platform) if platform.kind == "cpu" else None


# What steers an MPI, its own messages included.
_OF_MPI = ("UCX_", "OMPI_MCA_", "HCOLL_")


def _without_start_up(
    settings: tuple[Recommended, ...], left_out: tuple[LeftOut, ...]
) -> tuple[tuple[Recommended, ...], tuple[LeftOut, ...]]:
    """Return both with what is for an MPI that only starts ranks left out: it would narrow that MPI's own messages."""
    for_starting = [each for each in settings if each.topic == "start_up" and each.name.startswith(_OF_MPI)]
    reason = "published for jobs whose MPI only starts the ranks of NCCL; here its own messages count"
    dropped = (LeftOut.of(each, "other_job", reason) for each in for_starting)
    return tuple(each for each in settings if each not in for_starting), (*left_out, *dropped)


def _with_mpi(
    settings: tuple[Recommended, ...], left_out: tuple[LeftOut, ...], found: mpi.MpiAdvice
) -> tuple[tuple[Recommended, ...], tuple[LeftOut, ...]]:
    """Return both together: what is for MPI's own messages goes before what only starts ranks."""
    same = {(each.name, each.value) for each in settings}
    own = [each for each in found.settings if (each.name, each.value) not in same]
    names = {each.name for each in own} | {each.name for each in found.left_out}
    together = [*(each for each in settings if each.name not in names), *own]
    together.sort(key=lambda each: (_NEED_ORDER.index(each.need), _TOPIC_ORDER.index(each.topic), each.name))
    return tuple(together), (*(each for each in left_out if each.name not in names), *found.left_out)


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
        *link_launch(case),
        *host.launch(case),
        *network.libfabric_launch(settings),
        *network.google_launch(case),
        *launch(case, settings),
    )


def _cannot_tell(case: SettingsCase, settings: tuple[Recommended, ...], claims: tuple[Claim, ...]) -> tuple[str, ...]:
    unknown_version = beyond(case.version)
    found = [unknown_version] if unknown_version is not None else []
    platform = case.platform
    if platform.kind == "cpu" and case.goal == "nvlink-check":
        found.append(f"{platform.id} has no GPUs: there is no NVLink to check")
    elif platform.kind == "cpu":
        pass
    elif all(each.topic == "log" for each in settings) and not case.is_check:
        found.append(
            _NOTHING if platform.id == _UNKNOWN else f"no settings are published for {platform.id} and this job"
        )
    found += collectives.cannot_tell(case)
    if platform.kind == "gpu" and case.is_check and platform.gpu.count == 1:
        found.append("one GPU has no peer inside its node: a check needs two")
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
