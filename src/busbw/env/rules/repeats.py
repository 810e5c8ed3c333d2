"""One setting said twice: under one name, or under two names of the same parameter."""

from bisect import bisect_right
from collections.abc import Iterator

from busbw.env.rules.subject import OF_BUILDING, Subject, known, report, setting_text, shown, where
from busbw.env.versions import known_in
from busbw.model.assignment import Assignment, Reading
from busbw.model.finding import Finding

# Further apart a reader does not see both, and they may be meant for different things.
_MOST_LINES_BETWEEN = 200


def repeats(subject: Subject) -> Iterator[Finding]:
    """Yield names that are set twice with nothing started in between."""
    reading = subject.reading
    starts = sorted((each.line, each.column) for each in reading.launches)
    lines = {each.line for each in reading.assignments if each.launch is None and each.form != "shell"}
    before: dict[tuple[str, int | None, str | None], Assignment] = {}
    for each in reading.assignments:
        key = each.name, each.launch, each.target
        first = before.get(key)
        before[key] = each
        if first is None or first.form != each.form or first.arms != each.arms or each.unsets or first.unsets:
            continue
        # A value that was used in between, by a command or by the new one, has done its work.
        used = each.launch is None and (_between(starts, first, each) or _other_lines(subject, first, each, lines))
        if (
            used
            or _from_branches(reading, first, each)
            or first.value is None
            or each.value is None
            or first.value == each.value
            or each.computed
        ):
            continue
        variable = known(each.name)
        if variable is None or variable.owner in OF_BUILDING or each.form in ("shell", "manifest"):
            continue
        yield _twice(first, each)


def _from_branches(reading: Reading, first: Assignment, second: Assignment) -> bool:
    """Whether two options of one command stand in texts put together before it, and so on ways of their own."""
    if second.launch is None or first.line == second.line:
        return False
    return min(first.line, second.line) < reading.launches[second.launch].line


def _between(starts: list[tuple[int, int]], first: Assignment, second: Assignment) -> bool:
    return bisect_right(starts, (first.line, first.column)) < bisect_right(starts, (second.line, second.column))


def _other_lines(subject: Subject, first: Assignment, second: Assignment, set_in: set[int]) -> bool:
    """Whether anything but settings and remarks stands between two lines: a command there may have used the first."""
    if second.line - first.line > _MOST_LINES_BETWEEN:
        return True
    between = range(first.line + 1, second.line)
    texts = {number: subject.reading.lines[number - 1].strip() for number in between if number not in set_in}
    return any(text and not text.startswith("#") for text in texts.values())


def _twice(first: Assignment, second: Assignment) -> Finding:
    counts, loses = (first, second) if second.form == "nccl_conf" else (second, first)
    return report(
        "ENV068",
        at=where(second),
        evidence=f"{setting_text(first)}{_of_line(first, second)}, {setting_text(second)}{_of_line(second, first)}",
        effect=f"{shown(counts.value or '')} counts: NCCL keeps the first line of a file"
        if counts is first
        else f"{shown(counts.value or '')} counts",
        fix=f"leave line {loses.line} out" if first.line != second.line else "one of the two",
        name=second.name,
        first=shown(first.value or ""),
        second=shown(second.value or ""),
    )


def _of_line(each: Assignment, other: Assignment) -> str:
    return f" in line {each.line}" if each.line != other.line else ""


def same_parameter(subject: Subject) -> Iterator[Finding]:
    """Yield parameters that are set under two names with two values."""
    for situation in subject.situations:
        yield from _spellings(subject, situation.settings)


def _spellings(subject: Subject, settings: dict[str, Assignment]) -> Iterator[Finding]:
    for name, each in settings.items():
        variable = known(name)
        other = settings.get(variable.same_as) if variable is not None and variable.same_as is not None else None
        if variable is None or other is None or known_in(variable, subject.version) != "yes":
            continue
        twin = known(other.name)
        if twin is not None and twin.same_as == name and name > other.name:
            continue
        if each.value is not None and other.value is not None and each.value != other.value:
            yield report(
                "ENV069",
                at=where(each),
                evidence=f"{setting_text(each)} and {setting_text(other)}",
                effect="; ".join(variable.notes[:1]) or None,
                fix=f"{other.name} alone",
                source=variable.source,
                name=name,
                other=other.name,
            )
