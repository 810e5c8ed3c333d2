"""The platforms there are: by name, by PCI address, and what those with the same GPU have in common."""

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

import msgspec

from busbw.base.errors import InputError
from busbw.base.text import listed
from busbw.base.units import format_size
from busbw.base.value import Integer, Value
from busbw.facts import platform_files
from busbw.facts.platform_files import FAMILY, names
from busbw.facts.platform_resolution import resolve
from busbw.model.platform import GpuKind, NvLinkKind, Platform, Published, PublishedSweep, ResolvedPlatform, SiteFile

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


def platforms_with(gpu_names: Sequence[str], site: tuple[SiteFile, ...] = ()) -> tuple[Platform, ...]:
    """Return every platform that has a GPU of one of these names, by id, as `all_platforms` would.

    Others are not put together, which takes most of the time of all. Raises InputError when one of them cannot be.
    """
    wanted = [name for name in gpu_names if "*" not in name]
    return tuple(resolve(each, site).platform for each in platform_ids(site) if _may_have(each, wanted, site))


def _may_have(name: str, gpu_names: Sequence[str], site: tuple[SiteFile, ...]) -> bool:
    """Whether any file of a platform names one of these GPUs; what is no list of names is for `resolve` to refuse."""
    for file in platform_files.layers(name, site):
        match = file.raw.get("match", {})
        globs = match.get("gpu_names", []) if isinstance(match, dict) else None
        if not isinstance(globs, list) or any(fnmatchcase(gpu, str(glob)) for glob in globs for gpu in gpu_names):
            return True
    return False


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


def platforms_called_in(text: str, site: tuple[SiteFile, ...] = ()) -> tuple[str, ...]:
    """Return the platforms one of whose names is among the words of a text, by id, the longest name first."""
    words = f" {_words(text)} "
    longest = {
        each: max((len(name) for name in map(_words, _names(each, site)) if name and f" {name} " in words), default=0)
        for each in platform_ids(site)
    }
    return tuple(sorted((each for each in longest if longest[each]), key=lambda each: (-longest[each], each)))


def _words(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).lower().strip()


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
    maybe = f"; maybe: {listed(guesses, _MOST_GUESSES)}" if guesses else ""
    return InputError(
        f"no platform is called {_short(name)!r}{maybe}",
        hint=f"busbw platform show {guesses[0]}" if len(guesses) == 1 else _LIST,
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..."


_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_GPU_NAMES = re.compile(r"gpu_names[\"']?\s*=\s*\[([^\]]*)\]")
_QUOTED = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
_MENTION = re.compile(r"[\"']([a-z0-9][a-z0-9._/-]*)[\"']")
_ENDING = ".toml"


def platforms_at(addresses: frozenset[str], site: tuple[SiteFile, ...] = ()) -> tuple[Platform, ...]:
    """Return the platforms that may have a device at one of the addresses, by id.

    Raises InputError when a file of the site that belongs to one of them cannot be used.
    """
    return _platforms_of(lambda text: not addresses.isdisjoint(_ADDRESS.findall(text.lower())), site)


def platforms_with_gpus(models: frozenset[str], site: tuple[SiteFile, ...] = ()) -> tuple[Platform, ...]:
    """Return the platforms that may have GPUs of one of these names, as drivers give them, by id.

    Raises InputError when a file of the site that belongs to one of them cannot be used.
    """
    wanted = {each for model in models for each in spellings(model)}

    def names_one(text: str) -> bool:
        globs = {
            glob for listed in _GPU_NAMES.findall(text) for pair in _QUOTED.findall(listed) for glob in pair if glob
        }
        return any(fnmatchcase(model, glob) for glob in globs for model in wanted)

    return _platforms_of(names_one, site) if wanted else ()


def _platforms_of(looked_for: Callable[[str], bool], site: tuple[SiteFile, ...]) -> tuple[Platform, ...]:
    """Return the platforms whose files, or files that those extend, have the text that is looked for, by id.

    Only their files are parsed.
    """
    texts = _texts_by_name(site)
    near = {name for name, text in texts.items() if looked_for(text)}
    mentions = {name: set(_MENTION.findall(text)) for name, text in texts.items()} if near else {}
    while True:
        more = {name for name, mentioned in mentions.items() if name not in near and mentioned & near}
        if not more:
            break
        near |= more
    return tuple(resolve(name, site).platform for name in names(site) if name in near) if near else ()


def _texts_by_name(site: tuple[SiteFile, ...]) -> dict[str, str]:
    """Return the text of every platform file by its name, a site's behind the shipped one."""
    texts = dict(_shipped_texts())
    for file in site:
        path_there = PurePosixPath(file.path)
        name = path_there.name.removesuffix(_ENDING)
        name = f"{FAMILY}/{name}" if path_there.parent.name == FAMILY else name
        texts[name] = texts.get(name, "") + file.text
    return texts


@cache
def _shipped_texts() -> dict[str, str]:
    root = files("busbw").joinpath("data", "platforms")
    return {
        prefix + path.name.removesuffix(_ENDING): path.read_text(encoding="utf-8")
        for directory, prefix in ((root, ""), (root.joinpath(FAMILY), f"{FAMILY}/"))
        for path in _toml_in(directory)
    }


def _toml_in(directory: Traversable) -> list[Traversable]:
    return [path for path in directory.iterdir() if path.name.endswith(_ENDING)] if directory.is_dir() else []


class GpuFacts(Value, frozen=True, kw_only=True):
    """What holds for a GPU wherever it is sold."""

    # As the driver names it.
    name: str
    # Compute capability times ten.
    sm: Integer | None
    # Without the number of GPUs of one domain where platforms differ in it: the name does not tell.
    nvlink: NvLinkKind
    # Whether the links join GPUs of several nodes (GB200 NVL72); None: on some platforms.
    across_nodes: bool | None
    # Ids of the platforms it was taken from.
    platforms: tuple[str, ...]
    # Bus bandwidth within one node, as it was published of any of them.
    sweeps: tuple[PublishedSweep, ...] = ()
    published: tuple[Published, ...] = ()


# Forms of one exchange: what is published of one is told beside the other.
_ALIKE = {"alltoall": ("alltoall", "alltoall_2dh"), "alltoall_2dh": ("alltoall", "alltoall_2dh")}
_GAIN = "gain"


def gains(platform: Platform, collective: str) -> tuple[str, ...]:
    """Return what is published of how much faster a collective is by another way, a sentence each, with conditions.

    Such a figure is a ratio or a difference: it bounds nothing, and no result is judged by it.
    """
    tests = _ALIKE.get(collective, (collective,))
    figures = [each for each in platform.published if each.metric.startswith(_GAIN) and each.test in tests]
    return tuple(
        f"published, for information: {each.test}{_at(each)}: {each.metric} {each.value:g} {each.unit}"
        f" ({each.conditions or each.kind} {', '.join(each.source)})"
        for each in figures
    )


def _at(figure: Published) -> str:
    size = f" {format_size(figure.size_bytes)}" if figure.size_bytes is not None else ""
    return f"{size} on {figure.nodes} nodes" if figure.nodes is not None else size


def spellings(name: str) -> tuple[str, ...]:
    """Return how drivers name this GPU: those before 465 leave out `NVIDIA` where later ones have it."""
    return (name, f"NVIDIA {name}")


def facts_of_gpu(name: str, platforms: Iterable[Platform]) -> GpuFacts | None:
    """Return what all platforms with this GPU say alike of its links; None where none has it, or they contradict."""
    having = [each for each in platforms if any(fnmatchcase(name, glob) for glob in each.match.gpu_names)]
    if len({_links(each.nvlink) for each in having}) != 1:
        return None
    sweeps = (sweep for each in having for sweep in each.sweeps if sweep.nodes == 1)
    across = {each.nvlink.domain_gpus is not None for each in having}
    return GpuFacts(
        name=name,
        sm=_sm(each.gpu for each in having),
        nvlink=_with_common_domain([each.nvlink for each in having]),
        across_nodes=across.pop() if len(across) == 1 else None,
        platforms=_ids(having),
        sweeps=tuple(dict.fromkeys(sweeps)),
        published=tuple(dict.fromkeys(figure for each in having for figure in each.published if _is_inside(figure))),
    )


def _is_inside(figure: Published) -> bool:
    """Whether a figure is a bus bandwidth over the links of one node."""
    return (figure.nodes, figure.metric, figure.network) in ((1, "busbw", None), (1, "busbw", "fabric"))


def facts_of_gpus(platforms: Sequence[Platform]) -> dict[str, GpuFacts]:
    """Return what is known of every GPU that platforms name, by its name."""
    names = {name for each in platforms for name in each.match.gpu_names if "*" not in name}
    found = {name: facts_of_gpu(name, platforms) for name in sorted(names)}
    return {name: facts for name, facts in found.items() if facts is not None}


def _links(link: NvLinkKind) -> tuple[float | None, float | None, bool | None, bool | None]:
    return link.gpu_Bps, link.pair_Bps, link.switched, link.nvls


def _with_common_domain(links: list[NvLinkKind]) -> NvLinkKind:
    """Return the first, less its domain where another has a larger or a smaller one: racks can be partitioned."""
    same = len({link.domain_gpus for link in links}) == 1
    return links[0] if same else msgspec.structs.replace(links[0], domain_gpus=None)


def _sm(kinds: Iterable[GpuKind]) -> int | None:
    said = {kind.sm for kind in kinds}
    return said.pop() if len(said) == 1 else None


def _ids(platforms: list[Platform]) -> tuple[str, ...]:
    return tuple(each.id for each in platforms)
