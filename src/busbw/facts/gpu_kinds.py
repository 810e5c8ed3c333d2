"""What the platforms have in common that have the same GPU: known of a GPU by its name alone."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from busbw.base.value import Integer, Value
from busbw.model.platform import GpuKind, NvLinkKind, Platform, Published, PublishedSweep


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
