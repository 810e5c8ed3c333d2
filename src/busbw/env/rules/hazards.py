"""Combinations that are known to give wrong data or to hang on a machine or with a version, each with its report."""

from collections.abc import Iterator

from busbw.env.rules.job import spans_nodes
from busbw.env.rules.situations import Situation
from busbw.env.rules.subject import Subject, known, report, setting_text, where
from busbw.env.values import read_value
from busbw.model.assignment import Assignment
from busbw.model.finding import Finding

_GDRCOPY = ("NCCL_GDRCOPY_ENABLE", "FI_HMEM_CUDA_USE_GDRCOPY")
_KEPT_OUT = ("FI_CXI_RDZV_THRESHOLD", "FI_CXI_RDZV_GET_MIN")
# LL128 is used over the way from a NIC through Grace since this release.
_LL128_ON_GRACE = (2, 27, 3)
_PXN_HANGS = ((2, 29, 7), (2, 30, 4))
_GRACE_SOURCE = "NVIDIA/nccl, issue 2001 and pull request 2053; HewlettPackard/shs-ccl-docs, pull request 21"
_CHUNK_SOURCE = "NVIDIA/nccl, issues 1496 and 2408, pull request 2410"
_PXN_SOURCE = "NVIDIA/nccl, release notes from 2.29.7 to 2.30.7"


def hazards(subject: Subject) -> Iterator[Finding]:
    """Yield known ways to wrong data and to hangs."""
    for situation in subject.situations:
        yield from _grace_hopper(subject, situation)
        yield from _pxn(subject, situation)
        yield from _chunks(subject, situation)


def _grace_hopper(subject: Subject, situation: Situation) -> Iterator[Finding]:
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
            at=where(kept_out[0]),
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
        at=where(copying[0]),
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


def _pxn(subject: Subject, situation: Situation) -> Iterator[Finding]:
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
        at=where(launch),
        evidence=f"NCCL {subject.version_text}; 2.29.7 to 2.30.4 do, 2.30.7 does not",
        confidence="possible",
        effect="a job over several nodes stops without an error",
        fix='NCCL_PXN_DISABLE="1", or another release',
        source=_PXN_SOURCE,
        condition=f"NCCL {subject.version_text} over InfiniBand with PXN",
    )


def _chunks(subject: Subject, situation: Situation) -> Iterator[Finding]:
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
        at=where(each),
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
