"""Lists of devices: how they are written, and what they take of the machine they are for."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from busbw.base.text import listed
from busbw.env.hca import (
    INTERFACES,
    compare,
    compute_nics,
    device_names,
    device_problems,
    frontend_devices,
    lists_alike,
    parse_devices,
)
from busbw.env.rules.situations import Situation, spans_nodes
from busbw.env.rules.subject import SettingsSubject, place_of, place_of_value, report, setting_text, shown
from busbw.facts.platforms import all_platforms
from busbw.model.envvar import DeviceComparison, DeviceList
from busbw.model.finding import Finding
from busbw.model.platform import Platform
from busbw.model.settings import Assignment, SettingsReading

_HCA = "NCCL_IB_HCA"
_CODES = {"duplicate": "ENV042", "operator": "ENV041"}
# A shape is asked for in the lines right before its list.
_LINES_BEFORE = 4
_LONGEST_LINE = 400
_SHORTEST_NAME = 6
_FEW = 6
# Names that are meant as beginnings.
_DRIVERS = ("mlx4", "mlx5")
# What network interfaces are called, which NCCL_IB_HCA does not look at.
_INTERFACES = ("eth", "en", "bond", "hsn")
# As the kernel and Cray call interfaces; RDMA devices are mlx5_0, bnxt_re0, rocep1s0, ibp12s0, hfi1_0 and the like.
_NO_RDMA = re.compile(r"(?:eth|ib|hsn|ipogif)\d+|(?:ens|eno)\d+\w*|enp\d+s\d+\w*|lo", re.ASCII)
_HOST_NETWORK = re.compile(r"\s*hostNetwork:\s*[\"']?(?:true|\{\{)")


def devices(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield what is wrong with lists of devices."""
    reported: set[tuple[str, tuple[str, ...], frozenset[str]]] = set()
    for each in subject.reading.assignments:
        if each.unsets or not (each.name.endswith(_HCA) or each.name in INTERFACES):
            continue
        texts = (each.value,) if each.value else each.alternatives
        key = each.target or each.name, texts, frozenset(_shapes_before(subject.reading, each))
        # A script that says the same a thousand times is told once.
        if key in reported:
            continue
        reported.add(key)
        if each.form == "table":
            yield from _table(each, texts[0])
            continue
        found = [list(_list(subject, each, text)) for text in texts]
        # Where branches decide, one list that is right stands for all.
        if found and all(found):
            yield from found[0]


def _table(each: Assignment, text: str) -> Iterator[Finding]:
    """Yield what a program's list of NICs for a machine has too much or too little, against what is published of it."""
    platform = _machines().get((each.target or "").lower())
    if platform is None or not compute_nics(platform):
        return
    compared = compare(parse_devices(text), compute_nics(platform), frontend_devices(platform))
    said = [
        f"{word} {listed(names, _FEW)}"
        for word, names in (
            ("leaves out", compared.missed),
            ("names the front-end ports", compared.foreign),
            ("names what is not there:", compared.choice.absent),
        )
        if names
    ]
    if said:
        yield report(
            "ENV050",
            at=place_of(each),
            evidence=f"{len(parse_devices(text).entries)} names; {platform.id} has {len(compute_nics(platform))}",
            confidence="likely",
            fix=", ".join(compute_nics(platform)),
            machine=each.target or "",
            what=" and ".join(said),
        )


def _has_devices_of_host(reading: SettingsReading) -> bool:
    """Whether the ranks have the host's NICs by their names: a pod has the ones it is given, unless it says so."""
    return reading.language != "kubernetes" or any(_HOST_NETWORK.match(line) is not None for line in reading.lines)


def _list(subject: SettingsSubject, each: Assignment, text: str) -> Iterator[Finding]:
    chosen = parse_devices(text)
    if each.name not in (_HCA, *INTERFACES):
        yield from _of_shape(subject.reading, each, text, None)
        return
    platform = subject.context.platform
    is_held = each.name == _HCA and platform is not None and bool(compute_nics(platform))
    held = platform if is_held and _has_devices_of_host(subject.reading) else None
    interfaces = list(_interfaces(each, chosen)) if each.name == _HCA and held is None else []
    if interfaces:
        yield from interfaces
        return
    against = list(_against(subject, each, text, chosen, held)) if each.name == _HCA else []
    reported = {found.code for found in against}
    problems = device_problems(chosen, each.name, subject.version)
    for problem in problems:
        code = _CODES.get(problem.kind, "ENV047")
        # A repeated name is told with what it stands for.
        if not (code == "ENV042" and "ENV043" in reported):
            yield report(
                code,
                at=place_of_value(each, problem.offset),
                evidence=setting_text(each),
                effect=problem.problem,
                fix=f"name {shown(problem.written)} once" if code == "ENV042" else None,
                name=each.name,
                entry=problem.written,
                written=shown(problem.written),
                problem=problem.problem,
            )
    # A list that is wrong already need not be told what else it may take.
    yield from (found for found in against if not (problems and found.code == "ENV049"))


def _interfaces(each: Assignment, chosen: DeviceList) -> Iterator[Finding]:
    """Yield a list of RDMA devices that names network interfaces alone."""
    names = [entry.name for entry in chosen.entries]
    what = "is a network interface" if len(names) == 1 else "are network interfaces"
    if names and not chosen.exclude and all(_NO_RDMA.fullmatch(name) for name in names):
        yield report(
            "ENV047",
            at=place_of_value(each),
            evidence=setting_text(each),
            confidence="likely",
            effect="no device matches, and NCCL goes over TCP sockets",
            fix=f"NCCL_SOCKET_IFNAME for interfaces; {_HCA} for what `ibv_devices` lists",
            source="NVIDIA/nccl, src/transport/net_ib.cc: names of ibv_get_device_list",
            name=_HCA,
            problem=f"{listed(names, _FEW)} {what}, and no RDMA device",
        )


def _against(
    subject: SettingsSubject, each: Assignment, text: str, chosen: DeviceList, platform: Platform | None
) -> Iterator[Finding]:
    asked = _shapes_before(subject.reading, each)
    if platform is None or (asked and platform.id not in asked):
        wrong = list(_of_shape(subject.reading, each, text, asked))
        yield from wrong
        if not wrong:
            yield from _prefixes(each, chosen)
        return
    owners = lists_alike(text, _published())
    if owners and platform.id not in owners:
        yield _swapped(each, owners, platform.id, "certain")
        return
    others = tuple(name for name in frontend_devices(platform) if not name.startswith(_INTERFACES))
    compared = compare(chosen, compute_nics(platform), others)
    yield from _compared(each, chosen, compared, platform)


def _compared(
    each: Assignment, chosen: DeviceList, compared: DeviceComparison, platform: Platform
) -> Iterator[Finding]:
    evidence = setting_text(each)
    names = [entry.name for entry in chosen.entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice and compared.missed and len(names) == len(compute_nics(platform)):
        yield report(
            "ENV043",
            at=place_of_value(each, _second(chosen, twice[0])),
            evidence=f"{evidence}; {platform.id} has {len(compute_nics(platform))} compute NICs",
            effect=f"{listed(compared.missed, _FEW)} carries nothing on any node",
            fix=f"{compared.missed[0]} instead of the second {twice[0]}",
            name=each.name,
            entry=twice[0],
            missing=listed(compared.missed, _FEW),
        )
    elif compared.missed and (compared.choice.taken or chosen.exclude):
        yield report(
            "ENV046",
            at=place_of_value(each),
            evidence=evidence,
            confidence="likely" if len(compared.missed) * 2 <= len(compute_nics(platform)) else "possible",
            effect=f"{len(compared.missed)} of {len(compute_nics(platform))} compute NICs carry nothing",
            fix=_whole(platform),
            name=each.name,
            missing=listed(compared.missed, _FEW),
        )
    if compared.choice.absent and not chosen.exclude:
        yield report(
            "ENV048",
            at=place_of_value(each, chosen.text.find(compared.choice.absent[0])),
            evidence=evidence,
            confidence="likely",
            effect="they are left out" if compared.choice.taken else "no device is left: TCP sockets",
            fix=_whole(platform),
            platform=platform.id,
            entry=listed(compared.choice.absent, _FEW),
        )
    also = dict(compared.choice.prefixes)
    for entry, more in also.items():
        yield _prefix(each, entry, chosen.text.find(entry), listed(more, _FEW))
    foreign = tuple(name for name in compared.foreign if not any(name in more for more in also.values()))
    if foreign:
        yield report(
            "ENV045",
            at=place_of_value(each),
            evidence=evidence,
            confidence="likely",
            effect="NCCL counts it among the NICs for collectives",
            fix=_whole(platform),
            name=each.name,
            foreign=listed(foreign, _FEW),
            what=f"{'is a front-end port' if len(foreign) == 1 else 'are front-end ports'} of {platform.id}",
        )


def _prefixes(each: Assignment, chosen: DeviceList) -> Iterator[Finding]:
    """Yield entries that are the beginning of another name, as far as that is seen without the machine."""
    if chosen.exact:
        return
    names = {entry.name for entry in chosen.entries}
    for entry in chosen.entries:
        gaps = _gaps(entry.name, names)
        if gaps:
            yield _prefix(each, entry.written, entry.offset, listed(gaps, _FEW))
            return
    for entry in chosen.entries:
        if entry.name not in _DRIVERS and re.search(r"(?<![0-9])[1-9]$", entry.name, re.ASCII) is not None:
            yield report(
                "ENV049",
                at=place_of_value(each, entry.offset),
                evidence=setting_text(each),
                confidence="possible",
                effect=f"it takes {entry.name}0 to {entry.name}9 too, where there are such",
                fix=f'{each.name}="{_exactly(chosen)}"',
                entry=entry.name,
            )
            return


def _gaps(name: str, names: set[str]) -> tuple[str, ...]:
    """Return the names that a beginning takes beside those that are listed: `mlx5_1` with 10 to 12 and 14 takes 13."""
    if not name[-1:].isdecimal():
        return ()
    numbers = {int(other[len(name) :]) for other in names if other.startswith(name) and other[len(name) :].isdecimal()}
    small = {number for number in numbers if number < 10}
    return tuple(f"{name}{number}" for number in range(max(small, default=0)) if number not in small)


def _prefix(each: Assignment, entry: str, offset: int, also: str) -> Finding:
    return report(
        "ENV040",
        at=place_of_value(each, max(0, offset)),
        evidence=setting_text(each),
        confidence="likely",
        effect="names are beginnings unless the list begins with =",
        fix=f'{each.name}="{_exactly(parse_devices(each.value or ""))}"',
        entry=entry,
        also=also,
    )


def _exactly(chosen: DeviceList) -> str:
    entries = ",".join(entry.written for entry in chosen.entries)
    return f"{'^' if chosen.exclude else ''}={entries}"


def _of_shape(reading: SettingsReading, each: Assignment, text: str, asked: set[str] | None) -> Iterator[Finding]:
    """Yield a list that is published for another shape than the lines before it ask for."""
    asked = _shapes_before(reading, each) if asked is None else asked
    owners = lists_alike(text, _published()) if asked else ()
    if owners and not asked & set(owners):
        yield _swapped(each, owners, " and ".join(sorted(asked)), "likely")


def _swapped(each: Assignment, owners: tuple[str, ...], platform: str, confidence: str) -> Finding:
    return report(
        "ENV044",
        at=place_of_value(each),
        evidence=setting_text(each),
        confidence="certain" if confidence == "certain" else "likely",
        effect="front-end ports are taken and compute NICs left out",
        fix=f'{each.name}="{_published().get(platform.split(" ", maxsplit=1)[0], "")}"',
        name=each.name,
        other=" and ".join(owners),
        platform=platform,
    )


def _shapes_before(reading: SettingsReading, each: Assignment) -> set[str]:
    """Return the platforms whose names stand in the lines right before an assignment, and in its own."""
    lines = [line for line in reading.lines[max(0, each.line - 20) : each.line] if line.strip()][-_LINES_BEFORE:]
    for place, line in enumerate(reversed(lines)):
        own = line[: each.column] if place == 0 else line
        found = {
            platform for platform, names in _called().items() if any(name in own[:_LONGEST_LINE] for name in names)
        }
        if found:
            return found
    return set()


@cache
def _published() -> dict[str, str]:
    """Return the list of each platform that has one with names of its own."""
    lists: dict[str, str] = {}
    for platform in all_platforms():
        text = platform.nic.hca_list
        for setting in platform.settings:
            if setting.name == _HCA and setting.value is not None and setting.goal is None:
                text = text or setting.value
        if text is not None and not text.startswith("^") and "," in text:
            lists[platform.id] = text
    return lists


@cache
def _called() -> dict[str, tuple[str, ...]]:
    """Return what the platforms with lists are called, by id."""
    return {
        platform.id: tuple(name for name in (*platform.names, *platform.match.skus) if len(name) >= _SHORTEST_NAME)
        for platform in all_platforms()
        if platform.id in _published()
    }


@cache
def _machines() -> dict[str, Platform]:
    """Return the platforms by what they are called, in small letters; a name of several is left out."""
    names = [(name.lower(), each) for each in all_platforms() for name in {each.id, *each.names, *each.match.skus}]
    often = Counter(name for name, _platform in names)
    return {name: platform for name, platform in names if often[name] == 1}


def _second(chosen: DeviceList, name: str) -> int:
    return [entry.offset for entry in chosen.entries if entry.name == name][1]


def _whole(platform: Platform) -> str:
    text = _published().get(platform.id) or "=" + ",".join(compute_nics(platform))
    return f'NCCL_IB_HCA="{text}"'


_COMPONENTS = ("OMPI_MCA_btl_tcp", "OMPI_MCA_oob_tcp", "PRTE_MCA_oob_tcp", "OMPI_MCA_oob_prte")
# Lists whose readers know no operator but ^.
_WITHOUT_OPERATORS = {"UCX_NET_DEVICES", "UCX_TLS", "GLOO_SOCKET_IFNAME", "SHARP_COLL_DEVICES", "HCOLL_MAIN_IB"}
_AT_HOME = {"lo", "docker0", "virbr0", "cni0"}


def startup(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield what keeps ranks from meeting."""
    platform = subject.context.platform
    for each in subject.reading.assignments:
        if platform is not None and each.name == "UCX_NET_DEVICES" and each.value and not each.computed:
            yield from _devices(each, each.value, platform)
    for each in subject.reading.assignments:
        if each.name in _WITHOUT_OPERATORS and (each.value or "").startswith("="):
            yield _operator(each, each.value or "")
    for situation in subject.situations:
        yield from _both(situation)
        yield from _at_home(subject, situation)


def _operator(each: Assignment, value: str) -> Finding:
    plain = value.lstrip("=")
    first = shown(value.partition(",")[0])
    what = "transport" if each.name.endswith("_TLS") else "device"
    return report(
        "ENV041",
        at=place_of_value(each),
        evidence=setting_text(each),
        effect=f"only NCCL reads = as an operator: here it is part of the name, and there is no {what} {first}",
        fix=f'{each.name}="{plain}"',
        name=each.name,
        written=first,
    )


def _devices(each: Assignment, value: str, platform: Platform) -> Iterator[Finding]:
    devices = {*compute_nics(platform), *frontend_devices(platform), *device_names(platform.nic.interfaces)}
    is_verbs = platform.fabric.kind in ("InfiniBand", "RoCE")
    # Interfaces are named by the system: only names of RDMA devices are known well enough.
    rdma = tuple(name for name in devices if name.startswith("mlx"))
    if not is_verbs or not rdma or not compute_nics(platform) or value.startswith("^"):
        return
    for word in value.split(","):
        name = word.strip().partition(":")[0]
        if name.startswith("mlx") and name not in devices and not any(sign in name for sign in "*?["):
            yield report(
                "ENV150",
                at=place_of_value(each, value.find(word)),
                evidence=f"{setting_text(each)}; {platform.id} has {_startup_few(rdma)}",
                confidence="likely",
                fix=f"one of {_startup_few(rdma)}, or the interface for start-up",
                platform=platform.id,
                device=name,
            )


def _startup_few(names: tuple[str, ...]) -> str:
    ordered = sorted(names, key=lambda name: (len(name), name))
    return ", ".join(ordered) if len(ordered) <= 4 else f"{ordered[0]} to {ordered[-1]}"


def _both(situation: Situation) -> Iterator[Finding]:
    for component in _COMPONENTS:
        including = situation.settings.get(f"{component}_if_include")
        excluding = situation.settings.get(f"{component}_if_exclude")
        if including is not None and excluding is not None:
            yield report(
                "ENV151",
                at=place_of(excluding),
                evidence=f"{setting_text(including)} and {setting_text(excluding)}",
                effect="mpirun stops at its start",
                fix="one of the two",
                name=including.name,
                other=excluding.name,
            )


def _at_home(subject: SettingsSubject, situation: Situation) -> Iterator[Finding]:
    nodes, launch = subject.nodes, situation.launch
    several = spans_nodes(launch, nodes) if launch is not None else nodes is not None and nodes > 1
    each = situation.settings.get("NCCL_SOCKET_IFNAME")
    if not several or each is None or each.value is None:
        return
    if each.value.removeprefix("=") in _AT_HOME:
        yield report(
            "ENV152",
            at=place_of_value(each),
            evidence=setting_text(each),
            effect="ranks of other nodes wait for an answer from themselves",
            fix="the interface that the nodes reach each other over",
            name=each.name,
            interface=each.value.removeprefix("="),
        )
