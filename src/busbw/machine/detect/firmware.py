"""The first rung: what the firmware says of the machine."""

from collections.abc import Mapping

from busbw.facts.clouds import cloud_of, clouds, mark_of
from busbw.machine.detect.names import machine_name
from busbw.machine.detect.parts import Comparison, agrees, matches, rules_out, unseen
from busbw.model.detection import Evidence
from busbw.model.platform import Platform

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


def firmware(platform: Platform, dmi: Mapping[str, str]) -> Comparison | None:
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
