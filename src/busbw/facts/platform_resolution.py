"""From the files of a platform to the platform, with the origin of each value."""

import re
from collections.abc import Iterator

import msgspec

from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.facts import platform_files, platform_layers
from busbw.facts.merging import merged, without
from busbw.facts.platform_consistency import contradiction
from busbw.facts.platform_facts import LISTED, TABLES, Fact, Facts, Layer, label, layer_of
from busbw.facts.platform_files import PlatformFile
from busbw.model.platform import Origin, Platform, PlatformSource, ResolvedPlatform
from busbw.model.site import SiteFile

# What a platform does not take over from another platform that it extends: with the other's SKU both would be detected.
_OWN = ("id", "names", "match")
# Of a name in an error.
_LONGEST = 80
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")


def resolve(name: str, site: tuple[SiteFile, ...]) -> ResolvedPlatform:
    """Return the platform whose file is called `name`, from all its files.

    Raises InputError, with the file and the key, for anything in them that is not as it has to be.
    """
    files = platform_layers.layers(name, site)
    layer = Layer()
    for file in files:
        layer = merged(_inherited(layer, file), _own(layer_of(file), file, name))
    layer.single.setdefault("id", Fact(value=name, file=files[-1].where))
    order = tuple(file.where for file in reversed(files))
    plain = _plain(layer, order)
    try:
        platform = msgspec.convert({**plain, "sources": _cited_sources(layer, site)}, Platform)
    except msgspec.ValidationError as error:
        raise _blamed(error, layer, order) from error
    wrong = contradiction(platform)
    if wrong is not None:
        raise InputError(wrong[1], where=f"{_file_at(layer, wrong[0], order)}: {wrong[0]}")
    return ResolvedPlatform(platform=platform, files=order, origins=tuple(_origins(layer)))


def _inherited(layer: Layer, file: PlatformFile) -> Layer:
    """Return what `file` takes over from those before it."""
    unknown = file.raw.get("unknown", [])
    if not isinstance(unknown, list) or not all(isinstance(path, str) for path in unknown):
        raise InputError("`unknown` is not a list of values", where=file.where, hint='unknown = ["gpu.sm"]')
    for path in unknown:
        layer = without(layer, path, file.where)
    return layer


def _own(layer: Layer, file: PlatformFile, name: str) -> Layer:
    """Return what `file` states, less its identity where it is another platform's."""
    stated = layer.single.get("id")
    if stated is not None and stated.value != file.name:
        raise InputError(
            f"the id is {stated.value!r} and the file is called {file.name}.toml",
            where=file.where,
            hint="give both the same name",
        )
    if file.is_family or file.name == name:
        return layer
    return Layer(
        single={key: fact for key, fact in layer.single.items() if key not in _OWN},
        tables={key: facts for key, facts in layer.tables.items() if key not in _OWN},
        entries=layer.entries,
        listed={key: facts for key, facts in layer.listed.items() if key not in _OWN},
    )


def _plain(layer: Layer, order: tuple[str, ...]) -> dict[str, object]:
    """Return the values as the decoder wants them: each section with the sources and the oldest day of its values."""
    plain: dict[str, object] = {name: fact.value for name, fact in layer.single.items()}
    for name, facts in layer.tables.items():
        plain[name] = _section(facts, order)
    for name, entries in layer.entries.items():
        if name != "sources":
            plain[name] = [_section(facts, order) for facts in entries]
    for name, listed in layer.listed.items():
        plain[name] = [fact.value for fact in listed]
    return plain


def _section(facts: Facts, order: tuple[str, ...]) -> dict[str, object]:
    plain = _values(facts)
    stated = sorted(_each(facts), key=lambda fact: order.index(fact.file))
    days = [fact.checked for fact in stated]
    if source := list(dict.fromkeys(each for fact in stated for each in fact.source)):
        plain["source"] = source
    if days and all(day is not None for day in days):
        plain["checked"] = min(day for day in days if day is not None)
    return plain


def _values(facts: Facts) -> dict[str, object]:
    return {
        name: {each: inner.value for each, inner in fact.items()} if isinstance(fact, dict) else fact.value
        for name, fact in facts.items()
    }


def _each(facts: Facts) -> Iterator[Fact]:
    for fact in facts.values():
        if isinstance(fact, dict):
            yield from fact.values()
        else:
            yield fact


def _facts_of(layer: Layer) -> Iterator[tuple[str, Fact]]:
    """Yield every value with its path, in the order of the platform's fields."""
    for name in Platform.__struct_fields__:
        if name in layer.single:
            yield name, layer.single[name]
        elif name in TABLES:
            yield from _paths(name, layer.tables.get(name, {}))
        elif name in LISTED:
            yield from ((f"{name}[{place}]", fact) for place, fact in enumerate(layer.listed.get(name, ())))
        elif name != "sources":
            for entry in layer.entries.get(name, ()):
                yield from _paths(f"{name}[{label(name, entry)}]", entry)


def _paths(path: str, facts: Facts) -> Iterator[tuple[str, Fact]]:
    for name, fact in facts.items():
        if isinstance(fact, dict):
            yield from ((f"{path}.{name}.{each}", inner) for each, inner in fact.items())
        else:
            yield f"{path}.{name}", fact


def _origins(layer: Layer) -> Iterator[Origin]:
    for path, fact in _facts_of(layer):
        yield Origin(path=path, file=fact.file, source=fact.source, checked=fact.checked)


def _cited_sources(layer: Layer, site: tuple[SiteFile, ...]) -> tuple[PlatformSource, ...]:
    """Return the sources that the platform cites, in the order of their declaration. Raises InputError for others."""
    shared = Layer()
    for file in platform_files.shared_sources(site):
        shared = merged(shared, layer_of(file))
    known = merged(shared, Layer(entries={"sources": layer.entries.get("sources", ())}))
    declared = {label("sources", entry): entry for entry in known.entries.get("sources", ())}
    cited: set[str] = set()
    for path, fact in _facts_of(layer):
        cited.update(fact.source)
        for each in fact.source:
            if each not in declared:
                raise InputError(
                    f"{each!r} is cited and declared nowhere",
                    where=f"{fact.file}: {path}",
                    hint=f'declare it in the same file, under [[sources]]: id = "{each}", reference = "..."',
                )
    return tuple(_source(name, entry) for name, entry in declared.items() if name in cited)


def _source(name: str, entry: Facts) -> PlatformSource:
    try:
        return msgspec.convert(_values(entry), PlatformSource)
    except msgspec.ValidationError as error:
        raise InputError(_lowered(str(error)), where=f"{next(_each(entry)).file}: sources[{name}]") from error


def _blamed(error: msgspec.ValidationError, layer: Layer, order: tuple[str, ...]) -> InputError:
    """Return the decoder's error with the file that it is about."""
    said, _, path = str(error).partition(" - at `$.")
    path = path.removesuffix("`")
    where = _file_at(layer, path, order)
    at = f"{where}: {path}" if path else where
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", said, re.DOTALL)
    if unknown is None:
        return InputError(_lowered(said), where=at)
    name = unknown[1][:_LONGEST]
    return InputError(f"unknown key {name!r}{maybe(name, _fields_at(path))}", where=at)


def _fields_at(path: str) -> tuple[str, ...]:
    """Return the keys that the section or entry at a decoder's path can have."""
    kind = next((each.type for each in msgspec.structs.fields(Platform) if each.name == path.partition("[")[0]), None)
    section = getattr(kind, "__args__", (kind,))[0]
    return getattr(section, "__struct_fields__", ())


def _lowered(said: str) -> str:
    return f"{said[:1].lower()}{said[1:]}"


def _file_at(layer: Layer, path: str, order: tuple[str, ...]) -> str:
    """Return the file that the value at a decoder's path comes from; the strongest of several."""
    steps = [first or second for first, second in _STEP.findall(f".{path}")]
    name, place, key = [*steps, "", "", ""][:3]
    if name in layer.single:
        return layer.single[name].file
    if name in layer.listed and place.isdecimal():
        return layer.listed[name][int(place)].file
    facts = layer.tables.get(name, {})
    if name in layer.entries and place.isdecimal():
        facts, place = layer.entries[name][int(place)], key
    held = facts.get(place)
    if held is None:
        found = [fact.file for fact in _each(facts)]
    else:
        found = [held.file] if isinstance(held, Fact) else [fact.file for fact in held.values()]
    return min(found, key=order.index, default=order[0])
