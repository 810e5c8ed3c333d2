"""How a text is written: slips, settings said twice, lines of an nccl.conf, logs left switched on."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from busbw.base.text import listed
from busbw.env.reading.commands import LAUNCHERS
from busbw.env.rules.subject import (
    OF_BUILDING,
    UNKNOWN,
    SettingsSubject,
    is_unexpanded,
    known,
    place_of,
    place_of_value,
    plain_name,
    plain_value,
    report,
    setting_text,
    shown,
)
from busbw.env.versions import known_in
from busbw.model.finding import FilePlace, Finding
from busbw.model.settings import Assignment, SettingsReading, Slip, UnreadPart

_CODES = {
    "space_after_equals": "ENV003",
    "space_before_equals": "ENV004",
    "lost_line_end": "ENV005",
    "typographic": "ENV006",
    "carriage_return": "ENV007",
    "comma_in_list": "ENV008",
    "option_equals": "ENV009",
    "not_a_string": "ENV010",
    "not_shown": "ENV011",
    "text_for_mapping": "ENV118",
    "two_in_one": "ENV119",
    "no_blank": "ENV124",
}


_OF_A_JOB = re.compile(
    r"(?:NCCL|UCX|FI|OFI|OMPI_MCA|SHARP|CUDA|HCOLL)_|\b(?:export|setenv|mpirun|mpiexec|srun|torchrun)\b|^\s*[\u2013\u2014]"
)
# `--sku=?*)` in a case, and the beginning of an array.
_LABEL = re.compile(r"\s*--?[^\s()]+\)", re.ASCII)
_LIST = re.compile(r"=\([^)]*$", re.ASCII)
# What a line of a command has and a sentence has not: an option, a path, a file, a setting, or a launcher in front.
_OF_COMMAND = re.compile(
    rf"(?:^|\s)--?\w|[/$={UNKNOWN}\\]|\w\.[a-z]\w|^\W*(?:{LAUNCHERS}|accelerate|python\d?|sudo|bash|kubectl|helm)\b"
)
_MOST_LINES = 200
# Slips of a whole text: of a paste, of an editor.
_OF_SHELLS = {"space_after_equals", "space_before_equals"}
_ONCE = {"lost_line_end", "typographic", "carriage_return"}


def slips(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield what is written so that it means something else, and the parts that could not be read."""
    refused = [part for part in subject.reading.unread if part.is_rejected]
    if refused:
        yield _rejected(sorted(refused, key=lambda each: (each.line, each.column)))
    for part in subject.reading.unread:
        if part.is_rejected:
            continue
        yield report("ENV001", at=place_of(part), evidence="nothing in it is checked", reason=part.reason)
    # One slip that goes through a whole text is told once.
    meant = [each for each in subject.reading.slips if _matters(each, subject.reading)]
    often = Counter(each.kind for each in meant)
    reported: set[str] = set()
    for each in meant:
        if each.kind not in _ONCE or each.kind not in reported:
            yield _finding(each, max(each.count, often[each.kind] if each.kind in _ONCE else 1), subject.reading)
            reported.add(each.kind)


_REDIRECTS = "< and > are redirections: the command reads a file of that name, or ends with a syntax error"


def _rejected(parts: list[UnreadPart]) -> Finding:
    """Return the first place that a shell refuses: what it says of others mostly follows from it."""
    is_left = parts[0].reason.startswith("<")
    others = [f"{each.reason} in line {each.line}" for each in parts[1:]]
    return report(
        "ENV019",
        at=place_of(parts[0]),
        evidence=f"also {listed(others, 3)}" if others else "the script cannot be read to its end",
        effect=_REDIRECTS
        if is_left
        else "a syntax error: what stands before this line may run, what is behind it does not",
        fix="bash -n FILE says the same without running it",
        reason=parts[0].reason,
    )


def _matters(each: Slip, reading: SettingsReading) -> bool:
    """Whether a slip is about settings and how ranks are started, and not about the rest of a script."""
    line = reading.lines[each.line - 1] if 0 < each.line <= len(reading.lines) else ""
    if each.kind in _OF_SHELLS:
        return _OF_A_JOB.search(each.name or "") is not None
    if each.kind == "typographic":
        return not line.lstrip().startswith("#") and _OF_A_JOB.search(line) is not None
    if each.kind == "lost_line_end" and not each.written.startswith("\\"):
        is_part = _in_list(reading.lines, each.line) or _only_options(reading.lines)
        before = next((text for text in reversed(reading.lines[: each.line - 1]) if text.strip()), "")
        # `-bash: eb: command not found` is a message, and a sentence may go on with an option that it speaks of.
        is_said = each.written.endswith(":") or _OF_COMMAND.search(before) is None
        return _LABEL.match(line) is None and not is_part and not is_said
    # Between words that are printed the blank is one more, and no harm.
    return each.kind != "lost_line_end" or _PRINTING.search(line[: max(0, each.column - 1)]) is None


_PRINTING = re.compile(r"(?:^|[;&|])\s*(?:echo|printf)\b[^;&|]*$")


def _only_options(lines: tuple[str, ...]) -> bool:
    """Whether a text begins with an option, remarks aside: a page shows some of a command's."""
    own = (line.lstrip() for line in lines)
    return next((line for line in own if line and not line.startswith("#")), "").startswith("-")


def _in_list(lines: tuple[str, ...], number: int) -> bool:
    """Whether a line stands within the parentheses of an array."""
    for line in reversed(lines[max(0, number - _MOST_LINES) : number - 1]):
        if line.lstrip().startswith(")"):
            return False
        if _LIST.search(line) is not None:
            return True
    return False


class _LostLineEnd(NamedTuple):
    """The words for a command that does not go on where it should."""

    what: str
    effect: str
    fix: str


_AT_END = _LostLineEnd(
    "a backslash is not the last character of its line",
    "the command ends here, and the lines below are commands of their own",
    "let the backslash be the last character of its line",
)
_WITHIN = _LostLineEnd(
    "a backslash stands in the middle of it",
    "a backslash before a blank makes it an argument: the command gets words of one blank each",
    "leave the backslashes out, or break the line behind each",
)
_OPTION_FIRST = _LostLineEnd(
    "this one begins with an option, and the one before it has no backslash at its end",
    "the option is run as a command of its own",
    "end the line before with a backslash, or take this one out",
)


def _lost_line_end(each: Slip, reading: SettingsReading) -> _LostLineEnd:
    if not each.written.startswith("\\"):
        return _OPTION_FIRST
    line = reading.lines[each.line - 1] if 0 < each.line <= len(reading.lines) else ""
    # Within its line the rest of the command is behind it.
    return _WITHIN if line[each.column :].strip() else _AT_END


def _finding(each: Slip, count: int, reading: SettingsReading) -> Finding:
    name = (each.name or "it").partition("=")[0]
    times = f"; {count} times in this text" if count > 1 else ""
    lost = _lost_line_end(each, reading) if each.kind == "lost_line_end" else None
    return report(
        _CODES[each.kind],
        at=place_of(each),
        evidence=f"{shown(each.written.replace(UNKNOWN, '...'))}{times}",
        effect=lost.effect if lost is not None else _effect(each, name),
        fix=lost.fix if lost is not None else _fix(each, name),
        # Another program may divide the list, and the one that is joined may be empty.
        confidence="likely" if each.kind in ("two_in_one", "no_blank") else "certain",
        name=name,
        written=shown(each.written.replace(UNKNOWN, "...")),
        what=lost.what if lost is not None else "",
        word=shown(each.written),
    )


def _effect(each: Slip, name: str) -> str | None:
    effects = {
        "space_after_equals": f"{name} is empty, and what stands behind the space is taken for something else",
        "space_before_equals": f"{name} is run as a command",
        "typographic": "it is part of the text around it",
        "comma_in_list": f"{name} ends at its first comma",
        "text_for_mapping": f"it is a text where names with values are wanted, and {name} is not set",
        "option_equals": "the option takes what follows for its value",
    }
    return effects.get(each.kind)


def _fix(each: Slip, name: str) -> str | None:
    fixes = {
        "typographic": "straight quotes, plain dashes, ordinary spaces",
        "carriage_return": "dos2unix, or: sed -i 's/\\r$//'",
        "comma_in_list": f"export {name} before the command and pass on ALL",
        "not_a_string": "put the value between quotes",
        "text_for_mapping": f"{name}: {each.meant}, in a line of its own",
        "two_in_one": f"an argument each: {each.meant}",
        "no_blank": f'"{name} ", with a blank at its end',
        "not_shown": f"ENV {name}=... in a Dockerfile, %environment in a definition, an export outside of recipes",
    }
    if each.kind in ("space_after_equals", "space_before_equals"):
        is_known = each.meant is not None and UNKNOWN not in each.meant
        return f"{name}={each.meant}" if is_known else "no blank around the equals sign"
    if each.kind == "option_equals" and each.meant is not None:
        return f"two words: {name.removeprefix('OMPI_MCA_')} {each.meant.partition('=')[2] or each.meant}"
    return fixes.get(each.kind)


# Names of settings that a text mentions, but for what it only reads, `$NAME` and `environ["NAME"]`, and what a launcher
# sets by itself.
_MENTIONED = re.compile(
    r"(?<![\w$.-])(?<![a-rt-zA-Z0-9_.]/)(?<!\$\{)(?<!environ\[[\"'])(?<!getenv\([\"'])(?<!\.get\([\"'])"
    r"(?:NCCL|RCCL|UCX|FI|OMPI)_(?!COMM_WORLD|UNIVERSE|TESTS?(?:_|\b))[A-Z][A-Z0-9]+(?:_\w+)*"
    r"(?![\w*/]|\.\w|[\"'] (?:not )?in\b)",
    re.ASCII,
)
_OF_FOLDERS = re.compile(r"_(?:HOME|DIR|ROOT|PATH|VERSION|PREFIX|SRC|REPO|BRANCH|TAG|INCLUDE|LIB)$", re.ASCII)
_REMARK = re.compile(r"(?:^|\s)#.*")
_SAYS = re.compile(r"\s*(?:echo|printf|printenv|print|logger|log|info|assert|raise)\b.*|.*\bgrep\b.*")
# Lines of a log.
_LOGGED = re.compile(r".*\bNCCL (?:INFO|WARN|TRACE|VERSION)\b")
# Texts of a test are what the tested program is given, and what it is to make.
_TEST = re.compile(r"\s*(?:async )?def test_\w+\(")
# A condition in a sentence, and a word to put a value in for.
_CONDITION = re.compile(
    r"\b(?:[Ww]hen|[Ii]f|[Uu]nless)\s+(?:(?:you|users?|we|it)\s+(?:sets?|uses?|enables?|specif(?:y|ies)|pass(?:es)?)\s+)?"
    r"(?:[`\"'*]*[A-Z]\w*=\S+\s+(?:and|or)\s+)*[`\"'*]*$|(?:^|\.\s+)With\s+[`\"'*]*$"
)
_CONSEQUENCE = re.compile(r"=[^\s`,]+[`\"'*]*(?:,|\s+(?:and|or|is|are|enabled|set)\b)")
# What a setting makes a program print.
_PRINTED = re.compile(r"=[^\s`,]+[`\"'*]+\s+(?:output|logs?|messages?|lines?|traces?)\b")
_TO_FILL_IN = re.compile(r"[`\"']?\s*[=:]\s*[`\"']?<[A-Za-z][\w -]*>")
_FAMILIES = ("NCCL_", "RCCL_", "MSCCL_", "MSCCLPP_", "UCX_", "FI_", "OMPI_")
_MOST_NAMES = 4
# What makes a name one with a value: an option or `export` before it; behind it a sign and something that is not empty,
# a cell of a table with one word, or words that give it a number or a word in code quotes.
_GIVEN_BEFORE = re.compile(r"(?:-x|--?g?env|--env|-e|export|setenv|unset|ENV)[ =\t]+[\"'`]?$")
_GIVEN_BEHIND = re.compile(
    r"[`\"'*]{0,3}(?:\s*(?:[=,]|:(?=\s|[\"']))\s*(?![\"']{2}|None\b|null\b|\[\^)[^\s,;.)\]}]|\s*\|\s*[^\s|]+\s*(?:\||$)"
    r"|\s+(?:to|is|as|of|at)\s+(?:[`\"']+\w|\d)|\.\*/)",
    re.ASCII,
)
_LISTED_ON = re.compile(
    r"[`\"'*]{0,3}\s*,\s*(?:and\s+|or\s+)?[`\"'*]{0,3}[A-Z]+_[A-Z]|[`*]{0,3}\s*,\s*(?:and\s+|or\s+)?[a-z]+[ ,.]"
)


def silent(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield that a text mentions settings and none of them was read."""
    reading = subject.reading
    if any(_sets_or_passes_on(each) or each.slips for each in (reading, *reading.parts)):
        return
    named = list(_mentions(reading))
    # Names that nothing reads are also those of a program's own constants: one that is known must be among them.
    if all(known(name) is None for _place, name in named):
        return
    names = list(dict.fromkeys(name for _place, name in named))
    count = "1 name" if len(names) == 1 else f"{len(names)} names"
    is_test = reading.language == "python" and any(_TEST.match(line) for line in reading.lines)
    if is_test or not any(_has_value(reading, place, name) for place, name in named if known(name) is not None):
        yield report("ENV027", at=named[0][0], evidence=listed(names, _MOST_NAMES), count=count)
        return
    yield report(
        "ENV018",
        at=named[0][0],
        evidence=f"{listed(names, _MOST_NAMES)}; read as {reading.language}",
        effect="nothing in this text was checked: that nothing else is found says nothing about it",
        fix="give the part with the settings by itself, or say what it is: --as shell, kubernetes, python, environment",
        count=count,
    )


def _has_value(reading: SettingsReading, place: FilePlace, name: str) -> bool:
    """Whether a name stands with what may be its value, and not only in words about it."""
    line, at = reading.lines[place.line - 1], (place.column or 1) - 1
    behind = line[at + len(name) :]
    # In a list of names the comma gives no value, and neither does one in a sentence.
    is_listed = _LISTED_ON.match(behind) is not None
    found = _GIVEN_BEHIND.match(behind)
    if behind.startswith("=[^"):
        # A pattern for such lines.
        return False
    if reading.language == "markdown" and (
        _TO_FILL_IN.match(behind)
        or _PRINTED.match(behind)
        or (_CONDITION.search(line[:at]) and _CONSEQUENCE.match(behind))
    ):
        return False
    is_cell = found is not None and "|" in found.group()
    if is_cell and reading.language not in ("markdown", "shell"):
        return False
    if found is not None and reading.language == "markdown" and found.group().lstrip("`\"'*").lstrip()[:1] == ",":
        found = None
    return _GIVEN_BEFORE.search(line[:at]) is not None or (found is not None and not is_listed)


def _sets_or_passes_on(reading: SettingsReading) -> bool:
    return any(each.name.lstrip().removeprefix("export ").startswith(_FAMILIES) for each in reading.assignments) or any(
        name.startswith((*_FAMILIES, "ALL")) for launch in reading.launches for name in launch.forwards
    )


def _mentions(reading: SettingsReading) -> Iterator[tuple[FilePlace, str]]:
    has_remarks = reading.language != "markdown"
    for number, line in enumerate(reading.lines, start=1):
        text = _REMARK.sub("", line) if has_remarks else line
        if (has_remarks and _SAYS.match(text)) or _LOGGED.match(text):
            continue
        for found in _MENTIONED.finditer(text):
            variable = known(found.group())
            is_setting = variable is None or variable.owner not in OF_BUILDING
            if is_setting and _OF_FOLDERS.search(found.group()) is None:
                yield FilePlace(file=reading.file, line=number, column=found.start() + 1), found.group()


_QUOTES = ('"', "'")
_LONGEST_VALUE = 1023


def conf_lines(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield what is part of a name or a value and was not meant to be."""
    for each in subject.written.assignments:
        if each.form == "nccl_conf":
            yield from _name(each)
            yield from _value(each)
        yield from _unexpanded(each)


def _name(each: Assignment) -> Iterator[Finding]:
    meant = plain_name(each.name)
    if each.name.lstrip() != each.name.lstrip().removeprefix("export ").removeprefix("set ").removeprefix("setenv "):
        yield report(
            "ENV013", at=place_of(each), evidence=f"the name is {shown(each.name)}", fix=f"{meant}={each.written}"
        )
    elif meant != each.name:
        yield report(
            "ENV014",
            at=place_of(each),
            evidence=f"the name is {shown(each.name)}",
            effect="nothing reads that name",
            fix=f"{meant}={plain_value(each.written)}",
            part="name",
        )


def _value(each: Assignment) -> Iterator[Finding]:
    value, meant = each.written, plain_value(each.written)
    fix = f"{plain_name(each.name)}={meant}"
    at = place_of_value(each)
    if len(value) > _LONGEST_VALUE:
        yield report("ENV016", at=at, evidence=f"{len(value)} characters", name=plain_name(each.name))
    if value.strip()[:1] in _QUOTES:
        yield report("ENV012", at=at, evidence=f"the value is {shown(value)}", fix=fix, name=plain_name(each.name))
    elif " #" in value or "\t#" in value:
        yield report("ENV015", at=at, evidence=f"the value is {shown(value)}", fix=fix, name=plain_name(each.name))
    elif value != value.strip():
        yield report("ENV014", at=at, evidence=f"the value is {shown(value)}", fix=fix, part="value")


def _unexpanded(each: Assignment) -> Iterator[Finding]:
    """Yield a tilde or a variable that nothing will replace."""
    variable = known(plain_name(each.name))
    value = plain_value(each.written) if each.form == "nccl_conf" else each.value or ""
    is_path = variable is not None and variable.kind == "path"
    what = "a tilde" if is_path and is_unexpanded(value) else None
    if each.form == "nccl_conf" and "$" in value:
        what = "a variable"
    if what is not None and not each.computed:
        yield report(
            "ENV017",
            at=place_of_value(each),
            evidence=setting_text(each),
            effect="the program looks for exactly that name",
            fix="write the whole path" if what == "a tilde" else "write the value itself",
            name=plain_name(each.name),
            what=what,
        )


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


def leftovers(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield what is left on from looking for a fault."""
    for each in subject.reading.assignments:
        if each.value is None:
            continue
        values, cost = _LEFT_ON.get(each.name, (set[str](), ""))
        if each.value.upper() in values:
            yield report(
                "ENV140",
                at=place_of(each),
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
            at=place_of_value(each),
            evidence=setting_text(each),
            fix=f"NCCL_DEBUG_FILE={value}.%h.%p",
            confidence="likely",
            file=shown(value),
        )


# Further apart a reader does not see both, and they may be meant for different things.
_MOST_LINES_BETWEEN = 200


def repeats(subject: SettingsSubject) -> Iterator[Finding]:
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
        if variable.choices and first.value.lower() == each.value.lower():
            # Words whose readers look at no capitals.
            continue
        yield _twice(first, each)


def _from_branches(reading: SettingsReading, first: Assignment, second: Assignment) -> bool:
    """Whether two options of one command stand in texts put together before it, and so on ways of their own."""
    if second.launch is None or first.line == second.line:
        return False
    return min(first.line, second.line) < reading.launches[second.launch].line


def _between(starts: list[tuple[int, int]], first: Assignment, second: Assignment) -> bool:
    return bisect_right(starts, (first.line, first.column)) < bisect_right(starts, (second.line, second.column))


def _other_lines(subject: SettingsSubject, first: Assignment, second: Assignment, set_in: set[int]) -> bool:
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
        at=place_of(second),
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


def same_parameter(subject: SettingsSubject) -> Iterator[Finding]:
    """Yield parameters that are set under two names with two values."""
    for situation in subject.situations:
        yield from _spellings(subject, situation.settings)


def _spellings(subject: SettingsSubject, settings: dict[str, Assignment]) -> Iterator[Finding]:
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
                at=place_of(each),
                evidence=f"{setting_text(each)} and {setting_text(other)}",
                effect="; ".join(variable.notes[:1]) or None,
                fix=f"{other.name} alone",
                source=variable.source,
                name=name,
                other=other.name,
            )
