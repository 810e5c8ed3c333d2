"""Platforms as this host knows them: those that are shipped, with what its site adds."""

from busbw.catalog.platforms import find_platform, platform_ids
from busbw.model.platform import ResolvedPlatform
from busbw.probe.capture.sites import site_files


def platform(name: str) -> ResolvedPlatform:
    """Return the platform with this id, name or SKU, with the origin of each value.

    Raises InputError for a name that none has, and for a site's file that cannot be used.
    """
    return find_platform(name, site_files())


def platforms() -> tuple[ResolvedPlatform, ...]:
    """Return every platform, by id. Raises InputError for a site's file that cannot be used."""
    site = site_files()
    return tuple(find_platform(each, site) for each in platform_ids(site))
