"""Files that settings name, against those of this host."""

from collections.abc import Iterator

from busbw.env.rules.subject import Subject, known, report, setting_text, where_value
from busbw.model.finding import Finding

# Written by the job: they need not be there.
_WRITTEN = ("DUMP", "DEBUG_FILE", "LOG", "OUTPUT")


def files(subject: Subject) -> Iterator[Finding]:
    """Yield paths that this host does not have."""
    absent = subject.context.absent
    if absent is None:
        return
    for each in subject.reading.assignments:
        if each.value is not None and each.value in absent and not _is_written(each.name):
            yield report(
                "ENV130",
                at=where_value(each),
                evidence=setting_text(each),
                effect="NCCL goes on without it",
                fix="correct the path, or leave the setting out",
                name=each.name,
                path=each.value,
            )


def _is_written(name: str) -> bool:
    """Whether the job itself makes what a variable names."""
    variable = known(name)
    return variable is None or any(word in name for word in _WRITTEN)
