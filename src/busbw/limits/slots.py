"""The line rate of PCIe slots: what is left of the transfers when the encoding is taken off, and no more."""

from busbw.model.limit import Rate

# Transfers a second of one lane, and the part of them that is data: 8b/10b, 128b/130b, and for the 256-byte flits of
# generation 6 the 236 bytes that hold packets. PCI Express base specifications 1.1 to 6.0.
_GENERATIONS = {
    1: (2.5, 8, 10),
    2: (5.0, 8, 10),
    3: (8.0, 128, 130),
    4: (16.0, 128, 130),
    5: (32.0, 128, 130),
    6: (64.0, 236, 256),
}


def slot_rate(generation: int, width: int, source: tuple[str, ...] = ()) -> Rate | None:
    """Return the rate of a slot in one direction; None for a generation that there is none of."""
    if generation not in _GENERATIONS or width < 1:
        return None
    rate_GTps, data, sent = _GENERATIONS[generation]
    return Rate(
        rate_Bps=rate_GTps * 1e9 * width * data / sent / 8,
        figures=f"PCIe {generation} x{width}, {rate_GTps:g} GT/s x {width} x {data}/{sent}",
        source=source,
    )
