"""Which GPUs of a node reach each other over links of their own."""

from busbw.model.platform import GpuPlace, Platform


def island_of_platform(platform: Platform, used: int) -> tuple[int | None, tuple[str, ...]]:
    """Return how many of the first `used` GPUs are joined, and what would have to be known; 1: none has such links."""
    link = platform.nvlink
    if used == 1 or link.switched:
        return used, ()
    places = platform.gpus[:used]
    if len(places) == used and all(place.nvlinks for place in places):
        joined = _smallest_component(places)
        if joined is not None:
            return joined, ()
    return _by_numbers(platform, used)


def _by_numbers(platform: Platform, used: int) -> tuple[int | None, tuple[str, ...]]:
    link = platform.nvlink
    if link.pair_Bps is not None and link.gpu_Bps is not None:
        return min(used, round(link.gpu_Bps / link.pair_Bps) + 1), ()
    if link.links_per_pair is not None and link.links_per_gpu is not None:
        return min(used, link.links_per_gpu // link.links_per_pair + 1), ()
    if link.gpu_Bps is not None or link.links_per_gpu is not None:
        return used, ("which GPUs are linked to which: taken as if all were",)
    if link.generation is not None:
        # Links without a rate: bridges between pairs of cards.
        return min(used, 2), ("which GPUs are linked to which: taken as pairs",)
    return 1, ()


def _smallest_component(places: tuple[GpuPlace, ...]) -> int | None:
    """Return the size of the smallest group of GPUs that are linked; None where links lead elsewhere, to switches."""
    by_bus = {place.bus_id: place for place in places if place.bus_id is not None}
    if len(by_bus) < len(places) or not any(target in by_bus for place in places for target in place.nvlinks):
        return None
    sizes = []
    left = set(by_bus)
    while left:
        reached, ahead = set(), [left.pop()]
        while ahead:
            bus_id = ahead.pop()
            reached.add(bus_id)
            ahead += [target for target in by_bus[bus_id].nvlinks if target in by_bus and target not in reached]
        left -= reached
        sizes.append(len(reached))
    return min(sizes)
