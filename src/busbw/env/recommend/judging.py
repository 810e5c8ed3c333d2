"""One variable of a job: everything that is said about it, judged."""

from dataclasses import replace
from fnmatch import fnmatchcase

from busbw.env.recommend import (
    channels,
    checks,
    collectives,
    google,
    host,
    network,
    nics,
    plugins,
    sending,
    sharp,
    start_up,
    topology_file,
)
from busbw.env.recommend.case import Case, Leave, Rule, Take
from busbw.env.recommend.claims import PLACES, Claim
from busbw.env.recommend.disagreements import alternatives, chosen, is_followed, only_for_hangs
from busbw.env.recommend.names import Spelling, is_default, spelling
from busbw.model.platform import PlatformSetting
from busbw.model.recommendation import Alternative, LeftOut, Recommended

RULES: tuple[Rule, ...] = (
    *checks.RULES,
    *network.RULES,
    *plugins.RULES,
    *nics.RULES,
    *topology_file.RULES,
    *host.RULES,
    *channels.RULES,
    *sending.RULES,
    *collectives.RULES,
    *sharp.RULES,
    *start_up.RULES,
    *google.RULES,
)
# Left out for one of these, a setting is taken all the same where its source is followed.
_ARGUABLE = ("risky", "unreasoned", "logging")


def judge(claims: tuple[Claim, ...], case: Case) -> Recommended | LeftOut | None:
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


def _verdict(claim: Claim, claims: tuple[Claim, ...], rule: Rule | None, spelled: Spelling, case: Case) -> Take | Leave:
    if claim.setting.value is None:
        return Leave(kind="default", reason=f"leave it unset. {claim.setting.reason or ''}".strip())
    if is_default(claim.setting.value, spelled, case):
        return Leave(kind="default", reason=f"{_reader(spelled, case)} does so anyway")
    if only_for_hangs(claims, case):
        return Leave(kind="other_job", reason=f"{case.follow} sets it for a job that hangs only")
    verdict = _published(case, claim.setting) if rule is None else rule.judge(case, claim.setting)
    return _after_followed(verdict, claim, case)


def _reader(spelled: Spelling, case: Case) -> str:
    owner = spelled.variable.owner
    return f"{owner} {case.nccl}" if owner == "NCCL" else owner


def rule_for(name: str) -> Rule | None:
    """Return the rule for a name; None where there is none."""
    return next((rule for rule in RULES if fnmatchcase(name, rule.name)), None)


def _published(case: Case, setting: PlatformSetting) -> Take | Leave:
    """Judge a setting that no rule knows: by whether its publisher says why."""
    if setting.scope == "nccl" and not case.over_network:
        return Leave(kind="other_job", reason="published for jobs of several nodes")
    if setting.reason is None:
        return Leave(kind="unreasoned", reason="whoever publishes it does not say why")
    return Take(need="check_first", checks=("the application, with it and without",))


def _after_followed(verdict: Take | Leave, claim: Claim, case: Case) -> Take | Leave:
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
    claim: Claim, verdict: Take, rule: Rule | None, spelled: Spelling, others: tuple[Alternative, ...]
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
