"""The second rung: what the cloud's metadata service calls the machine."""

from busbw.base.value import Value
from busbw.facts.clouds import Ask, Cloud, clouds
from busbw.machine.detect.names import machine_name, name_in_answer
from busbw.machine.detect.parts import matches
from busbw.model.detection import Evidence, Rung
from busbw.model.platform import Platform
from busbw.model.snapshot import Answer

_PREFIX = "metadata-"
_PLAIN = Ask(path="")
_GLOB_CHARACTERS = frozenset("*?[")


class MachineName(Value, kw_only=True, frozen=True):
    """What the owner of a machine calls its kind."""

    name: str
    cloud: Cloud
    rung: Rung


def metadata_evidence(answers: tuple[Answer, ...], named: Cloud | None) -> tuple[Evidence, ...]:
    """Return what each service said; `named` is the cloud that the firmware names."""
    found = []
    for answer, cloud in _of_clouds(answers):
        name = _name(answer, cloud)
        if name is None:
            reason = answer.error or ("no name of a kind of machine" if answer.ended == "ok" else answer.ended)
            seen, says = f"no answer of the metadata service of {cloud.name}: {reason[:200]}", "nothing"
        elif named is not None and named.id != cloud.id:
            seen, says = f"{cloud.name} says {name}", f"nothing: the firmware says {named.name}"
        else:
            seen, says = f"the metadata service of {cloud.name} says {name}", f"the kind is {name}"
        found.append(Evidence(rung="metadata", seen=seen, says=says))
    return tuple(found) or (Evidence(rung="metadata", seen="no metadata service was asked", says="nothing"),)


def name_in_metadata(answers: tuple[Answer, ...], named: Cloud | None) -> MachineName | None:
    """Return what the service of the machine's own cloud calls it; None where none answered, or several did."""
    found = [
        MachineName(name=name, cloud=cloud, rung="metadata")
        for answer, cloud in _of_clouds(answers)
        if (name := _name(answer, cloud)) is not None and (named is None or named.id == cloud.id)
    ]
    return found[0] if len(found) == 1 else None


def platforms_called(name: MachineName, platforms: tuple[Platform, ...]) -> tuple[Platform, ...]:
    """Return the platforms that list exactly this name, of a size too."""
    wanted = name.name.lower()
    return tuple(
        platform
        for platform in _of_service(name.cloud, platforms)
        if wanted in {sku.lower() for sku in (*platform.match.skus, *(each.sku for each in platform.variants))}
    )


def platforms_like(name: MachineName, platforms: tuple[Platform, ...]) -> tuple[Platform, ...]:
    """Return the platforms that a pattern of theirs says have this name: patterns are wide, and may take too many."""
    return tuple(
        platform
        for platform in _of_service(name.cloud, platforms)
        if matches(name.name, [sku for sku in platform.match.skus if _GLOB_CHARACTERS & set(sku)])
    )


def _of_service(cloud: Cloud, platforms: tuple[Platform, ...]) -> tuple[Platform, ...]:
    # A machine that several clouds rent out names no service.
    return tuple(each for each in platforms if each.match.service in (None, cloud.id))


def _of_clouds(answers: tuple[Answer, ...]) -> list[tuple[Answer, Cloud]]:
    known = {f"{_PREFIX}{cloud.id}": cloud for cloud in clouds()}
    return [(answer, known[answer.name]) for answer in answers if answer.name in known]


def _name(answer: Answer, cloud: Cloud) -> str | None:
    """Return the name in an answer, whether it is the name alone or all that the service knows."""
    if answer.ended != "ok":
        return None
    asks = [_PLAIN, *(ask for ask in cloud.asks if ask.field)]
    found = next((name for ask in asks if (name := name_in_answer(ask, answer.output)) is not None), None)
    return machine_name(found) if found is not None else None
