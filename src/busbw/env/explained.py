"""Everything there is to say of one variable: what it does, who sets it to what, and what is in force."""

from collections.abc import Iterable

from busbw.env.layers import exports_of, layers
from busbw.env.misspelled import read_name
from busbw.env.values import read_value
from busbw.env.versions import beyond, default_in, known_in, newest, parse_version, spelled
from busbw.facts.envvars import misspellings, variables
from busbw.model.envvar import EnvVar, Explanation, InForce, PublishedValue
from busbw.model.platform import Platform, PlatformSetting
from busbw.model.settings import JobEnvironment

_Version = tuple[int, ...]


def explain(
    name: str,
    *,
    nccl: _Version | None = None,
    platforms: Iterable[Platform] = (),
    surroundings: JobEnvironment | None = None,
) -> Explanation:
    """Return what is known of `name`, and its value in force in `surroundings`.

    `nccl`: the version of NCCL to tell it for; None: that of the surroundings, else the newest known.
    """
    found = surroundings.nccl if surroundings is not None else None
    asked = nccl or (parse_version(found) if found is not None else newest())
    var = variables().get(name)
    # Of other readers no versions are known, and their facts are told as they stand.
    version = asked if var is not None and var.owner == "NCCL" else None
    return Explanation(
        name=name,
        read=read_name(name),
        variable=var,
        version=spelled(version) if version is not None else None,
        version_note=beyond(version) if version is not None else None,
        standing=known_in(var, version) if var is not None and version is not None else None,
        default=_default(var, version),
        mistaken=misspellings().get(name),
        misspellings=tuple(each for each in misspellings().values() if name in each.intended and name != each.seen),
        recipes=_recipes(name, platforms),
        exports=exports_of(name),
        in_force=_in_force(name, var, asked, surroundings) if surroundings is not None else None,
    )


def _default(var: EnvVar | None, version: _Version | None) -> str | None:
    if var is None:
        return None
    return default_in(var, version) if version is not None else var.default


def _in_force(name: str, var: EnvVar | None, nccl: _Version, surroundings: JobEnvironment) -> InForce:
    choices = layers(surroundings, nccl).explain(name)
    value = choices[0].value if choices else None
    return InForce(
        where=surroundings.where,
        choices=choices,
        understood=read_value(var, value, nccl) if var is not None and value is not None else None,
        unseen=surroundings.unseen,
    )


def _recipes(name: str, platforms: Iterable[Platform]) -> tuple[PublishedValue, ...]:
    """Return what platforms set a variable to; those that agree in everything but the platform are one recipe."""
    held: dict[tuple[str | None, str | None, str | None, tuple[str, ...]], list[str]] = {}
    for platform in platforms:
        for setting in platform.settings:
            if setting.name == name:
                key = (setting.value, setting.goal, setting.reason, _sources(platform, setting))
                held.setdefault(key, []).append(platform.id)
    return tuple(
        PublishedValue(value=value, platforms=tuple(ids), goal=goal, reason=reason, source=source)
        for (value, goal, reason, source), ids in held.items()
    )


def _sources(platform: Platform, setting: PlatformSetting) -> tuple[str, ...]:
    references = {source.id: source.reference for source in platform.sources}
    return tuple(references.get(each, each) for each in setting.source)
