"""The platforms there are: by id, by any of their names, and all of them, with what a site adds."""

import difflib
import fnmatch
import re
from collections.abc import Iterable, Iterator
from functools import cache

from busbw.base.errors import InputError
from busbw.facts import platform_files
from busbw.facts.platform_resolution import resolve
from busbw.model.platform import Platform, ResolvedPlatform
from busbw.model.site import SiteFile

_MOST_GUESSES = 3
# Of a name that is looked up; nobody calls a machine more than that.
_LONGEST = 200
_LIST = "busbw platform list"


def platform_ids(site: tuple[SiteFile, ...] = ()) -> tuple[str, ...]:
    """Return the ids of all platforms, sorted. No platform file is parsed."""
    return platform_files.names(site)


def all_platforms(site: tuple[SiteFile, ...] = ()) -> tuple[Platform, ...]:
    """Return every platform, by id. Raises InputError when a file of the site cannot be used."""
    return tuple(resolve(each, site).platform for each in platform_ids(site)) if site else _without_site()


@cache
def _without_site() -> tuple[Platform, ...]:
    """Return the platforms that busbw brings, which do not change while it runs."""
    return tuple(resolve(each, ()).platform for each in platform_ids())


def find_platform(name: str, site: tuple[SiteFile, ...] = ()) -> ResolvedPlatform:
    """Return the platform with this id, name or SKU, without regard to case and punctuation.

    Raises InputError for a name that none has, with those that come close, and for one that several have.
    """
    ids = platform_ids(site)
    if name.lower() in ids:
        return resolve(name.lower(), site)
    called = {each: tuple(_names(each, site)) for each in ids}
    wanted = _plain(name)
    found = [each for each, names in called.items() if wanted and wanted in map(_plain, names)]
    found = found or [each for each, names in called.items() if _matches(name, names)]
    if len(found) > 1:
        raise InputError(
            f"{_short(name)!r} is a name of {len(found)} platforms: {', '.join(found)}",
            hint=f"busbw platform show {found[0]}",
        )
    if not found:
        raise _unknown(name, called)
    return resolve(found[0], site)


def _names(platform_id: str, site: tuple[SiteFile, ...]) -> Iterator[str]:
    """Yield what the platform's own files call it; `ND A100 v4 (NDv4)` is three names."""
    yield platform_id
    for file in platform_files.files_named(platform_id, site):
        match, variants = file.raw.get("match"), file.raw.get("variants")
        texts = [
            *_texts(file.raw.get("names")),
            *_texts(match.get("skus") if isinstance(match, dict) else None),
            *_texts(
                [each.get("sku") for each in variants if isinstance(each, dict)] if isinstance(variants, list) else None
            ),
        ]
        for text in texts:
            yield text
            yield from re.findall(r"[^()]+", text) if "(" in text else ()


def _texts(value: object) -> Iterable[str]:
    return (each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def _matches(name: str, names: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name.lower(), each.lower()) for each in names if "*" in each or "?" in each)


def _unknown(name: str, called: dict[str, tuple[str, ...]]) -> InputError:
    wanted = _plain(name[:_LONGEST])
    owners = {_plain(each): platform_id for platform_id, names in called.items() for each in names}
    parts = [each for each in owners if len(wanted) > 2 and (wanted in each or (len(each) > 3 and each in wanted))]
    near = parts or difflib.get_close_matches(wanted, owners, n=_MOST_GUESSES, cutoff=0.6)
    guesses = list(dict.fromkeys(owners[each] for each in near))
    more = f" or {len(guesses) - _MOST_GUESSES} more" if len(guesses) > _MOST_GUESSES else ""
    maybe = f"; maybe: {', '.join(guesses[:_MOST_GUESSES])}{more}" if guesses else ""
    return InputError(
        f"no platform is called {_short(name)!r}{maybe}",
        hint=f"busbw platform show {guesses[0]}" if len(guesses) == 1 else _LIST,
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..."
