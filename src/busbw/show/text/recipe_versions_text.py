"""What is known of versions that belong together, as text."""

from collections.abc import Iterable, Iterator

from rich.padding import Padding
from rich.text import Text

from busbw.facts.recipes import Misfit, Plugin, Release, Tried, Versions
from busbw.show.plain import printable
from busbw.show.text.terminal import console

_PLUGIN = "aws-ofi-nccl"
_NAMES = {"efa": "EFA software", "osu": "OSU micro-benchmarks"}
_MARK = {"error": "refused", "warning": "warned of"}


def versions_text(known: Versions) -> None:
    """Print every fact on a line of its own, with its source."""
    out = console()
    for title, rows in _sections(known):
        out.print(Text(title, style="bold"))
        for row, source in rows:
            out.print(Padding(Text(printable(f"{row} ({source})")), (0, 0, 0, 2)))
        out.print()


def _sections(known: Versions) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
    yield "NCCL as a wheel", ((f"{each.name}: {', '.join(each.versions)}", each.checked) for each in known.wheel)
    yield (
        "NCCL as a package",
        ((f"{each.nccl} for CUDA {', '.join(each.cuda)}", each.source) for each in known.package),
    )
    yield "releases, and what comes with them", ((_release(each), each.source) for each in known.release)
    yield (
        "images, and what is in them",
        (
            (f"{each.name}: {_parts(NCCL=each.nccl, CUDA=each.cuda, plugin=each.plugin, HPCX=each.hpcx)}", each.source)
            for each in known.image
        ),
    )
    yield f"{_PLUGIN}, and what it was tested with", ((_plugin(each), each.source) for each in known.plugin)
    yield "run together by somebody", ((_tried(each), each.source) for each in known.tried)
    yield "what does not fit, or may not", ((_misfit(each), each.source) for each in known.misfit)


def _release(release: Release) -> str:
    name = f"{_NAMES[release.of]} {release.version}"
    return f"{name}: {_parts(libfabric=release.libfabric, plugin=release.plugin)}" if release.of == "efa" else name


def _plugin(plugin: Plugin) -> str:
    since = _parts(NCCL=plugin.nccl_since, libfabric=plugin.libfabric_since)
    return f"{plugin.version}: NCCL {', '.join(plugin.nccl)}; works since {since}"


def _tried(tried: Tried) -> str:
    stack = _parts(NCCL=tried.nccl, CUDA=tried.cuda, plugin=tried.plugin, libfabric=tried.libfabric)
    image = f" in {tried.image}" if tried.image is not None else ""
    return f"{stack}{image}, {', '.join(tried.platforms)}: {tried.result or 'no result'}"


def _misfit(misfit: Misfit) -> str:
    where = ", ".join((*misfit.platforms, *misfit.fabrics)) or "anywhere"
    return f"{_MARK[misfit.severity]}, {where}: {misfit.text}"


def _parts(**versions: str | None) -> str:
    names = {"plugin": _PLUGIN, "HPCX": "HPC-X"}
    known = [f"{names.get(name, name)} {version}" for name, version in versions.items() if version is not None]
    return ", ".join(known) or "not known here"
