"""Settings that do nothing, or harm, on the machine they are for."""

import re
from collections.abc import Callable, Iterator

from busbw.env.rules.situations import Situation, slurm_options, spans_nodes
from busbw.env.rules.subject import (
    AFTER_MSCCL,
    OF_MSCCL,
    SettingsSubject,
    known,
    place_of,
    place_of_value,
    report,
    setting_text,
    shown,
)
from busbw.env.values import read_value
from busbw.model.finding import Finding
from busbw.model.platform import Platform
from busbw.model.settings import Assignment

# Fabrics whose traffic NCCL's own InfiniBand transport carries.
_VERBS = {"InfiniBand", "RoCE"}
# Fabrics that a plug-in carries, so that settings of that transport are read by nothing.
_PLUGGED = {"EFA": "EFA", "Slingshot": "Slingshot", "TCPX": "GPUDirect-TCPX", "TCPXO": "GPUDirect-TCPXO"}
_ROCE_ONLY = {"NCCL_IB_GID_INDEX", "NCCL_IB_ROCE_VERSION_NUM", "NCCL_IB_ADDR_FAMILY", "NCCL_IB_ADDR_RANGE"}
# What providers are called, the beginning of their names, and the fabrics they are for.
_PROVIDERS = (
    ("FI_CXI_", "Slingshot", {"Slingshot"}),
    ("FI_EFA_", "EFA", {"EFA"}),
    ("NCCL_FASTRAK_", "GPUDirect-TCPXO", {"TCPXO"}),
    ("NCCL_GPUDIRECTTCPX_", "GPUDirect-TCPX", {"TCPX"}),
)
_ON = {"1", "2"}
# How a text speaks of a test of one node's links, in the lines before a setting and in its own.
_OF_ONE_NODE = re.compile(r"nv[-_ ]?link|nv[-_ ]?switch|intra[-_ ]?node|(?:single|one)[-_ ]node|isolat", re.IGNORECASE)
_LINES_AROUND = 6
# The first compute capability whose GPUs take part in NVLink SHARP.
_FIRST_NVLS = 90
_OVER_LIBFABRIC = {"EFA", "Slingshot"}
# aws-ofi-nccl takes three names since 1.12, the first of them in every version.
_NETWORKS = {
    "IB": _VERBS,
    "AWS LIBFABRIC": _OVER_LIBFABRIC,
    "LIBFABRIC": _OVER_LIBFABRIC,
    "OFI": _OVER_LIBFABRIC,
    "FASTRAK": {"TCPXO"},
}


def effects(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield settings that this platform makes nothing of, or that take from it what it has."""
    yield from _ucx(subject)
    yield from _msccl(subject)
    platform = subject.context.platform
    if platform is None:
        return
    for each in subject.reading.assignments:
        if each.unsets or each.value == "":
            continue
        for look in _LOOKS:
            yield from look(each, platform)
        if subject.nodes != 1:
            yield from _sockets(subject, each, platform)


def _ucx(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield UCX settings where no MPI can read them."""
    reading = subject.reading
    is_conf = reading.language == "nccl.conf"
    starters = {launch.kind for launch in reading.launches}
    if not is_conf and (not starters or starters != {"torchrun"}):
        return
    for each in reading.assignments:
        if each.name.startswith("UCX_") and not each.unsets:
            yield report(
                "ENV081",
                at=place_of(each),
                evidence=setting_text(each),
                effect="NCCL's bandwidth stays as it is",
                confidence="likely",
                fix="leave it out, unless the program itself uses UCX",
                name=each.name,
            )


def _msccl(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield what only the fork microsoft/msccl reads, where the NCCL is known to be a later one."""
    version = subject.context.nccl
    if version is None or version < AFTER_MSCCL:
        return
    for each in subject.reading.assignments:
        if each.name in OF_MSCCL and not each.unsets:
            yield report(
                "ENV090",
                at=place_of(each),
                evidence=f"{setting_text(each)}; the NCCL is {subject.version_text}, and the fork is 2.12.12",
                effect="collectives run NCCL's own algorithms",
                fix="load the libnccl.so of microsoft/msccl, or set MSCCL_ALGO_DIR for that of msccl-executor-nccl",
                name=each.name,
            )


def _verbs(each: Assignment, platform: Platform) -> Iterator[Finding]:
    fabric = platform.fabric.kind
    if fabric not in _PLUGGED or not each.name.startswith("NCCL_IB_") or each.name == "NCCL_IB_DISABLE":
        return
    yield report(
        "ENV080",
        at=place_of(each),
        evidence=f"{setting_text(each)}; {platform.id} has {_PLUGGED[fabric]}",
        effect="nothing reads it",
        confidence="likely",
        fix="leave it out",
        name=each.name,
        fabric=_PLUGGED[fabric],
    )


def _nvls(each: Assignment, platform: Platform) -> Iterator[Finding]:
    if each.name != "NCCL_NVLS_ENABLE" or each.value not in _ON:
        return
    cannot = platform.nvlink.nvls is False or (platform.gpu.sm is not None and platform.gpu.sm < _FIRST_NVLS)
    if cannot:
        yield report(
            "ENV082",
            at=place_of(each),
            evidence=f"{setting_text(each)}; it is about NVLink SHARP, not NVLink, which NCCL_P2P_DISABLE turns off",
            effect="NCCL leaves NVLink SHARP out",
            fix="leave it out",
            name=each.name,
            gpu=platform.gpu.model or platform.id,
        )


def _roce(each: Assignment, platform: Platform) -> Iterator[Finding]:
    if platform.fabric.kind == "InfiniBand" and each.name in _ROCE_ONLY:
        yield report(
            "ENV083",
            at=place_of(each),
            evidence=setting_text(each),
            effect="no bearing within one subnet",
            confidence="likely",
            fix="leave it out",
            name=each.name,
            platform=platform.id,
        )


def _sharp(each: Assignment, platform: Platform) -> Iterator[Finding]:
    fabric = platform.fabric
    cannot = fabric.sharp is False or fabric.kind in (*_PLUGGED, "RoCE", "Ethernet")
    if cannot and each.name == "NCCL_COLLNET_ENABLE" and each.value == "1":
        yield report(
            "ENV084",
            at=place_of(each),
            evidence=f"{setting_text(each)}; the fabric is {fabric.kind}",
            effect="NCCL finds no CollNet plug-in and leaves it out",
            confidence="likely",
            fix="leave it out",
            name=each.name,
            platform=platform.id,
        )


def _network(each: Assignment, platform: Platform) -> Iterator[Finding]:
    fabric = platform.fabric.kind
    if each.name != "NCCL_NET" or each.value is None or fabric is None:
        return
    fits = _NETWORKS.get(each.value.upper())
    if fits is not None and fabric not in fits:
        yield report(
            "ENV086",
            at=place_of_value(each),
            evidence=setting_text(each),
            effect="every rank ends at its start",
            confidence="likely",
            fix="leave it out" if fabric in _VERBS else 'NCCL_NET="AWS Libfabric"' if fabric in _PLUGGED else None,
            network=shown(each.value),
            platform=platform.id,
            fabric=fabric,
        )


def _sockets(subject: SettingsSubject, each: Assignment, platform: Platform) -> Iterator[Finding]:
    fabric = platform.fabric.kind
    if fabric is None or fabric == "Ethernet":
        return
    off = each.name == "NCCL_IB_DISABLE" and each.value == "1" and fabric in _VERBS
    named = each.name == "NCCL_NET" and (each.value or "").lower() == "socket"
    unplugged = each.name == "NCCL_NET_PLUGIN" and (each.value or "").lower() == "none" and fabric in _PLUGGED
    seen_by = [one for one in subject.situations if one.launch is not None and one.settings.get(each.name) == each]
    several = [spans_nodes(one.launch, subject.nodes) for one in seen_by if one.launch is not None]
    if not (off or named or unplugged) or (several and all(one is False for one in several)):
        return
    on_purpose = _is_of_one_node(subject, each)
    yield report(
        "ENV087",
        at=place_of(each),
        evidence=f"{setting_text(each)}; {platform.id} has {fabric}",
        confidence="possible" if on_purpose else "certain" if True in several else "likely",
        effect="traffic between nodes goes through TCP" + ("; for a test of NVLink alone it is right" * on_purpose),
        fix="leave it out" + (", unless no rank is on another node" * on_purpose),
        name=each.name,
        fabric=fabric,
    )


def _is_of_one_node(subject: SettingsSubject, each: Assignment) -> bool:
    """Whether the words around a setting, or the name of the file, say that it is about the links within a node."""
    around = subject.reading.lines[max(0, each.line - _LINES_AROUND) : each.line + 2]
    return any(_OF_ONE_NODE.search(text) is not None for text in (*around, subject.reading.file.rpartition("/")[2]))


def _peers(each: Assignment, platform: Platform) -> Iterator[Finding]:
    if each.name == "NCCL_P2P_DISABLE" and each.value == "1" and platform.nvlink.gpu_Bps:
        yield report(
            "ENV088",
            at=place_of(each),
            evidence=setting_text(each),
            effect="GPUs of a node reach each other through memory or the network",
            fix="leave it out but for a test of the NICs",
            name=each.name,
        )


def _provider(each: Assignment, platform: Platform) -> Iterator[Finding]:
    fabric = platform.fabric.kind
    for beginning, owner, fabrics in _PROVIDERS:
        if fabric is not None and each.name.startswith(beginning) and fabric not in fabrics:
            yield report(
                "ENV089",
                at=place_of(each),
                evidence=setting_text(each),
                effect="nothing reads it",
                confidence="likely",
                fix="leave it out",
                name=each.name,
                owner=owner,
                platform=platform.id,
                fabric=fabric,
            )


_Look = Callable[[Assignment, Platform], Iterator[Finding]]
_LOOKS: tuple[_Look, ...] = (_verbs, _nvls, _roce, _sharp, _network, _peers, _provider)


_GDRCOPY = ("NCCL_GDRCOPY_ENABLE", "FI_HMEM_CUDA_USE_GDRCOPY")
_KEPT_OUT = ("FI_CXI_RDZV_THRESHOLD", "FI_CXI_RDZV_GET_MIN")
# LL128 is used over the way from a NIC through Grace since this release.
_LL128_ON_GRACE = (2, 27, 3)
_PXN_HANGS = ((2, 29, 7), (2, 30, 4))
_GRACE_SOURCE = "NVIDIA/nccl, issue 2001 and pull request 2053; HewlettPackard/shs-ccl-docs, pull request 21"
_CHUNK_SOURCE = "NVIDIA/nccl, issues 1496 and 2408, pull request 2410"
_PXN_SOURCE = "NVIDIA/nccl, release notes from 2.29.7 to 2.30.7"


def hazards(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield known ways to wrong data and to hangs."""
    for situation in subject.situations:
        yield from _grace_hopper(subject, situation)
        yield from _pxn(subject, situation)
        yield from _chunks(subject, situation)
        yield from _rendezvous(subject, situation)


def _grace_hopper(subject: SettingsSubject, situation: Situation) -> Iterator[Finding]:
    """Yield LL128 with GDRCopy on Grace Hopper and Slingshot, where it can read half a message."""
    platform = subject.context.platform
    is_grace = platform is not None and platform.fabric.kind == "Slingshot" and bool(platform.nvlink.c2c_Bps)
    if not is_grace or subject.version[:3] < _LL128_ON_GRACE[: len(subject.version)]:
        return
    settings = situation.settings
    copying = [settings[name] for name in _GDRCOPY if name in settings and settings[name].value == "1"]
    if not copying or _ll128_is_off(settings):
        return
    kept_out = [settings[name] for name in _KEPT_OUT if name in settings and settings[name].value == "0"]
    if len(kept_out) == len(_KEPT_OUT):
        yield report(
            "ENV070",
            at=place_of(kept_out[0]),
            evidence=f"{' and '.join(map(setting_text, kept_out))} with {setting_text(copying[0])}",
            confidence="likely",
            effect="without both, all_reduce has given wrong sums here, some of the time",
            fix='keep both; NCCL_PROTO="^LL128" or NCCL_LL128_C2C="0" is safe without them',
            source=_GRACE_SOURCE,
            name=" and ".join(each.name for each in kept_out),
        )
        return
    yield report(
        "ENV062",
        at=place_of(copying[0]),
        evidence=f"{' and '.join(map(setting_text, copying))}; LL128 is allowed, as it is by default",
        confidence="likely",
        effect="wrong sums in some of the runs, mostly around 1 MiB, and no message",
        fix='NCCL_PROTO="^LL128", or NCCL_LL128_C2C="0", or GDRCopy off',
        source=_GRACE_SOURCE,
        condition="LL128 with GDRCopy on Grace Hopper over Slingshot",
    )


def _ll128_is_off(settings: dict[str, Assignment]) -> bool:
    if "NCCL_LL128_C2C" in settings and settings["NCCL_LL128_C2C"].value in ("0", None):
        return True
    if "NCCL_PROTO" not in settings:
        return False
    words = settings["NCCL_PROTO"].value
    if words is None:
        return True
    names_it = "ll128" in words.lower()
    return names_it if words.startswith("^") else not names_it


def _pxn(subject: SettingsSubject, situation: Situation) -> Iterator[Finding]:
    """Yield the releases that can hang over InfiniBand, where one of them was asked about."""
    asked = subject.context.nccl
    launch = situation.launch
    if asked is None or len(asked) < 3 or not _PXN_HANGS[0] <= asked[:3] <= _PXN_HANGS[1] or launch is None:
        return
    platform = subject.context.platform
    if platform is not None and platform.fabric.kind not in ("InfiniBand", "RoCE", None):
        return
    if launch.kind not in ("mpirun", "srun", "torchrun") or "NCCL_PXN_DISABLE" in situation.settings:
        return
    if spans_nodes(launch, subject.nodes) is not True or launch.within is not None:
        return
    yield report(
        "ENV063",
        at=place_of(launch),
        evidence=f"NCCL {subject.version_text}; 2.29.7 to 2.30.4 do, 2.30.7 does not",
        confidence="possible",
        effect="a job over several nodes stops without an error",
        fix='NCCL_PXN_DISABLE="1", or another release',
        source=_PXN_SOURCE,
        condition=f"NCCL {subject.version_text} over InfiniBand with PXN",
    )


def _rendezvous(subject: SettingsSubject, situation: Situation) -> Iterator[Finding]:
    """Yield the rendezvous protocol of Slingshot that the NIC has to be switched to, where nothing switches it."""
    each, launch = situation.settings.get("FI_CXI_RDZV_PROTO"), situation.launch
    if each is None or launch is None or launch.kind != "srun" or launch.computed:
        return
    if (each.value or "").replace("-", "_").lower() != "alt_read":
        return
    own = launch.argv[: launch.program] if launch.program is not None else launch.argv
    network = slurm_options(own[1:]).get("--network", subject.job_options.get("--network", ""))
    given = situation.settings.get("SLURM_NETWORK")
    if "disable_rdzv_get" in network or "$" in network or (given is not None and "disable_rdzv_get" in given.written):
        return
    yield report(
        "ENV071",
        at=place_of(launch),
        evidence=f"{setting_text(each)}, from line {each.line}",
        confidence="likely",
        effect="the NICs of the job keep the rendezvous that alt_read is to take the place of",
        fix="--network=disable_rdzv_get",
        name=each.name,
    )


def _chunks(subject: SettingsSubject, situation: Situation) -> Iterator[Finding]:
    """Yield chunks of send and receive that are larger than the slot they are written into."""
    each = situation.settings.get("NCCL_CHUNK_SIZE")
    chunk_bytes = _number(each)
    if each is None or chunk_bytes is None:
        return
    launch = situation.launch
    several = spans_nodes(launch, subject.nodes) if launch is not None else None
    name, default_bytes = (
        ("NCCL_P2P_NVL_CHUNKSIZE", 524_288) if several is False else ("NCCL_P2P_NET_CHUNKSIZE", 131_072)
    )
    step = situation.settings.get(name)
    step_bytes = default_bytes if step is None else _number(step)
    if step_bytes is None or chunk_bytes <= step_bytes:
        return
    said = setting_text(step) if step is not None else f"{name} is {default_bytes} by default"
    yield report(
        "ENV062",
        at=place_of(each),
        evidence=f"{setting_text(each)}; {said}",
        confidence="certain" if several else "likely",
        effect="send and receive write past their slot: wrong data, faults of the GPU, or a hang",
        fix=f"leave it out; {name} is the setting for larger steps",
        source=_CHUNK_SOURCE,
        condition=f"NCCL_CHUNK_SIZE is larger than {name}",
    )


def _number(each: Assignment | None) -> int | None:
    """Return the bytes that NCCL reads, None where they are not known."""
    variable = known(each.name) if each is not None else None
    if each is None or variable is None or each.value is None:
        return None
    read = read_value(variable, each.value).value
    return int(read) if read is not None and read.isdecimal() and len(read) < 20 else None
