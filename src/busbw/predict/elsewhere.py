"""What platforms' files publish of nodes of the same kind, to be drawn beside a prediction."""

from collections.abc import Iterator, Sequence

from busbw.model.platform import Platform, Published, PublishedSweep
from busbw.model.predict.prediction import MeasuredElsewhere
from busbw.predict.machines import MachineClass, generation_of


def measured_elsewhere(
    machine: MachineClass, collective: str, platforms: Sequence[Platform]
) -> tuple[MeasuredElsewhere, ...]:
    """Return sizes that were measured with such GPUs, as many a node, and between nodes over such a network.

    Limits of health checks, averages over sizes, SHARP, and networks in place of the platform's own are left out.
    """
    if machine.generation is None:
        return ()
    return tuple(
        point
        for platform in platforms
        if generation_of(platform) == machine.generation
        for sweep in _published(platform)
        if sweep.test == collective and _is_alike(sweep, platform, machine)
        for point in _points(sweep, platform)
    )


def _published(platform: Platform) -> Iterator[PublishedSweep | Published]:
    yield from platform.sweeps
    yield from platform.published


def _is_alike(sweep: PublishedSweep | Published, platform: Platform, machine: MachineClass) -> bool:
    is_plain = sweep.network in (None, "fabric") and not sweep.sharp
    if not is_plain or sweep.nodes is None or sweep.gpus != sweep.nodes * machine.rates.gpus:
        return False
    return sweep.nodes == 1 or platform.fabric.kind == machine.fabric


def _points(sweep: PublishedSweep | Published, platform: Platform) -> Iterator[MeasuredElsewhere]:
    document = ""
    cells: tuple[tuple[int, float], ...] = ()
    if isinstance(sweep, PublishedSweep):
        document, cells = sweep.document, sweep.points
    elif sweep.kind == "measured" and sweep.size_bytes and (sweep.metric, sweep.unit) == ("busbw", "GB/s"):
        document, cells = sweep.source[0] if sweep.source else "", ((sweep.size_bytes, sweep.value),)
    for size_bytes, busbw_GBps in cells:
        yield MeasuredElsewhere(
            name=platform.id,
            document=document,
            nodes=sweep.nodes or 1,
            size_bytes=size_bytes,
            busbw_Bps=busbw_GBps * 1e9,
        )
