"""The first two rungs of the ladder: what the firmware and the cloud's metadata service call the machine."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import structs

from busbw.base.value import Value
from busbw.facts.clouds import Ask, Cloud, cloud_of, clouds, mark_of
from busbw.machine.detect.parts import PartComparison, agrees, matches, rules_out, unseen
from busbw.model.host import Answer, Evidence, Rung
from busbw.model.platform import Platform, Variant

# Every cloud's names are of these characters; a page of a captive portal is not.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LONGEST_ANSWER = 2**18


def name_in_answer(ask: Ask, text: str) -> str | None:
    """Return the name of the kind of machine that a service answered, None when the answer holds none.

    Of a path such as `projects/1/machineTypes/a3-megagpu-8g` it is the last part.
    """
    found: object = text[:_LONGEST_ANSWER].strip()
    if ask.field:
        try:
            found = msgspec.json.decode(text[:_LONGEST_ANSWER])
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        for key in ask.field:
            found = found.get(key) if isinstance(found, dict) else None
    return machine_name(found.rsplit("/", 1)[-1]) if isinstance(found, str) else None


def machine_name(text: str) -> str | None:
    """Return `text` without blanks around it when it can be the name of a kind of machine, else None."""
    stripped = text.strip()
    return stripped if _NAME.fullmatch(stripped) else None


# Worth showing where none of it names a cloud.
_SHOWN = ("sys_vendor", "product_name", "board_name", "chassis_asset_tag")
_LONGEST_SHOWN = 80


def firmware_evidence(dmi: Mapping[str, str]) -> tuple[Evidence, ...]:
    """Return what the firmware says, as far as it tells machines apart."""
    cloud = cloud_of(dmi)
    if cloud is not None:
        mark = mark_of(cloud, dmi) or ""
        says = f"{cloud.name}; not which kind of machine" if cloud.type_field is None else cloud.name
        found = [Evidence(rung="firmware", seen=_seen(mark, dmi), says=says)]
        name = type_in_firmware(dmi)
        if name is not None and cloud.type_field is not None:
            found.append(Evidence(rung="firmware", seen=_seen(cloud.type_field, dmi), says=f"the kind is {name}"))
        return tuple(found)
    shown = [name for name in _SHOWN if dmi.get(name, "").strip()]
    if not shown:
        return (Evidence(rung="firmware", seen="nothing readable under /sys/class/dmi/id", says="nothing"),)
    return tuple(Evidence(rung="firmware", seen=_seen(name, dmi), says="no cloud that is known") for name in shown)


def type_in_firmware(dmi: Mapping[str, str]) -> str | None:
    """Return the kind of machine that the firmware names, as Amazon's does; None where it names none."""
    cloud = cloud_of(dmi)
    return machine_name(dmi.get(cloud.type_field, "")) if cloud is not None and cloud.type_field is not None else None


def firmware(platform: Platform, dmi: Mapping[str, str]) -> PartComparison | None:
    """Hold what a platform's firmware says against this host's; None where nothing is published."""
    globs, service = platform.match.dmi, platform.match.service
    if not globs and service is None:
        return None
    cloud = cloud_of(dmi)
    seen = {name: dmi[name] for name in globs if dmi.get(name, "").strip()}
    for name, text in seen.items():
        if not matches(text, (globs[name],)):
            return rules_out("firmware", f"{_seen(name, dmi)}, not {globs[name]!r}")
    if service is not None and cloud is not None and cloud.id != service:
        named = next((each.name for each in clouds() if each.id == service), service)
        return rules_out("firmware", f"the firmware says {cloud.name}, not {named}")
    if cloud is not None and cloud.id == service:
        return agrees("firmware", f"the firmware says {cloud.name}")
    if seen:
        return agrees("firmware", "; ".join(_seen(name, dmi) for name in seen))
    return unseen("firmware", f"the firmware does not show {', '.join(globs) or 'a cloud'}")


def _seen(name: str, dmi: Mapping[str, str]) -> str:
    return f'{name} = "{dmi.get(name, "").strip()[:_LONGEST_SHOWN]}"'


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


def sizes_of(platform: Platform) -> tuple[Platform, ...]:
    """Return the platform as its file describes it, then each of its other sizes."""
    return (platform, *(_sized(platform, variant) for variant in platform.variants))


def size_called(platform: Platform, sku: str) -> Platform:
    """Return the platform in the size with this name.

    Where its file lists the name and does not say how that size differs, the number of CPUs and the memory are not
    known for it.
    """
    for variant in platform.variants:
        if variant.sku.lower() == sku.lower():
            return _sized(platform, variant)
    skus = platform.match.skus
    if len(skus) < 2 or skus[0].lower() == sku.lower():
        return platform
    return _without_cpu_count(structs.replace(platform, match=structs.replace(platform.match, memory_bytes=None)))


def _sized(platform: Platform, variant: Variant) -> Platform:
    sized = platform
    if variant.cores is not None and variant.cores not in (platform.cpu.cores, platform.cpu.threads):
        sized = _without_cpu_count(sized)
        sized = structs.replace(sized, cpu=structs.replace(sized.cpu, cores=variant.cores))
    if variant.memory_bytes is not None:
        sized = structs.replace(sized, match=structs.replace(sized.match, memory_bytes=variant.memory_bytes))
    if variant.gpu_memory_bytes is not None:
        sized = structs.replace(sized, gpu=structs.replace(sized.gpu, memory_bytes=variant.gpu_memory_bytes))
    if variant.nic_bps is not None:
        sized = structs.replace(sized, nic=structs.replace(sized.nic, port_bps=variant.nic_bps))
    if variant.gpus is not None and variant.gpus != platform.gpu.count:
        # The map is that of the size in the file.
        gpu = structs.replace(sized.gpu, count=variant.gpus)
        nic = structs.replace(sized.nic, ports=None)
        sized = _without_cpu_count(structs.replace(sized, gpu=gpu, nic=nic, gpus=(), nics=(), switches=()))
        sized = structs.replace(sized, cpu=structs.replace(sized.cpu, cores=variant.cores))
    return sized


def _without_cpu_count(platform: Platform) -> Platform:
    cpu = structs.replace(platform.cpu, cores=None, threads=None, numa_nodes=None, memory_bytes=None)
    return structs.replace(platform, cpu=cpu, numa=())
