"""The verb `topo masks`."""

import sys

from busbw.base.errors import ExitCode
from busbw.measure.plan.masks import rank_masks
from busbw.model import codec
from busbw.model.topology import RankMasks


def show_masks(
    source: str | None, *, here: bool, binding: str | None, ranks: int | None, ignore_affinity: bool, as_json: bool
) -> None:
    """Print the CPUs of each local rank and the forms of them, or what a binding gives; exit as `exit_code` says."""
    masks = rank_masks(source, here=here, binding=binding, ranks=ranks, ignores_affinity=ignore_affinity)
    if as_json:
        sys.stdout.write(codec.encode_pretty(masks).decode())
    else:
        from busbw.show.text.topology import masks_text

        masks_text(masks)
    sys.exit(exit_code(masks))


def exit_code(masks: RankMasks) -> ExitCode:
    """Return 1 where a launcher would put a rank on the wrong NUMA node, 4 where nothing can be told, else 0."""
    if masks.binding is None:
        return ExitCode.OK if masks.forms else ExitCode.CANNOT_TELL
    fits = [rank.fit for reading in masks.readings for rank in reading.ranks]
    if "wrong" in fits:
        return ExitCode.FINDINGS
    return ExitCode.CANNOT_TELL if not fits or "unknown" in fits else ExitCode.OK
