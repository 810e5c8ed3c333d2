"""Finding what is wrong with settings, wherever they stand."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec import structs

from busbw.env.rules.combinations import combinations
from busbw.env.rules.devices import devices, startup
from busbw.env.rules.effects import effects, hazards
from busbw.env.rules.forwarding import forwarding, pods, ranks
from busbw.env.rules.names import names
from busbw.env.rules.placement import placement
from busbw.env.rules.subject import CheckContext, SettingsSubject, subject_of
from busbw.env.rules.text import conf_lines, leftovers, repeats, same_parameter, slips
from busbw.env.rules.values import files, topology_files, values
from busbw.model.finding import Finding
from busbw.model.settings import Assignment, SettingsReading

_Rule = Callable[[SettingsSubject], Iterator[Finding]]
# What each text says by itself, and what all of them say together.
_ALONE: tuple[_Rule, ...] = (
    slips,
    conf_lines,
    names,
    values,
    devices,
    repeats,
    effects,
    topology_files,
    forwarding,
    pods,
    placement,
    files,
    leftovers,
    ranks,
)
_TOGETHER: tuple[_Rule, ...] = (combinations, same_parameter, hazards, startup)
# A page may be about looking for faults, and show one thing after the other to choose from.
_OF_EXAMPLES: tuple[_Rule, ...] = tuple(rule for rule in (*_ALONE, *_TOGETHER) if rule not in (leftovers, repeats))
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
    return [each for rule in rules for each in islice(rule(subject), MOST_FINDINGS)]


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
    in_order = sorted(found, key=lambda each: (not _is_in(each, reading.file), *_place(each), each.code))
    return tuple(_once(in_order[:MOST_FINDINGS]))


def _once(found: Iterable[Finding]) -> Iterator[Finding]:
    told: set[tuple[str, str | None, str]] = set()
    for each in found:
        key = each.code, each.where, each.title
        if key not in told:
            told.add(key)
            yield each


def _is_in(found: Finding, file: str) -> bool:
    return (found.where or "").rsplit(":", 2)[0] == file


def _place(found: Finding) -> tuple[int, int]:
    _file, line, column = (found.where or ":0:0").rsplit(":", 2)
    return int(line), int(column)
