"""The platforms that have something at given PCI addresses, without reading all the others.

Reading every platform takes longer than checking a file: so files are first searched as text. What mentions a file that
holds an address may build on it, and only these are read.
"""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from busbw.facts.platform_files import FAMILY, names
from busbw.facts.platform_resolution import resolve
from busbw.model.platform import Platform
from busbw.model.site import SiteFile

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_MENTION = re.compile(r"[\"']([a-z0-9][a-z0-9._/-]*)[\"']")
_ENDING = ".toml"


def platforms_at(addresses: frozenset[str], site: tuple[SiteFile, ...] = ()) -> tuple[Platform, ...]:
    """Return the platforms that may have a device at one of the addresses, by id.

    Raises InputError when a file of the site that belongs to one of them cannot be used.
    """
    texts = _texts(site)
    near = {name for name, text in texts.items() if not addresses.isdisjoint(_ADDRESS.findall(text))}
    mentions = {name: set(_MENTION.findall(text)) for name, text in texts.items()}
    while True:
        more = {name for name, mentioned in mentions.items() if name not in near and mentioned & near}
        if not more:
            break
        near |= more
    return tuple(resolve(name, site).platform for name in names(site) if name in near)


def _texts(site: tuple[SiteFile, ...]) -> dict[str, str]:
    """Return the text of every platform file by its name, a site's behind the shipped one, in lower case."""
    texts: dict[str, str] = {}
    root = files("busbw").joinpath("data", "platforms")
    for directory, prefix in ((root, ""), (root.joinpath(FAMILY), f"{FAMILY}/")):
        for path in _toml_in(directory):
            texts[prefix + path.name.removesuffix(_ENDING)] = path.read_text(encoding="utf-8").lower()
    for file in site:
        path_there = PurePosixPath(file.path)
        name = path_there.name.removesuffix(_ENDING)
        name = f"{FAMILY}/{name}" if path_there.parent.name == FAMILY else name
        texts[name] = texts.get(name, "") + file.text.lower()
    return texts


def _toml_in(directory: Traversable) -> list[Traversable]:
    return [path for path in directory.iterdir() if path.name.endswith(_ENDING)] if directory.is_dir() else []
