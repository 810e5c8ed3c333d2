"""The name under which a version reads a setting, and what that version does without it."""

from dataclasses import dataclass

from busbw.env.recommend.case import Case, Leave
from busbw.env.versions import default_in, known_in
from busbw.facts.envvars import misspellings, variables
from busbw.model.envvar import EnvVar
from busbw.model.platform import PlatformSetting

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


def spelling(setting: PlatformSetting, case: Case) -> Spelling | Leave:
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


def is_default(value: str | None, spelled: Spelling, case: Case) -> bool:
    """Whether a value is what happens anyway."""
    variable = spelled.variable
    if variable.checked == _UNCHECKED or variable.name == _SMALLER_ONCE:
        return False
    default = default_in(variable, case.version) if variable.owner == _NCCL else variable.default
    return default is not None and value is not None and default.casefold() == value.casefold()
