"""Laying one platform file over another."""

import re

import msgspec

from busbw.base.errors import InputError
from busbw.facts.platform_facts import KNOWN_BY, LISTED, TABLES, Fact, Facts, Layer, known_by, label
from busbw.model.platform import Platform

_PATH = re.compile(r"([a-z]+)(?:\[([^\[\]]+)\])?(?:\.([A-Za-z_0-9]+))?(?:\.([\w.:-]+))?", re.ASCII)


def merged(weaker: Layer, stronger: Layer) -> Layer:
    """Return both, `stronger` winning: tables key by key, entries by what they are known by, lists one after the other.

    Entries keep the order of `weaker`, new ones follow; lists begin with `stronger`'s, and nothing stands twice.
    """
    return Layer(
        single={**weaker.single, **stronger.single},
        tables={
            name: _joined(weaker.tables.get(name, {}), stronger.tables.get(name, {}))
            for name in {**weaker.tables, **stronger.tables}
        },
        entries={
            name: _merged_entries(name, weaker.entries.get(name, ()), stronger.entries.get(name, ()))
            for name in {**weaker.entries, **stronger.entries}
        },
        listed={
            name: _appended(stronger.listed.get(name, ()), weaker.listed.get(name, ()))
            for name in {**weaker.listed, **stronger.listed}
        },
    )


def without(layer: Layer, path: str, where: str) -> Layer:
    """Return `layer` less what `path` names: `gpu.sm`, `numa[0].cpus`, `settings[NCCL_ALGO]`, `nvlink`, `traps`.

    A path that names nothing here changes nothing. Raises InputError for one that no platform can have.
    """
    match = _PATH.fullmatch(path)
    name, key, field, inner = match.groups() if match is not None else ("", None, None, None)
    if not _is_possible(name, key, field):
        raise InputError(f"`unknown` names {path[:80]!r}, which no platform has", where=where)
    if field is None and key is None:
        return Layer(
            single=layer.single,
            tables={each: facts for each, facts in layer.tables.items() if each != name},
            entries={each: entries for each, entries in layer.entries.items() if each != name},
            listed={each: facts for each, facts in layer.listed.items() if each != name},
        )
    if key is None:
        tables = {each: _less(facts, field, inner) if each == name else facts for each, facts in layer.tables.items()}
        return Layer(single=layer.single, tables=tables, entries=layer.entries, listed=layer.listed)
    changed = tuple(
        entry if label(name, entry) != key else _less(entry, field, inner)
        for entry in layer.entries.get(name, ())
        if label(name, entry) != key or field is not None
    )
    entries = {each: changed if each == name else entries for each, entries in layer.entries.items()}
    return Layer(single=layer.single, tables=layer.tables, entries=entries, listed=layer.listed)


def _is_possible(name: str, key: str | None, field: str | None) -> bool:
    kinds = {each.name: each.type for each in msgspec.structs.fields(Platform)}
    if name in LISTED:
        return key is None and field is None
    if name in TABLES:
        return key is None and (field is None or field in kinds[name].__struct_fields__)
    if name not in KNOWN_BY or (key is None and field is not None):
        return False
    return field is None or field in kinds[name].__args__[0].__struct_fields__


def _less(facts: Facts, field: str | None, inner: str | None) -> Facts:
    """Return `facts` without a field, or without one key of the table that the field holds."""
    if inner is None:
        return {name: fact for name, fact in facts.items() if name != field}
    return {
        name: {each: held for each, held in fact.items() if each != inner}
        if name == field and isinstance(fact, dict)
        else fact
        for name, fact in facts.items()
    }


def _joined(weaker: Facts, stronger: Facts) -> Facts:
    joined = dict(weaker)
    for name, fact in stronger.items():
        held = joined.get(name)
        joined[name] = {**held, **fact} if isinstance(held, dict) and isinstance(fact, dict) else fact
    return joined


def _merged_entries(array: str, weaker: tuple[Facts, ...], stronger: tuple[Facts, ...]) -> tuple[Facts, ...]:
    entries = list(weaker)
    places = {key: place for place, entry in enumerate(entries) for key in known_by(array, entry)}
    for entry in stronger:
        place = next((places[key] for key in known_by(array, entry) if key in places), None)
        if place is None:
            entries.append(entry)
        else:
            entries[place] = _joined(entries[place], entry)
    return tuple(entries)


def _appended(first: tuple[Fact, ...], then: tuple[Fact, ...]) -> tuple[Fact, ...]:
    held = {_spelled(fact) for fact in first}
    return first + tuple(fact for fact in then if _spelled(fact) not in held)


def _spelled(fact: Fact) -> bytes:
    return msgspec.json.encode(fact.value, order="sorted")
