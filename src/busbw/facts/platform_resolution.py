"""From the files of a platform to the platform: every value with its origin, and whether the parts fit."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise

import msgspec

from busbw.base.collectives import COLLECTIVES
from busbw.base.cpus import parse_cpu_list
from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.facts import platform_files
from busbw.facts.platform_files import (
    LISTED,
    TABLES,
    Fact,
    Facts,
    Layer,
    PlatformFile,
    label,
    layer_of,
    merged,
    without,
)
from busbw.model.platform import Origin, Platform, PlatformSource, PublishedSweep, ResolvedPlatform, SiteFile

# The names of the algorithms that have a bound (`limits`): what a result may say it was measured with.
ALGORITHMS = (
    "ring", "tree", "nvls", "nvlstree", "collnet", "pat", "linear", "two-level", "neighbour", "any", "pairs",
)  # fmt: skip
_BUS_ID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")


def contradiction(platform: Platform) -> tuple[str, str] | None:
    """Return the path (`numa[1].cpus`, entries by place) and words of the first thing that cannot be, or None."""
    checks = (_amounts, _numa, _bus_ids, _switches, _gpus, _nics, _algorithms, _sweeps)
    return next((found for check in checks for found in check(platform)), None)


def _amounts(platform: Platform) -> Iterator[tuple[str, str]]:
    tables = {name: getattr(platform, name) for name in ("cpu", "gpu", "nvlink", "pcie", "nic", "frontend", "fabric")}
    tables |= {f"variants[{place}]": each for place, each in enumerate(platform.variants)}
    for path, table in tables.items():
        for name, value in msgspec.structs.asdict(table).items():
            if isinstance(value, int | float) and value < 0:
                yield f"{path}.{name}", f"{value:g} is less than nothing"


def _numa(platform: Platform) -> Iterator[tuple[str, str]]:
    owner: dict[int, int] = {}
    for place, node in enumerate(platform.numa):
        cpus = parse_cpu_list(node.cpus) if node.cpus is not None else ()
        if cpus is None or (node.cpus is not None and not cpus):
            yield f"numa[{place}].cpus", f"{node.cpus!r} is not a list of CPUs such as 0-55,112-167"
        for cpu in cpus or ():
            if owner.setdefault(cpu, node.id) != node.id:
                yield f"numa[{place}].cpus", f"CPU {cpu} is on NUMA node {owner[cpu]} and on {node.id}"


def _bus_ids(platform: Platform) -> Iterator[tuple[str, str]]:
    places = (
        *((f"switches[{place}].bus_id", each.bus_id) for place, each in enumerate(platform.switches)),
        *((f"gpus[{place}].bus_id", each.bus_id) for place, each in enumerate(platform.gpus)),
        *((f"nics[{place}].bus_id", each.bus_id) for place, each in enumerate(platform.nics)),
    )
    for path, bus_id in places:
        if bus_id is not None and _BUS_ID.fullmatch(bus_id) is None:
            yield path, f"{bus_id!r} is not a PCI address in lower case such as 0000:0f:00.0"


def _switches(platform: Platform) -> Iterator[tuple[str, str]]:
    parents = {switch.bus_id: switch.parent for switch in platform.switches}
    misplaced = _misplaced(platform)
    for place, switch in enumerate(platform.switches):
        yield from misplaced(f"switches[{place}]", switch.numa, switch.parent)
        above, steps = switch.parent, 0
        while above is not None and steps <= len(parents):
            above, steps = parents.get(above), steps + 1
        if above is not None:
            yield f"switches[{place}].parent", "the switches hang below each other in a circle"


def _gpus(platform: Platform) -> Iterator[tuple[str, str]]:
    if len(platform.gpus) > max(platform.gpu.count, *(each.gpus or 0 for each in platform.variants), 0):
        yield "gpus", f"{len(platform.gpus)} are listed, and gpu.count is {platform.gpu.count}"
    names, misplaced = {nic.name for nic in platform.nics}, _misplaced(platform)
    for place, gpu in enumerate(platform.gpus):
        yield from misplaced(f"gpus[{place}]", gpu.numa, gpu.parent)
        for name in gpu.nics:
            if platform.nics and name not in names:
                yield f"gpus[{place}].nics", f"there is no NIC {name} among `nics`"


def _nics(platform: Platform) -> Iterator[tuple[str, str]]:
    misplaced = _misplaced(platform)
    for place, nic in enumerate(platform.nics):
        yield from misplaced(f"nics[{place}]", nic.numa, nic.parent)


def _misplaced(platform: Platform) -> Callable[[str, int | None, str | None], Iterator[tuple[str, str]]]:
    """Return what looks for the NUMA node and the switch that something is said to be at."""
    nodes, switches = {node.id for node in platform.numa}, {switch.bus_id for switch in platform.switches}

    def look(path: str, numa: int | None, parent: str | None) -> Iterator[tuple[str, str]]:
        if numa is not None and nodes and numa not in nodes:
            yield f"{path}.numa", f"there is no NUMA node {numa} among `numa`"
        if parent is not None and parent not in switches:
            yield f"{path}.parent", f"there is no switch {parent} among `switches`"

    return look


def _algorithms(platform: Platform) -> Iterator[tuple[str, str]]:
    """Yield results whose algorithm no other result can have: they would never be compared with anything."""
    for name in ("published", "sweeps"):
        for place, each in enumerate(getattr(platform, name)):
            if each.algorithm is not None and each.algorithm not in ALGORITHMS:
                yield f"{name}[{place}]", f"{each.algorithm[:80]!r} is not an algorithm: one of {', '.join(ALGORITHMS)}"


def _sweeps(platform: Platform) -> Iterator[tuple[str, str]]:
    for place, sweep in enumerate(platform.sweeps):
        wrong = _wrong_sweep(sweep)
        if wrong is not None:
            yield f"sweeps[{place}]", wrong


def _wrong_sweep(sweep: PublishedSweep) -> str | None:
    """Return what cannot be in a table of results, or None."""
    sizes = [size_bytes for size_bytes, _ in sweep.points]
    if sweep.test not in COLLECTIVES:
        return f"{sweep.test[:80]!r} is not a collective that busbw knows"
    if sweep.nodes < 1 or sweep.gpus < 1 or sweep.gpus % sweep.nodes:
        return f"{sweep.gpus} GPUs are not the same number on each of {sweep.nodes} nodes"
    if not sizes:
        return "no point: each is [size in bytes, GB/s]"
    if sizes[0] <= 0 or any(after <= before for before, after in pairwise(sizes)):
        return "the sizes do not ascend from point to point"
    low = next((rate for _, rate in sweep.points if rate <= 0), None)
    if low is not None:
        return f"a bus bandwidth of {low:g} GB/s"
    return None if sweep.document.strip() else "`document` is empty"


# What a platform does not take over from another platform that it extends: with the other's SKU both would be detected.
_OWN = ("id", "names", "match")
# Of a name in an error.
_LONGEST = 80
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")


@lru_cache(maxsize=512)
def resolve(name: str, site: tuple[SiteFile, ...]) -> ResolvedPlatform:
    """Return the platform whose file is called `name`, from all its files.

    Raises InputError, with the file and the key, for anything in them that is not as it has to be.
    """
    files = platform_files.layers(name, site)
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
    declared = _shared(site)
    if own := layer.entries.get("sources"):
        declared = _declared(
            merged(Layer(entries={"sources": tuple(declared.values())}), Layer(entries={"sources": own}))
        )
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


@lru_cache(maxsize=8)
def _shared(site: tuple[SiteFile, ...]) -> dict[str, Facts]:
    """Return the sources that every file may cite, by id."""
    shared = Layer()
    for file in platform_files.shared_sources(site):
        shared = merged(shared, layer_of(file))
    return _declared(shared)


def _declared(layer: Layer) -> dict[str, Facts]:
    return {label("sources", entry): entry for entry in layer.entries.get("sources", ())}


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
