"""Platform files by name: those shipped, those of a site, and the order in which they apply."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

import msgspec

from busbw.base.errors import InputError
from busbw.model.platform import SiteFile

# Declares sources that every file may cite, and is no platform.
SOURCES = "sources"
FAMILY = "family"
_ENDING = ".toml"
_NAME = re.compile(rf"(?:{FAMILY}/)?[a-z0-9][a-z0-9._-]{{0,99}}")
# Python's reader of TOML takes minutes for a key of thousands of parts.
_MOST_DOTS = 200


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
    for number, line in enumerate(file.text.split("\n"), 1):
        if line.count(".") > _MOST_DOTS:
            raise InputError(f"a line with more than {_MOST_DOTS} dots", where=f"{file.path}:{number}")
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
