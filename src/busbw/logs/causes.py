"""Why a line came about, where that depends on what else the log shows: status, settings, versions, ways."""

import re
from typing import NamedTuple

from busbw.logs.case import JobLogs, missing_ranks, words
from busbw.logs.crashes import crashed_in
from busbw.logs.rank_rules import difference_findings, oddity_findings
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import RankedCause

_STATUS = {
    "1": "local length",
    "2": "local queue pair operation",
    "4": "local protection: memory that is not registered",
    "9": "invalid request at the other end",
    "10": "access refused at the other end: registration, ACS",
    "11": "operation failed at the other end",
    "12": "no answer after all retries: a link that is down or loses packets, a GID index or an MTU that does not fit "
    "the other end, no route, or a peer that is gone",
    "13": "the other end was never ready",
    "22": "general",
}
_RETRY_EXCEEDED = "12"
# How much of a line stands in a title.
_QUOTED = 120


def what_happened(case: JobLogs, event: TroubleEvent) -> tuple[str, str | None]:
    """Return what a line tells, and what to do about it."""
    if event.pattern is None:
        unknown = f"NCCL stopped with a warning that busbw does not know, {event.text[:_QUOTED]!r}"
        return (unknown, None) if event.stage is None else (f"{unknown}, while {event.stage.what}", event.stage.fix)
    crashed = crashed_in(case, event)
    if crashed is not None:
        return f"{event.what}, in {crashed.what}", f"{crashed.fix} ({crashed.cause})"
    fix = event.fix(is_amd=case.state.is_amd)
    status = event.groups.get("status", _RETRY_EXCEEDED if event.pattern.id == "retry-exceeded" else None)
    if status is None:
        return event.what, fix if event.stage is not None else f"{fix} ({event.cause})"
    return f"{event.what}, status {status}: {_STATUS.get(status, 'see ibv_wc_status')}", fix


_RELEASE = re.compile(r"\+cuda(\d+\.\d+)")


def versions_of_cuda(case: JobLogs) -> list[str]:
    """Return, as far as the log says, which CUDA the driver supports and which this NCCL was built for."""
    numbers = [int(value[:9]) for value in case.has("CUDA driver") if value.isdecimal()]
    found = [f"the driver supports CUDA {number // 1000}.{number % 1000 // 10}" for number in numbers]
    built = sorted({match[1] for value in case.has("version") if (match := _RELEASE.search(value)) is not None})
    return [*found, *(f"this NCCL was built for CUDA {release}" for release in built)]


class DisagreementCause(NamedTuple):
    """Why two ends may not fit together. `weight`: 0 the log shows it, 1 hints at it, 2 open, 3 speaks against it."""

    weight: int
    words: str
    fix: str | None


_RELAXED = "NCCL_IB_PCI_RELAXED_ORDERING"


def disagreement_causes(case: JobLogs, event: TroubleEvent) -> tuple[RankedCause, ...]:
    """Return every cause for which two ends disagree, the likeliest by what the log shows first; (): they do not."""
    if event.pattern is None or event.pattern.disagree is None:
        return ()
    # Whoever says that calls differ has compared the calls themselves.
    weighed = (
        [_program(case, were_compared=True)]
        if event.pattern.disagree == "calls"
        else [_settings(case), _versions(case), _program(case, were_compared=False), _relaxed_ordering(case, event)]
    )
    return tuple(RankedCause(words=each.words, test=each.fix) for each in sorted(weighed, key=lambda each: each.weight))


def _is_whole(case: JobLogs) -> bool:
    """Whether every rank told of its version and settings, so that a difference would be seen."""
    told = sum(len(who) for who in case.has("version").values())
    return not case.state.leaves_out and not missing_ranks(case) and case.rank_index.ranks is not None and told > 1


def _settings(case: JobLogs) -> DisagreementCause:
    differing = [each for each in difference_findings(case) if each.code in {"LOG021", "LOG022"}]
    differing += [each for each in oddity_findings(case) if each.code == "LOG023" and "version" not in each.title]
    if differing:
        first = min(differing, key=lambda each: each.code)
        return DisagreementCause(
            0 if first.code == "LOG021" else 1,
            f"{first.title}: {first.evidence}",
            first.fix,
        )
    if _is_whole(case):
        return DisagreementCause(3, "settings that differ between ranks: the log shows none", None)
    return DisagreementCause(
        2,
        "settings that differ between ranks (NCCL_BUFFSIZE, NCCL_PROTO, NCCL_ALGO, numbers of channels, a plug-in)",
        "compare `env | grep NCCL_` of the ranks, or their logs with NCCL_DEBUG=INFO",
    )


def _versions(case: JobLogs) -> DisagreementCause:
    versions = {value.split("+")[0]: who for value, who in case.has("version").items()}
    if len(versions) > 1:
        shown = "; ".join(f"{value}: {words(who)}" for value, who in sorted(versions.items()))
        return DisagreementCause(
            0, f"ranks run different versions of NCCL: {shown}", "make every rank load the same libnccl.so.2"
        )
    if versions and _is_whole(case):
        return DisagreementCause(3, f"different versions of NCCL: all that say it have {next(iter(versions))}", None)
    return DisagreementCause(
        2, "versions of NCCL that differ between ranks", "compare 'NCCL version' of all ranks: images, LD_LIBRARY_PATH"
    )


def _program(case: JobLogs, *, were_compared: bool) -> DisagreementCause:
    kinds = {event.pattern.id for event in case.events if event.pattern is not None}
    shown = were_compared or bool(kinds & {"collective-mismatch", "desync", "window-mismatch"})
    return DisagreementCause(
        0 if shown else 1 if _is_whole(case) else 2,
        "a fault of the program: ranks call other collectives or sizes, or in another order",
        "TORCH_DISTRIBUTED_DEBUG=DETAIL finds it in PyTorch; NCCL_DEBUG_SUBSYS=COLL logs every call",
    )


def _relaxed_ordering(case: JobLogs, event: TroubleEvent) -> DisagreementCause:
    value = case.setting(_RELAXED)
    off = "mlxconfig -d DEVICE query PCI_WR_ORDERING must say per_mkey"
    if "NET/IB" not in event.text and "Socket" in " ".join((event.text, *case.has("network"))):
        return DisagreementCause(3, "relaxed ordering of PCIe writes: not over sockets", None)
    if value == "1":
        return DisagreementCause(1, f'relaxed ordering: {_RELAXED} = "1"', f"test with {_RELAXED}=0; {off}")
    if value == "0":
        return DisagreementCause(2, f'relaxed ordering that the NIC forces, although {_RELAXED} = "0"', off)
    return DisagreementCause(
        2, "relaxed ordering of PCIe writes that the NIC forces on NCCL", f"{off}; test with {_RELAXED}=0"
    )


# Providers of libfabric over the kernel's TCP; without a plug-in for a fabric NCCL's own sockets do as well.
_OF_SOCKETS = ("tcp", "sockets", "udp", "net")


def provider_words(case: JobLogs, event: TroubleEvent) -> tuple[str, str] | None:
    """Return what a plug-in for libfabric lacks that took a provider over TCP, and what to do; None: it did not."""
    taken = [value for value in case.has("libfabric provider") if value.startswith(_OF_SOCKETS)]
    if event.pattern is None or not event.pattern.id.startswith("ofi-") or not taken:
        return None
    fix = (
        "give the container the devices (docker run --device=/dev/infiniband/uverbs0 and on, --ulimit memlock=-1; in "
        "Kubernetes vpc.amazonaws.com/efa), on an instance that has them: fi_info -p efa (or cxi) must list them there"
    )
    return f"the plug-in took the provider {taken[0]}: libfabric found no device of EFA or Slingshot here", fix


# Bytes of a buffer of each connection, from which on its sum over channels and peers is a burden; the default is 4 MiB.
_LARGE_BUFFER = 2**26
_MUCH_MEMORY = frozenset({"verbs-memory", "registration-failed", "out-of-memory", "gpu-allocation", "shm-full"})


def buffer_words(case: JobLogs, event: TroubleEvent) -> tuple[str, str] | None:
    """Return that a setting asks for more memory than there may be, and what to do; None: none does."""
    value = case.setting("NCCL_BUFFSIZE")
    if event.pattern is None or event.pattern.id not in _MUCH_MEMORY or value is None or not value.isdecimal():
        return None
    if int(value[:18]) < _LARGE_BUFFER:
        return None
    return (
        f'NCCL_BUFFSIZE = "{value}" asks for that much for each channel and peer (the default is 4194304)',
        "unset NCCL_BUFFSIZE",
    )
