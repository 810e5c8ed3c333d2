"""Which of several sources is followed, and what the others say."""

from collections.abc import Iterable

from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.env.recommend.case import Case
from busbw.env.recommend.claims import HANGING, PLACES, Claim, holds, is_another_way
from busbw.model.recommendation import Alternative

# Says what NCCL does, not what to set.
_NO_ADVICE = ("ncclsrc",)
_NEARNESS = {"own": 0, "wide": 1, "sibling": 2}


def followable(claims: Iterable[Claim], case: Case) -> tuple[str, ...]:
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
        hint=f"sources here: {', '.join(known)}" if known else "leave out --follow: nobody publishes settings here",
    )


def chosen(claims: tuple[Claim, ...], case: Case) -> Claim | None:
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


def _rank(claim: Claim, case: Case) -> tuple[int, ...]:
    special = claim.setting.goal is not None and claim.setting.goal not in PLACES
    return (
        # Of two that the followed source has, the one for this job.
        0 if holds(claim, case) else 1,
        0 if special else 1,
        _NEARNESS[claim.origin],
        0 if claim.setting.reason else 1,
        -len(claim.sources),
    )


def is_followed(claim: Claim, case: Case) -> bool:
    """Whether the source to follow says this."""
    return case.follow is not None and (case.follow in claim.sources or case.follow == claim.setting.goal)


def alternatives(taken: Claim, claims: tuple[Claim, ...], case: Case, value: str | None) -> tuple[Alternative, ...]:
    """Return what the others say about the name, beside what was taken."""
    found: dict[str | None, Alternative] = {}
    if case.is_check:
        return ()
    for claim in claims:
        if claim.setting.goal == HANGING and claim.platform != taken.platform:
            reason = f"Sets it to {claim.setting.value} for a job that hangs only. For {claim.platform}, the same node."
            found[None] = Alternative(value=None, source=claim.sources, reason=reason)
        said = claim.setting.value
        if claim is taken or said in (taken.setting.value, value) or not (holds(claim, case) or is_another_way(claim)):
            continue
        context = f" For {claim.setting.goal}." if claim.setting.goal is not None else ""
        where = f" For {claim.platform}, the same node." if claim.origin == "sibling" else ""
        reason = f"{claim.setting.reason or 'No reason is given.'}{where}{context}"
        found.setdefault(said, Alternative(value=said, source=claim.sources, reason=reason))
    return tuple(found.values())


def only_for_hangs(claims: tuple[Claim, ...], case: Case) -> bool:
    """Whether the followed source keeps a setting for jobs that hang."""
    said = [claim for claim in claims if is_followed(claim, case)]
    return bool(said) and all(claim.setting.goal == HANGING for claim in said)
