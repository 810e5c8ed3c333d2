"""The rules of busbw's findings, one declaration each in data/rules, and a finding made from one."""

from functools import cache
from importlib.resources import files

import msgspec

from busbw.base.value import Value
from busbw.model.finding import Confidence, FilePlace, Finding, RankedCause, Severity


class Rule(Value, frozen=True, kw_only=True):
    """One kind of finding. Its code is for ever."""

    code: str
    severity: Severity
    # What is found, with {names} that the finding fills in.
    title: str
    # Why a reader should care, in one or two sentences.
    why: str
    # Where the rule comes from; None: an observation of this run, which needs no authority.
    source: str | None = None


class _Rules(Value, frozen=True, kw_only=True):
    rule: tuple[Rule, ...]


@cache
def rules() -> dict[str, Rule]:
    """Return every rule by its code, in the order of its file."""
    found: dict[str, Rule] = {}
    for path in sorted(files("busbw").joinpath("data", "rules").iterdir(), key=lambda path: path.name):
        # Only the codec floor may decode for users; these files are part of the package, so an error in them is a bug.
        for declared in msgspec.toml.decode(path.read_bytes(), type=_Rules).rule:
            if found.setdefault(declared.code, declared) is not declared:
                raise ValueError(f"data/rules declares {declared.code} twice")
    return found


def rule(code: str) -> Rule:
    """Return the rule with this code. Raises KeyError for a code that is not declared."""
    return rules()[code]


def finding(
    code: str,
    *,
    evidence: str,
    fix: str | None = None,
    point: int | None = None,
    place: FilePlace | None = None,
    look: str | None = None,
    confidence: Confidence | None = None,
    effect: str | None = None,
    causes: tuple[RankedCause, ...] = (),
    **names: str | int,
) -> Finding:
    """Return a finding of the rule `code`; `names` fill the title, the others are the finding's own fields."""
    declared = rule(code)
    return Finding(
        code=code,
        severity=declared.severity,
        title=declared.title.format_map(names),
        evidence=evidence,
        fix=fix,
        source=declared.source,
        point=point,
        place=place,
        look=look,
        confidence=confidence,
        effect=effect,
        causes=causes,
    )
