"""Fit the constants of `busbw predict` to the training cells, and print what is left of documents that were left out.

    python scripts/calibrate.py [--write]

Prints constants, then a row for each document that was left out. With --write the constants go to
src/busbw/data/predictor.toml; a test holds that file to this program.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

from busbw.base.units import format_size
from busbw.facts.platforms import all_platforms
from busbw.model.platform import Platform
from busbw.model.predict.prediction import Band, Exchange, HeldOut, PredictedCall, PredictorConstants, Scope
from busbw.predict.cells import read_cells
from busbw.predict.closed import CARRIED, exchange_of, scope_of
from busbw.predict.fitting import (
    CALIBRATING_BYTES,
    NEIGHBOURS,
    Residual,
    calibrated_by,
    carried_residuals,
    fitted_constants,
    left_out_residuals,
    with_intervals,
)
from busbw.predict.intervals import band_of, reach_of, stretch_of
from busbw.predict.machines import MachineClass, machine_of
from busbw.predict.sweeps import CellGroup
from busbw.stats.distributions import median

ROOT = Path(__file__).parents[1]
CELLS = ROOT / "docs" / "data" / "training-cells.csv"
CONSTANTS = ROOT / "src" / "busbw" / "data" / "predictor.toml"
# Not fitted: several racks (two of them do not even agree with their heading), times of PyTorch below 1 MiB, which are
# those of its launch, and the fall at 1,024 GPUs, which is of a fabric that nobody describes. Rows of the table without
# a platform are of none that is known, or of a fall-back to TCP.
RACKS = "T01"
TORCH = "T11"
AZURE = "W1"


@cache
def platforms() -> dict[str, Platform]:
    """Return the shipped platforms by id."""
    return {each.id: each for each in all_platforms(())}


def machine(platform: str, gpus: int) -> MachineClass:
    """Return a platform's node with so many of its GPUs."""
    return machine_of(platforms()[platform], gpus=gpus)


def training_groups() -> tuple[CellGroup, ...]:
    """Return the sweeps that constants are fitted to, and those that are predicted only."""
    return tuple(_kept(group) for group in read_cells(CELLS.read_bytes(), CELLS.name, machine).groups)


def _kept(group: CellGroup) -> CellGroup:
    is_fitted = group.is_fitted
    cells = group.cells
    if group.document == TORCH:
        cells = tuple(cell for cell in cells if cell[0] >= 2**20)
    if group.document == RACKS and group.nodes > 18:
        is_fitted = False
    if group.document == AZURE and group.nodes == 128:
        is_fitted = False
    return CellGroup(
        document=group.document,
        machine=group.machine,
        nodes=group.nodes,
        collective=group.collective,
        stated=group.stated,
        algorithm=group.algorithm if is_fitted else None,
        cells=cells,
        is_fitted=is_fitted,
    )


def calibrated() -> tuple[PredictorConstants, tuple[Residual, ...], tuple[Residual, ...]]:
    """Return the constants with intervals, and what is left of cells: without their document, and their collective."""
    groups = training_groups()
    residuals = left_out_residuals(groups)
    carried = carried_residuals(groups)
    return with_intervals(fitted_constants(groups), residuals, carried), residuals, carried


def written(constants: PredictorConstants) -> str:
    """Return the constants as the file holds them."""
    lines = [
        "# What `scripts/calibrate.py` fits to docs/data/training-cells.csv: written by it, and held to it by a test.",
        "# Every number is fitted. A row holds where all that it names holds; what it does not name may be anything.",
        "",
        "[most_nodes]",
        *(f"{name} = {nodes}" for name, nodes in constants.most_nodes.items()),
    ]
    if constants.chunk is not None:
        chunk = constants.chunk
        lines += ["", "[chunk]", f"chunks = {_toml(chunk.chunks)}", f"documents = {_toml(chunk.documents)}"]
    for table, rows in (
        ("share", constants.share),
        ("curve", constants.curve),
        ("hop", constants.hop),
        ("own", constants.own),
        ("send", constants.send),
        ("measured", constants.measured),
        ("left_out", constants.left_out),
    ):
        for row in rows:
            lines += ["", f"[[{table}]]"]
            for name in row.__struct_fields__:
                value = getattr(row, name)
                if value is not None:
                    lines.append(f"{name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else repr(value)


def table(residuals: Sequence[Residual], constants: PredictorConstants, exchange: Exchange = "collective") -> str:
    """Return a row a document and band, as Markdown: cells, told, median e, worst e, inside, half-width.

    Of sends a row a document, collective and band.
    """
    by: dict[tuple[Band, str], list[Residual]] = defaultdict(list)
    for residual in of_exchange(residuals, exchange):
        group = residual.group
        name = f"{group.document}, {group.collective}" if exchange == "sends" else group.document
        by[band_of(residual.size_bytes), name].append(residual)
    lines = [
        "| band | document | kinship | cells | told | median e | worst e | inside | half-width |",
        "|" + "---|" * 9,
    ]
    bands: tuple[Band, ...] = ("large", "middle", "small")
    for band in bands:
        for (_, document), rows in sorted(item for item in by.items() if item[0][0] == band):
            told = [row for row in rows if row.call is not None]
            if not told:
                lines.append(f"| {band} | {document} | | {len(rows)} | 0 | | | | |")
                continue
            errors = sorted(abs(row.log_ratio) for row in told if row.log_ratio is not None)
            left = rows[0].group.document
            block = next((block for block in NEIGHBOURS if left in block), (left,))
            others = [each for each in constants.left_out if each.document not in block]
            ends = [_ends(row, row.call, others, band) for row in told if row.call is not None]
            inside = sum(-up <= (row.log_ratio or 0.0) <= down for row, (down, up) in zip(told, ends, strict=True))
            half = median(sorted((down + up) / 2 for down, up in ends))
            kinship = told[0].call.kinship if told[0].call is not None else ""
            cells = f"{len(rows)} | {len(told)} | {100 * median(errors):.1f} % | {100 * errors[-1]:.1f} %"
            lines.append(
                f"| {band} | {document} | {kinship} | {cells} | {inside} | {100 * (math.exp(half) - 1):.0f} % |"
            )
    return "\n".join(lines)


def _ends(row: Residual, call: PredictedCall, others: Sequence[HeldOut], band: Band) -> tuple[float, float]:
    """Return how far the interval reaches down and up on the logarithm, as `busbw predict` would print it."""
    scope, exchange = scope_of(row.group.machine, row.group.nodes), exchange_of(row.group.collective)
    reach = reach_of(others, band, call.kinship, scope, exchange)[0]
    reach *= call.widened * stretch_of(call.loose)
    # The call itself has the slower mode of rings, and the bound that cuts the interval.
    down = max(reach, math.log(call.busbw_Bps / call.low_Bps))
    return down, min(down, math.log(call.bound_Bps / call.busbw_Bps))


def calibrated_table(residuals: Sequence[Residual], constants: PredictorConstants) -> str:
    """Return what is left once a cell of a sweep's band is known, as Markdown: a row a band and scope."""
    lines = ["| band | scope | documents | median e | half-width |", "|" + "---|" * 5]
    bands: tuple[Band, ...] = ("large", "middle", "small")
    scopes: tuple[Scope, ...] = ("one node", "several nodes")
    for band, scope in product(bands, scopes):
        wanted = (band, "calibrated", scope, "collective")
        rows = [row for row in constants.left_out if (row.band, row.kinship, row.scope, row.exchange) == wanted]
        if not rows:
            continue
        reach = reach_of(constants.left_out, band, "calibrated", scope)[0]
        by: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for residual, left in calibrated_by(of_exchange(residuals, "collective"), CALIBRATING_BYTES[band], band):
            if residual.call is not None and scope_of(residual.group.machine, residual.group.nodes) == scope:
                by[residual.group.document].append((left, stretch_of(residual.call.loose)))
        middle, stretch = (
            median(sorted(median(sorted(cell[place] for cell in cells)) for cells in by.values())) for place in (0, 1)
        )
        reach *= stretch
        half_width = f"{100 * (math.exp(reach) - 1):.0f} %"
        lines.append(f"| {band} | {scope} | {len(rows)} | {100 * middle:.1f} % | {half_width} |")
    return "\n".join(lines)


def sizes_table(residuals: Sequence[Residual]) -> str:
    """Return what is left from 1 MiB to 1 GiB by which size of a sweep is known, as Markdown: a row a size."""
    lines = ["| known | documents | median e | worst document |", "|" + "---|" * 4]
    for size_bytes in (2**20, 2**24, 2**26, 2**28, 2**30):
        by: dict[str, list[float]] = defaultdict(list)
        for residual, left in calibrated_by(of_exchange(residuals, "collective"), size_bytes, "middle"):
            by[residual.group.document].append(left)
        middles = sorted((median(sorted(values)), document) for document, values in by.items())
        middle = median([value for value, _ in middles])
        worst, document = middles[-1]
        lines.append(
            f"| {format_size(size_bytes)} | {len(by)} | {100 * middle:.1f} % | {document}, {100 * worst:.1f} % |"
        )
    return "\n".join(lines)


def carried_table(carried: Sequence[Residual], constants: PredictorConstants) -> str:
    """Return what is left where every document of a collective was left out too, as Markdown.

    `inside`: in the interval that other documents give what is carried, without the factor for being between nodes.
    """
    by: dict[tuple[Scope, Band, str, str], list[tuple[float, bool]]] = defaultdict(list)
    for residual in carried:
        group, ratio = residual.group, residual.log_ratio
        if residual.call is None or ratio is None:
            continue
        scope, band = scope_of(group.machine, group.nodes), band_of(residual.size_bytes)
        block = next((block for block in NEIGHBOURS if group.document in block), (group.document,))
        others = [each for each in constants.left_out if each.document not in block]
        reach = max(reach_of(others, band, held, scope)[0] for held in CARRIED)
        is_inside = abs(ratio) <= reach * residual.call.widened * stretch_of(residual.call.loose)
        by[scope, band, group.collective, group.document].append((ratio, is_inside))
    lines = ["| scope | band | collective | document | cells | median | lowest to highest | inside |", "|" + "---|" * 8]
    for (scope, band, collective, document), cells in sorted(by.items()):
        ratios = sorted(ratio for ratio, _ in cells)
        ends = f"{100 * math.expm1(ratios[0]):+.0f} to {100 * math.expm1(ratios[-1]):+.0f} %"
        middle = f"{100 * math.expm1(median(ratios)):+.0f} %"
        inside = sum(is_inside for _, is_inside in cells)
        lines.append(f"| {scope} | {band} | {collective} | {document} | {len(cells)} | {middle} | {ends} | {inside} |")
    return "\n".join(lines)


def of_exchange(residuals: Sequence[Residual], exchange: Exchange) -> list[Residual]:
    """Return what is left of sends, or of all other collectives."""
    return [residual for residual in residuals if exchange_of(residual.group.collective) == exchange]


def main() -> None:
    """Print constants and residuals; with --write also write the file."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--write", action="store_true", help=f"write {CONSTANTS.relative_to(ROOT)}")
    asked = options.parse_args()
    constants, residuals, carried = calibrated()
    print(written(constants))
    print(table(residuals, constants))
    print(calibrated_table(residuals, constants))
    print(sizes_table(residuals))
    print(table(residuals, constants, "sends"))
    print(carried_table(carried, constants))
    if asked.write:
        CONSTANTS.write_text(written(constants))


if __name__ == "__main__":
    main()
