"""Which files make up a platform, and in which order they apply."""

from busbw.base.errors import InputError
from busbw.facts.platform_files import PlatformFile, files_named
from busbw.model.site import SiteFile


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
