"""One variable of a job: everything that is said about it, judged."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from busbw.env.recommend import checks, collectives, host, network, plugins
from busbw.env.recommend.case import Leave, SettingRule, SettingsCase, Take
from busbw.env.recommend.claims import PLACES, Claim, alternatives, chosen, is_followed, only_for_hangs
from busbw.env.versions import default_in, known_in
from busbw.facts.envvars import misspellings, variables
from busbw.model.envvar import EnvVar
from busbw.model.platform import PlatformSetting
from busbw.model.recommendation import Alternative, LeftOut, Recommended

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
        return Leave(kind="unread", reason="it is no variable of NCCL, nor of anything else that busbw knows")
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
    *checks.RULES,
    *network.TRANSPORT_RULES,
    *plugins.LIBFABRIC_RULES,
    *network.NIC_RULES,
    *host.TOPOLOGY_FILE_RULES,
    *host.AFFINITY_RULES,
    *collectives.CHANNEL_RULES,
    *network.SENDING_RULES,
    *collectives.ALGORITHM_RULES,
    *collectives.SHARP_RULES,
    *host.START_UP_RULES,
    *plugins.GOOGLE_RULES,
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
