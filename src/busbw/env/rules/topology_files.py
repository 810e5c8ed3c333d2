"""NCCL_TOPO_FILE against the platform: a file that is published for another one."""

import re
from collections.abc import Iterator
from functools import cache

from busbw.env.rules.subject import Subject, report, setting_text, shown, where_value
from busbw.facts.platforms import all_platforms
from busbw.model.finding import Finding

# What files are called that describe a family of machines: `ndv5-topo.xml`, `ndv5/topo.xml`.
_FAMILY = re.compile(r"([a-z0-9_.]+)[-_/](?:topo|topology)[^/]*\.xml", re.IGNORECASE | re.ASCII)
_LONGEST = 1_000


def topology_files(subject: Subject) -> Iterator[Finding]:
    """Yield topology files whose name is that of another platform's."""
    platform = subject.context.platform
    if platform is None:
        return
    for each in subject.reading.assignments:
        if each.name != "NCCL_TOPO_FILE" or each.value is None or each.computed:
            continue
        family = _family(each.value)
        owners = _owners().get(family or "", frozenset())
        if owners and platform.id not in owners:
            yield report(
                "ENV085",
                at=where_value(each),
                evidence=setting_text(each),
                effect="NCCL takes its word for where GPUs, NICs and CPUs are",
                confidence="likely",
                fix=f"the file of {platform.id}, or none: busbw topo check FILE --platform {platform.id}",
                file=shown(each.value),
                other=", ".join(sorted(owners)),
                platform=platform.id,
            )


def _family(path: str) -> str | None:
    found = _FAMILY.search(path[-_LONGEST:])
    return found[1].lower() if found is not None else None


@cache
def _owners() -> dict[str, frozenset[str]]:
    """Return the platforms that each family of files is published for."""
    owners: dict[str, set[str]] = {}
    for platform in all_platforms():
        for setting in platform.settings:
            family = _family(setting.value) if setting.name == "NCCL_TOPO_FILE" and setting.value else None
            if family is not None:
                owners.setdefault(family, set()).add(platform.id)
    return {family: frozenset(ids) for family, ids in owners.items()}
