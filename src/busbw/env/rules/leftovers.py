"""Logs and checks that were switched on to find a fault."""

from collections.abc import Iterator

from busbw.env.rules.subject import Subject, report, setting_text, shown, where, where_value
from busbw.model.assignment import Assignment
from busbw.model.finding import Finding

# Values in capitals, and what it costs.
_LEFT_ON = {
    "NCCL_DEBUG": ({"INFO", "TRACE"}, "every rank writes hundreds of lines at its start, and some in every call"),
    "NCCL_DEBUG_SUBSYS": ({"ALL"}, "with NCCL_DEBUG=INFO every call of every rank writes lines"),
    "NCCL_CHECK_POINTERS": ({"1"}, "every call looks at its pointers"),
    "NCCL_CHECK_MODE": ({"DEBUG_LOCAL", "DEBUG_GLOBAL"}, "every call checks its arguments, DEBUG_GLOBAL across ranks"),
    "CUDA_LAUNCH_BLOCKING": ({"1"}, "no kernel starts before the one before it is done, so nothing overlaps"),
    "UCX_LOG_LEVEL": ({"DEBUG", "TRACE", "DATA", "FUNC", "POLL"}, "every message writes lines"),
    "FI_LOG_LEVEL": ({"DEBUG", "TRACE", "INFO"}, "libfabric writes lines all the time"),
    "TORCH_DISTRIBUTED_DEBUG": ({"DETAIL"}, "every collective is checked across ranks first"),
}
_STREAMS = ("/dev/stdout", "/dev/stderr", "stdout", "stderr")


def leftovers(subject: Subject) -> Iterator[Finding]:
    """Yield what is left on from looking for a fault."""
    for each in subject.reading.assignments:
        if each.value is None:
            continue
        values, cost = _LEFT_ON.get(each.name, (set[str](), ""))
        if each.value.upper() in values:
            yield report(
                "ENV140",
                at=where(each),
                evidence=setting_text(each),
                effect=cost,
                fix="NCCL_DEBUG=WARN for a job" if each.name == "NCCL_DEBUG" else "leave it out for a job",
                name=each.name,
            )
        if each.name == "NCCL_DEBUG_FILE":
            yield from _debug_file(each, each.value)


def _debug_file(each: Assignment, value: str) -> Iterator[Finding]:
    if value and "%h" not in value and "%p" not in value and value not in _STREAMS and not each.computed:
        yield report(
            "ENV141",
            at=where_value(each),
            evidence=setting_text(each),
            fix=f"NCCL_DEBUG_FILE={value}.%h.%p",
            confidence="likely",
            file=shown(value),
        )
