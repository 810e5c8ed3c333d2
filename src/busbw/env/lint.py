"""Finding what is wrong with settings, wherever they stand."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from msgspec import structs

from busbw.env.rules.batch_scripts import bindings, first_line, job_variables, late_directives, unused_images
from busbw.env.rules.combinations import combinations
from busbw.env.rules.devices import devices, startup
from busbw.env.rules.effects import effects, hazards
from busbw.env.rules.forwarding import forwarding, pods, ranks
from busbw.env.rules.launch_lines import (
    behind_program,
    colons,
    directives,
    mpi_types,
    named_as_devices,
    option_values,
    other_passed,
    taken_for_variables,
    waits,
)
from busbw.env.rules.lists import lists
from busbw.env.rules.mvapich import generations
from busbw.env.rules.options import launch_options
from busbw.env.rules.placement import overlaps, placement, shares
from busbw.env.rules.resource_directives import resource_directives, submissions
from busbw.env.rules.script_lines import documents, other_words, unused
from busbw.env.rules.shell_lines import not_set, open_documents
from busbw.env.rules.subject import CheckContext, SettingsSubject, known, plain_name, plain_value, subject_of
from busbw.env.rules.text import conf_lines, leftovers, repeats, same_parameter, silent, slips
from busbw.env.rules.values import fabrics, files, libraries, names, spelled_paths, topology_files, values
from busbw.env.values import read_value
from busbw.facts.envvars import misspellings
from busbw.model.finding import FilePlace, Finding, by_place
from busbw.model.settings import Assignment, SettingsReading, Slip

_Rule = Callable[[SettingsSubject], Iterator[Finding]]
# What each text says by itself, and what all of them say together.
_ALONE: tuple[_Rule, ...] = (
    silent,
    slips,
    not_set,
    open_documents,
    first_line,
    late_directives,
    job_variables,
    conf_lines,
    names,
    generations,
    values,
    lists,
    devices,
    repeats,
    effects,
    topology_files,
    forwarding,
    pods,
    placement,
    overlaps,
    shares,
    launch_options,
    directives,
    resource_directives,
    submissions,
    option_values,
    behind_program,
    mpi_types,
    bindings,
    named_as_devices,
    colons,
    unused_images,
    taken_for_variables,
    other_passed,
    waits,
    unused,
    documents,
    other_words,
    files,
    libraries,
    fabrics,
    spelled_paths,
    leftovers,
    ranks,
)
_TOGETHER: tuple[_Rule, ...] = (combinations, same_parameter, hazards, startup)
# A page may be about looking for faults, and show one thing after the other to choose from.
_OF_EXAMPLES: tuple[_Rule, ...] = tuple(
    rule for rule in (*_ALONE, *_TOGETHER) if rule not in (leftovers, repeats, silent, first_line, open_documents)
)
# A text with more has one fault many times over.
MOST_FINDINGS = 5_000


def lint(reading: SettingsReading, context: CheckContext) -> tuple[Finding, ...]:
    """Return what is wrong with the settings of a text, in its order, each thing once."""
    found = _found(reading, context, (*_ALONE, *_TOGETHER))
    for part in reading.parts:
        found += _found(part, context, _OF_EXAMPLES)
    return _ordered(reading, found)


def lint_layers(readings: tuple[SettingsReading, ...], context: CheckContext) -> tuple[Finding, ...]:
    """Return what is wrong with texts that hold together, the strongest first: what it sets, the others do not."""
    found = [each for reading in readings for each in _ordered(reading, _found(reading, context, _ALONE))]
    if readings:
        found += _found(_merged(readings), context, _TOGETHER)
    return tuple(_once(found))


def _found(reading: SettingsReading, context: CheckContext, rules: tuple[_Rule, ...]) -> list[Finding]:
    subject = subject_of(reading, context)
    return [_weighed(each, reading) for rule in rules for each in islice(rule(subject), MOST_FINDINGS)]


def _weighed(found: Finding, reading: SettingsReading) -> Finding:
    """Return a finding, as a note where nothing shows that what it is about is in force."""
    if not found.is_serious or found.place is None or not reading.is_spoken(found.place.line):
        return found
    evidence = f"{found.evidence}; a note: nothing shows that this is in force"
    return structs.replace(found, severity="note", evidence=evidence)


def _merged(readings: tuple[SettingsReading, ...]) -> SettingsReading:
    """Return one reading with what is in force of each name."""
    in_force: dict[str, Assignment] = {}
    for reading in readings:
        own = {each.name: each for each in subject_of(reading, CheckContext()).reading.assignments if not each.unsets}
        in_force = {**own, **in_force}
    first = readings[0]
    whole = tuple(structs.replace(each, form="environment") for each in in_force.values())
    return SettingsReading(file=first.file, language=first.language, assignments=whole)


def _ordered(reading: SettingsReading, found: list[Finding]) -> tuple[Finding, ...]:
    in_order = sorted(found, key=lambda each: (not _is_in(each, reading.file), *by_place(each)))
    return tuple(_once(in_order[:MOST_FINDINGS]))


def _once(found: Iterable[Finding]) -> Iterator[Finding]:
    reported: set[tuple[str, FilePlace | None, str]] = set()
    for each in found:
        key = each.code, each.place, each.title
        if key not in reported:
            reported.add(key)
            yield each


def _is_in(found: Finding, file: str) -> bool:
    return found.place is not None and found.place.file == file


# What a text is read and checked by: its findings.
Check = Callable[[str], tuple[Finding, ...]]
_STRAIGHT = {"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'", "\u00a0": " "}
_CONTEXT_LINES = 3
# Each correction alone is tried only where there are few: a check takes a while.
_MOST_ALONE = 40
_NCCL = "NCCL"
_UNREAD = "ENV001"


@dataclass(frozen=True, slots=True)
class Edit:
    """A part of one line, replaced. Lines count from 1, `start` and `end` from 0, in characters."""

    line: int
    start: int
    end: int
    text: str


def corrected(text: str, reading: SettingsReading, version: tuple[int, ...], check: Check) -> str:
    """Return the text with the corrections that leave fewer findings, and no new ones."""
    edits = _apart(tuple(_edits(text, reading, version)))
    before = check(text)
    if not edits or not before:
        return text
    whole = _with(text, edits)
    if _is_better(check(whole), before):
        return whole
    if len(edits) > _MOST_ALONE:
        return text
    for edit in sorted(edits, key=lambda each: (each.line, each.start), reverse=True):
        tried = _with(text, (edit,))
        after = check(tried)
        if _is_better(after, before):
            text, before = tried, after
    return text


def difference(before: str, after: str, name: str) -> str:
    """Return how two texts of as many lines differ, as a unified diff; empty where they do not."""
    old, new = before.split("\n"), after.split("\n")
    changed = [place for place, (one, other) in enumerate(zip(old, new, strict=True)) if one != other]
    out = [f"--- {name}\n", f"+++ {name}\n"] if changed else []
    while changed:
        last = 0
        while last + 1 < len(changed) and changed[last + 1] - changed[last] <= 2 * _CONTEXT_LINES:
            last += 1
        out += _hunk(old, new, changed[0], changed[last])
        changed = changed[last + 1 :]
    return "".join(out)


def _hunk(old: list[str], new: list[str], first: int, last: int) -> Iterator[str]:
    # A final newline makes an empty last piece, which is not a line.
    before, after = (len(lines) - (lines[-1] == "") for lines in (old, new))
    start, end = max(0, first - _CONTEXT_LINES), last + 1 + _CONTEXT_LINES
    old_end, new_end = min(before, end), min(after, end)
    yield f"@@ -{start + 1},{old_end - start} +{start + 1},{new_end - start} @@\n"
    place = start
    while place < max(old_end, new_end):
        if old[place] == new[place]:
            yield _line(" ", old, place)
            place += 1
            continue
        run = place
        while run < max(old_end, new_end) and old[run] != new[run]:
            run += 1
        yield from (_line("-", old, each) for each in range(place, min(run, old_end)))
        yield from (_line("+", new, each) for each in range(place, min(run, new_end)))
        place = run


def _line(sign: str, lines: list[str], place: int) -> str:
    is_open = place == len(lines) - 1
    return f"{sign}{lines[place]}\n" + ("\\ No newline at end of file\n" if is_open else "")


def _is_better(after: tuple[Finding, ...], before: tuple[Finding, ...]) -> bool:
    """Whether there are fewer warnings and errors, or notes, and of no rule more: wrong names hide what is to note."""
    now, then = (Counter(each.code for each in found if _is_wrong(each)) for found in (after, before))
    fewer = (now.total(), len(after)) < (then.total(), len(before))
    return fewer and all(now[code] <= then[code] for code in now)


def _is_wrong(found: Finding) -> bool:
    """Whether a finding is more than a note, or says that a part can no longer be read."""
    return found.is_serious or found.code == _UNREAD


def _apart(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Return the edits that do not overlap one before them."""
    kept: list[Edit] = []
    for edit in sorted(set(edits), key=lambda each: (each.line, each.start, each.end)):
        if not kept or kept[-1].line != edit.line or kept[-1].end <= edit.start:
            kept.append(edit)
    return tuple(kept)


def _with(text: str, edits: tuple[Edit, ...]) -> str:
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda each: (each.line, each.start), reverse=True):
        line = lines[edit.line - 1]
        lines[edit.line - 1] = line[: edit.start] + edit.text + line[edit.end :]
    return "\n".join(lines)


def _edits(text: str, reading: SettingsReading, version: tuple[int, ...]) -> Iterator[Edit]:
    lines = text.split("\n")
    if any(slip.kind == "carriage_return" for slip in reading.slips):
        for number, line in enumerate(lines, start=1):
            if line.endswith("\r"):
                yield Edit(number, len(line) - 1, len(line), "")
    for slip in reading.slips:
        if 0 < slip.line <= len(lines):
            yield from _of_slip(slip, lines[slip.line - 1])
    for each in reading.assignments:
        if 0 < each.line <= len(lines):
            line = lines[each.line - 1]
            yield from _of_conf(each, line) if each.form == "nccl_conf" else _of_setting(each, lines, version)
    for part in reading.parts:
        yield from _edits(text, part, version)


def _of_slip(slip: Slip, line: str) -> Iterator[Edit]:
    at = slip.column - 1
    if slip.kind == "space_after_equals" and slip.name is not None:
        found = re.compile(re.escape(slip.name) + r"=([ \t]+)(?=\S)").search(line)
        if found is not None:
            yield Edit(slip.line, found.start(1), found.end(1), "")
    elif slip.kind == "space_before_equals" and slip.name is not None:
        found = re.compile(re.escape(slip.name) + r"([ \t]+=[ \t]*)(?=\S)").search(line)
        if found is not None:
            yield Edit(slip.line, found.start(1), found.end(1), "=")
    elif slip.kind == "lost_line_end" and re.search(r"\\[ \t]+\r?$", line):
        end = len(line.rstrip("\r"))
        yield Edit(slip.line, len(line[:end].rstrip()), end, "")
    elif slip.kind == "typographic":
        yield from (
            Edit(slip.line, place, place + 1, _STRAIGHT[letter])
            for place, letter in enumerate(line)
            if letter in _STRAIGHT
        )
    elif slip.kind == "option_equals" and "=" in slip.written and line.startswith(slip.written, at):
        place = at + slip.written.index("=")
        yield Edit(slip.line, place, place + 1, " ")
    elif slip.kind == "not_a_string" and slip.written and line.startswith(slip.written, at):
        yield Edit(slip.line, at, at + len(slip.written), f'"{slip.written}"')


def _of_conf(each: Assignment, line: str) -> Iterator[Edit]:
    name, equals, value = line.removesuffix("\r").partition("=")
    meant = f"{plain_name(name)}={plain_value(value)}"
    # Of a file that a script writes only what stands in a line by itself.
    is_whole = each.target is None or line.removesuffix("\r") == f"{each.name}={each.written}"
    if equals and is_whole and meant != line.removesuffix("\r"):
        yield Edit(each.line, 0, len(line.removesuffix("\r")), meant)


def _of_setting(each: Assignment, lines: list[str], version: tuple[int, ...]) -> Iterator[Edit]:
    line, at = lines[each.line - 1], each.column - 1
    mistake = misspellings().get(each.name)
    if mistake is not None and mistake.kind == "misspelling" and mistake.intended and not mistake.inverted:
        if line.startswith(each.name, at):
            yield Edit(each.line, at, at + len(each.name), mistake.intended[0])
        return
    variable = known(each.name)
    if variable is None or not each.value or each.computed or each.value_column is None:
        return
    value_read = read_value(variable, each.value, version if variable.owner == _NCCL else None)
    if value_read.kind is None or value_read.kind == "odd" or value_read.instead is None:
        return
    if not set(value_read.instead) & set(" '\"$`\\;|&<>()"):
        number = each.value_line or each.line
        yield from _of_value(each, number, lines[number - 1], value_read.instead)


def _of_value(each: Assignment, number: int, line: str, instead: str) -> Iterator[Edit]:
    start = (each.value_column or 1) - 1
    if not each.written or not line.startswith(each.written, start):
        return
    quote = each.written[0] if each.written[0] in "'\"" and each.written[-1:] == each.written[0] else ""
    if each.form == "manifest" and line[start - 1 : start].isspace():
        # Alone in its place, a number without quotes would be no string.
        quote = quote or '"'
    yield Edit(number, start, start + len(each.written), f"{quote}{instead}{quote}")
