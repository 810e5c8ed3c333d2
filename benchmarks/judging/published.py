"""The verdict held against every published table there is: sound ones, the same with a loss, and each left out in turn.

    .venv/bin/python benchmarks/judging/published.py [--leave-out] [--list]

Tables are the sweeps and figures of the platform catalogue that somebody measured. Each is judged on its own platform,
whole and size by size, as published and scaled to 0.875 (one NIC of eight lost) and to 0.75. With `--leave-out` nothing
of the same document is known while a table is judged. Prints what was published over what is expected, by size.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from statistics import median

from msgspec import structs

from busbw.base.collectives import COLLECTIVES
from busbw.base.units import format_size
from busbw.facts.platforms import all_platforms, facts_of_gpus
from busbw.judge.explaining.explain import explain
from busbw.judge.explaining.known_machine import KnownMachine
from busbw.judge.explaining.references import Reference, of_figure, of_sweep
from busbw.judge.explaining.series import Series, SizeSample, rates_of
from busbw.model.platform import Platform

BANDS = ((0, 64 << 10), (64 << 10, 8 << 20), (8 << 20, 256 << 20), (256 << 20, 1 << 30), (1 << 30, 1 << 60))
SCALES = (1.0, 0.875, 0.75)
PLATFORMS = all_platforms()


@dataclass(frozen=True)
class Table:
    """One published table, or figure, and the platform it is of."""

    platform: Platform
    reference: Reference

    @property
    def name(self):
        one = self.reference
        how = one.algorithm or ("" if one.nvls is None else f"nvls {'on' if one.nvls else 'off'}")
        return f"{self.platform.id} {one.collective} {one.nodes}x{one.gpus // one.nodes} {how} [{one.document}]"


def tables():
    """Return every table once, on the first platform that has it."""
    found = {}
    for platform in PLATFORMS:
        figures = (figure for figure in platform.published if _is_table(figure))
        for one in (*map(of_sweep, platform.sweeps), *(of_figure(figure, None) for figure in figures)):
            key = (one.collective, one.nodes, one.gpus, one.points, one.document, one.nvls)
            found.setdefault(key, Table(platform=platform, reference=one))
    return [table for table in found.values() if table.reference.network != "fallback"]


def _is_table(figure):
    is_busbw = (figure.kind, figure.metric, figure.unit) == ("measured", "busbw", "GB/s")
    return is_busbw and figure.size_bytes is not None and figure.nodes and figure.gpus


def series_of(reference, scale):
    samples = []
    for size_bytes, rate_Bps in reference.points:
        if rate_Bps <= 0:
            continue
        time_s = COLLECTIVES[reference.collective].factor(reference.gpus) * size_bytes / (scale * rate_Bps)
        busbw_Bps, algbw_Bps = rates_of(reference.collective, reference.gpus, size_bytes, time_s)
        samples.append(SizeSample(size_bytes=size_bytes, time_s=time_s, busbw_Bps=busbw_Bps, algbw_Bps=algbw_Bps))
    return Series(
        title="t",
        collective=reference.collective,
        dtype="float32",
        op="sum",
        in_place=False,
        ranks=reference.gpus,
        nodes=reference.nodes,
        gpus_per_node=reference.gpus // reference.nodes,
        gpu_name=None,
        library="nccl",
        statistic="s",
        nvls=reference.nvls,
        sharp=reference.sharp,
        algorithms=(reference.algorithm,) if reference.algorithm is not None else (),
        network="loopback" if reference.network == "loopback" else None,
        nccl=reference.nccl,
        samples=tuple(samples),
    )


def grounds_for(table, leave_out):
    """Return what is known while a table is judged."""
    platforms = PLATFORMS if not leave_out else tuple(_without(each, table.reference.document) for each in PLATFORMS)
    own = next(each for each in platforms if each.id == table.platform.id)
    return KnownMachine(platform=own, platform_name=own.id, gpus=facts_of_gpus(platforms))


def _without(platform, document):
    return structs.replace(
        platform,
        sweeps=tuple(each for each in platform.sweeps if each.document != document),
        published=tuple(each for each in platform.published if document not in each.source),
    )


@dataclass
class Tally:
    """What the verdicts on all tables came to."""

    whole: dict[float, Counter]
    alone: dict[float, Counter]
    # Published over expected, by band of sizes and kind of table.
    ratios: dict[tuple[int, str], list[float]]
    cells: int = 0
    expected: int = 0
    # Tables that are ok after a loss, without a word on what would not be seen.
    silent: int = 0


def tallied(every, *, leave_out, say):
    found = Tally(whole={scale: Counter() for scale in SCALES}, alone={scale: Counter() for scale in SCALES}, ratios={})
    for table in every:
        known_machine = grounds_for(table, leave_out)
        for scale in SCALES:
            explained = explain("s", (series_of(table.reference, scale),), known_machine)
            say(f"{scale:5} {table.name}: {explained.verdict.sentence}\n")
            found.whole[scale][explained.verdict.outcome] += 1
            found.silent += scale < 1 and explained.verdict.outcome == "ok" and not _is_said(explained)
            for size in explained.series[0].sizes:
                found.alone[scale][size.verdict.outcome] += 1
                if scale == 1.0:
                    _count(found, table, size)
    return found


def _is_said(explained):
    sentence = explained.verdict.sentence
    return "would not be seen" in sentence or "no loss would be called" in sentence


def _count(found, table, size):
    found.cells += 1
    expected_Bps = size.band_high_Bps
    if size.band_time_s is not None:
        expected_Bps = size.busbw_Bps * size.time_s / size.band_time_s
    if expected_Bps is None:
        return
    found.expected += 1
    band = next(place for place, (low, high) in enumerate(BANDS) if low <= size.size_bytes < high)
    for kind in ("one node" if table.reference.nodes == 1 else "several nodes", "all"):
        found.ratios.setdefault((band, kind), []).append(size.busbw_Bps / expected_Bps)


def lines_of(found, tables):
    yield f"{tables} tables, {found.cells} cells; an expectation for {found.expected / found.cells:.0%}"
    for scale in SCALES:
        yield f"x {scale}: tables {dict(found.whole[scale])}, cells {dict(found.alone[scale])}"
    yield f"ok after a loss without a word on what would not be seen: {found.silent}"
    yield "published over expected, median (5 % to 95 %), cells:"
    for (band, kind), values in sorted(found.ratios.items()):
        low, high = BANDS[band]
        name = f"{format_size(low)} to {format_size(high)}" if high < 1 << 60 else f"from {format_size(low)}"
        ordered = sorted(values)
        ends = ordered[int(0.05 * len(ordered))], ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
        yield f"  {name:22} {kind:14} {median(values):5.2f} ({ends[0]:.2f} to {ends[1]:.2f}) {len(values):4}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--leave-out", action="store_true", help="know nothing of the document that is judged")
    parser.add_argument("--list", action="store_true", help="print the verdict on every table")
    asked = parser.parse_args()
    every = tables()
    found = tallied(every, leave_out=asked.leave_out, say=sys.stdout.write if asked.list else lambda _line: None)
    for line in lines_of(found, len(every)):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
