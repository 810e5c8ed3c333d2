"""Platform files by name: those shipped, those of a site, and the order in which they apply."""

import datetime as dt
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

import msgspec

from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.base.toml import check_key_lengths
from busbw.model.platform import Platform, PlatformSection, SiteFile

# Declares sources that every file may cite, and is not a platform.
SOURCES = "sources"
FAMILY = "family"
_ENDING = ".toml"
_NAME = re.compile(rf"(?:{FAMILY}/)?[a-z0-9][a-z0-9._-]{{0,99}}")


@dataclass(frozen=True, eq=False)
class PlatformFile:
    """One file. `name` is the platform's id, or `family/...`; `where` the file as a person finds it."""

    name: str
    where: str
    raw: dict[str, object]

    @property
    def is_family(self) -> bool:
        """Whether it describes a part that platforms share."""
        return self.name.startswith(f"{FAMILY}/")

    @property
    def extends(self) -> tuple[str, ...]:
        """Return the names of the files that it builds on, the weakest first. Raises InputError."""
        named = self.raw.get("extends", [])
        if not isinstance(named, list) or not all(isinstance(each, str) and is_name(each) for each in named):
            raise InputError(
                "`extends` is not a list of names of platform files",
                where=self.where,
                hint='extends = ["azure-ndv4"], or ["family/NAME"]',
            )
        return tuple(named)


def is_name(text: str) -> bool:
    """Return whether `text` can be the name of a platform file, without its ending."""
    return _NAME.fullmatch(text) is not None and text != SOURCES


def files_named(name: str, site: tuple[SiteFile, ...]) -> tuple[PlatformFile, ...]:
    """Return the files with this name, the weakest first: the shipped one, then the site's; () when there is none.

    Raises InputError when one cannot be parsed.
    """
    shipped = _shipped(name) if is_name(name) else None
    own = tuple(_of_site(file) for file in site if _site_name(file) == name)
    return own if shipped is None else (shipped, *own)


def names(site: tuple[SiteFile, ...]) -> tuple[str, ...]:
    """Return the ids of all platforms, sorted. Raises InputError for a site's file whose name cannot be one."""
    return tuple(sorted({*_shipped_names(), *_site_platforms(site)}))


def shared_sources(site: tuple[SiteFile, ...]) -> tuple[PlatformFile, ...]:
    """Return the files that declare sources for all others, the weakest first."""
    return (_shared(), *(_of_site(file) for file in site if _site_name(file) == SOURCES))


def _site_platforms(site: tuple[SiteFile, ...]) -> Iterator[str]:
    for file in site:
        name = _site_name(file)
        if name != SOURCES and not is_name(name):
            raise InputError(
                "this cannot be the name of a platform: use lower case letters, digits, '-', '_' and '.'",
                where=file.path,
                hint="rename the file: its name without .toml is the platform's id",
            )
        if name != SOURCES and not name.startswith(f"{FAMILY}/"):
            yield name


def _site_name(file: SiteFile) -> str:
    path = PurePosixPath(file.path)
    stem = path.name.removesuffix(_ENDING)
    return f"{FAMILY}/{stem}" if path.parent.name == FAMILY else stem


def _directory() -> Traversable:
    return files("busbw").joinpath("data", "platforms")


@cache
def _shipped_names() -> tuple[str, ...]:
    stems = (each.name.removesuffix(_ENDING) for each in _directory().iterdir() if each.name.endswith(_ENDING))
    return tuple(sorted(stem for stem in stems if is_name(stem)))


@cache
def _shipped(name: str) -> PlatformFile | None:
    path = _directory().joinpath(*f"{name}{_ENDING}".split("/"))
    return _read(name, path) if path.is_file() else None


@cache
def _shared() -> PlatformFile:
    return _read(SOURCES, _directory().joinpath(f"{SOURCES}{_ENDING}"))


def _read(name: str, path: Traversable) -> PlatformFile:
    where = f"busbw/data/platforms/{name}{_ENDING}"
    return PlatformFile(name=name, where=where, raw=_parsed(path.read_bytes(), where))


@lru_cache(maxsize=1024)
def _of_site(file: SiteFile) -> PlatformFile:
    check_key_lengths(file.text, file.path)
    return PlatformFile(
        name=_site_name(file), where=file.path, raw=_parsed(file.text.encode("utf-8", "replace"), file.path)
    )


def _parsed(raw: bytes, where: str) -> dict[str, object]:
    try:
        return msgspec.toml.decode(raw, type=dict[str, object])
    # The parser lets Python's own refusal of very long numbers through.
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"not valid TOML: {error}", where=where) from error


def layers(name: str, site: tuple[SiteFile, ...]) -> tuple[PlatformFile, ...]:
    """Return the files of a platform, the weakest first: what it extends from left to right, then its own.

    A file that is reached on two ways applies once, where it is reached first. What a site's file extends stands
    between the shipped file of its name and the site's. Raises InputError for a name without a file, and for a circle.
    """
    found: dict[str, tuple[PlatformFile, ...]] = {}
    ordered: list[PlatformFile] = []
    _collect(name, site, (), found, ordered)
    return tuple(ordered)


def _collect(
    name: str,
    site: tuple[SiteFile, ...],
    chain: tuple[PlatformFile, ...],
    found: dict[str, tuple[PlatformFile, ...]],
    ordered: list[PlatformFile],
) -> None:
    words = " extends ".join([*(file.name for file in chain), name])
    if any(file.name == name for file in chain):
        raise InputError(
            f"a circle: {words}",
            where=chain[-1].where,
            hint="a site's file is laid over the shipped one of its name by itself: leave that out of `extends`",
        )
    if name in found:
        return
    found[name] = files_named(name, site)
    if not found[name]:
        raise InputError(
            f"there is no platform file {name}.toml: {words}" if chain else f"there is no platform file {name}.toml",
            where=chain[-1].where if chain else None,
        )
    for file in found[name]:
        for base in file.extends:
            _collect(base, site, (*chain, file), found, ordered)
        ordered.append(file)


# Entries of these are merged by what they are known by: the first of these keys that both have.
KNOWN_BY: dict[str, tuple[tuple[str, ...], ...]] = {
    "numa": (("id",),),
    "switches": (("bus_id",),),
    "gpus": (("gpu",),),
    "nics": (("name",), ("bus_id", "port")),
    "variants": (("sku",),),
    "settings": (("name", "goal"),),
    "sources": (("id",),),
}
_FIELDS = {field.name: field.type for field in msgspec.structs.fields(Platform)}
TABLES = tuple(name for name, kind in _FIELDS.items() if isinstance(kind, type) and issubclass(kind, PlatformSection))
LISTED = tuple(
    name for name, kind in _FIELDS.items() if getattr(kind, "__origin__", None) is tuple and name not in KNOWN_BY
)
# What a file says about itself, beside the fields of a platform.
_OF_THE_FILE = ("extends", "unknown")
_DEEPEST = 4
# Of a name in an error.
_LONGEST = 80

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """One value, of a TOML type or None, and where it comes from."""

    value: object
    file: str
    source: tuple[str, ...] = ()
    checked: str | None = None


# The values of one section or entry; a table inside (match.dmi) is merged key by key too.
Facts = dict[str, Fact | dict[str, Fact]]


@dataclass(frozen=True, slots=True)
class Layer:
    """What a file states, or several merged: single values, sections, entries that are known by a key, and lists."""

    single: dict[str, Fact] = field(default_factory=dict)
    tables: dict[str, Facts] = field(default_factory=dict)
    entries: dict[str, tuple[Facts, ...]] = field(default_factory=dict)
    listed: dict[str, tuple[Fact, ...]] = field(default_factory=dict)


@lru_cache(maxsize=1024)
def layer_of(file: PlatformFile) -> Layer:
    """Return what `file` states. Raises InputError where its form is not that of a platform file."""
    made = Layer()
    for name, value in file.raw.items():
        where = f"{file.where}: {name}"
        if name in _OF_THE_FILE:
            continue
        if name in TABLES:
            made.tables[name] = _section(value, file.where, where)
        elif name in KNOWN_BY:
            made.entries[name] = tuple(_entry(name, entry, file.where, each) for each, entry in _items(value, where))
            _check_known(name, made.entries[name], where)
        elif name in LISTED:
            made.listed[name] = tuple(_listed(each, entry, file.where) for each, entry in _items(value, where))
        elif name in _FIELDS:
            made.single[name] = Fact(value=_plain(value, where), file=file.where)
        else:
            near = maybe(name[:_LONGEST], (*_FIELDS, *_OF_THE_FILE))
            raise InputError(f"unknown key {name[:_LONGEST]!r}{near}", where=file.where)
    if file.is_family and "id" in made.single:
        raise InputError("a family has no id", where=file.where, hint="leave out `id`")
    return made


def known_by(array: str, entry: Facts) -> tuple[Key, ...]:
    """Return the keys that an entry of `array` answers to, the first the strongest; () when it has none."""
    keys: list[Key] = []
    for place, fields in enumerate(KNOWN_BY[array]):
        values = [fact.value if isinstance(fact := entry.get(name), Fact) else None for name in fields]
        if values[0] is not None:
            if fields == ("bus_id", "port"):
                values[1] = 1 if values[1] is None else values[1]
            keys.append((place, *(_comparable(name, value) for name, value in zip(fields, values, strict=True))))
    return tuple(keys)


def label(array: str, entry: Facts) -> str:
    """Return what an entry is called in a path: `0`, `mlx5_ib0`, `NCCL_ALGO, sharp`."""
    keys = known_by(array, entry)
    return ", ".join(str(part) for part in keys[0][1:] if part is not None) if keys else "?"


def _comparable(name: str, value: object) -> object:
    if isinstance(value, str) and name == "bus_id":
        return value.lower()
    return str(value) if isinstance(value, list | dict) else value


def _check_known(array: str, entries: tuple[Facts, ...], where: str) -> None:
    """Raise InputError for an entry without a key, and for two with the same."""
    seen: set[Key] = set()
    for place, entry in enumerate(entries):
        keys = known_by(array, entry)
        if not keys:
            needed = " or ".join(fields[0] for fields in KNOWN_BY[array])
            raise InputError(f"entry {place + 1} has no {needed}", where=where)
        if seen.intersection(keys):
            raise InputError(f"{label(array, entry)} stands twice", where=where)
        seen.update(keys)


def _items(value: object, where: str) -> list[tuple[str, object]]:
    if not isinstance(value, list):
        raise InputError("not a list", where=where)
    return [(f"{where}[{place}]", item) for place, item in enumerate(value)]


def _entry(array: str, value: object, file: str, where: str) -> Facts:
    # What is known of a source is not itself taken from a source.
    if array == "sources":
        return _facts(_table(value, where), Fact(value=None, file=file), where)
    return _section(_with_unset(value, where) if array == "settings" else value, file, where)


def _with_unset(setting: object, where: str) -> object:
    """Return a setting that says `unset = true` as one whose value is None, which TOML cannot write."""
    if not isinstance(setting, dict) or "unset" not in setting:
        return setting
    if setting["unset"] is not True or "value" in setting:
        raise InputError("a setting says either `unset = true` or a value", where=where)
    return {**{name: value for name, value in setting.items() if name != "unset"}, "value": None}


def _section(value: object, file: str, where: str) -> Facts:
    """Return the values of one section, each with the section's source and day."""
    table = _table(value, where)
    source, checked = _provenance(table, where)
    stated = {name: item for name, item in table.items() if name not in ("source", "checked")}
    return _facts(stated, Fact(value=None, file=file, source=source, checked=checked), where)


def _facts(table: dict[str, object], origin: Fact, where: str) -> Facts:
    """Return the values of a table, each as a fact that is otherwise like `origin`."""
    return {
        name: {each: replace(origin, value=_plain(inner, where)) for each, inner in item.items()}
        if isinstance(item, dict)
        else replace(origin, value=_plain(item, where))
        for name, item in table.items()
    }


def _table(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InputError("not a table", where=where)
    return value


def _listed(where: str, entry: object, file: str) -> Fact:
    if not isinstance(entry, dict):
        return Fact(value=_plain(entry, where), file=file)
    source, checked = _provenance(entry, where)
    return Fact(value=_plain(entry, where), file=file, source=source, checked=checked)


def _provenance(table: dict[str, object], where: str) -> tuple[tuple[str, ...], str | None]:
    source, checked = table.get("source", []), _plain(table.get("checked"), where)
    if not isinstance(source, list) or not all(isinstance(each, str) for each in source):
        raise InputError("`source` is not a list of ids of sources", where=where, hint='source = ["our-wiki"]')
    if checked is not None and (not isinstance(checked, str) or not re.fullmatch(r"\d{4}(-\d\d){0,2}", checked)):
        raise InputError("`checked` is not a day", where=where, hint='checked = "2026-11-21"')
    return tuple(source), checked


def _plain(value: object, where: str, depth: int = 0) -> object:
    """Return a value that is JSON as it stands. Raises InputError for what is not, or is nested too deeply."""
    if depth > _DEEPEST:
        raise InputError("nested too deeply", where=where)
    if isinstance(value, list):
        return [_plain(each, where, depth + 1) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each, where, depth + 1) for name, each in value.items()}
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{value} is not a number that anybody measured", where=where)
    if isinstance(value, int) and value.bit_length() > 63:
        raise InputError("a number that is too large", where=where)
    return value


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
