"""Tables as write-ups print them, and results judged as the command does."""

import re
from pathlib import Path

from busbw.api.verdicts import judge_results, stated_facts
from busbw.base.collectives import COLLECTIVES

SAMPLES = Path(__file__).parent / "samples"
HOST = Path(__file__).parents[2] / "hosts" / "vm-h100-x4" / "host.tar.gz"
GiB = 2**30

_HEAD = """# nccl-tests version 2.13.0
# Collective test starting: {collective}_perf
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def nccl_table(rows, ranks, collective="all_reduce"):
    """Return what nccl-tests prints of (size in bytes, bus bandwidth in GB/s)."""
    text = _HEAD.format(collective=collective)
    factor = COLLECTIVES[collective].factor(ranks)
    for size_bytes, busbw in rows:
        time_us = factor * size_bytes / (busbw * 1e3)
        figures = f"{time_us:10.1f} {size_bytes / time_us / 1e3:7.2f} {busbw:7.2f}      0"
        text += f"{size_bytes:12d} {size_bytes // 4:12d}     float     sum      -1 {figures} {figures}\n"
    return f"{text}# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {rows[-1][1]:g}\n"


def article_table(name):
    """Return the rows of a table of the article: what stands before each bar, the figures of 16 GiB as numbers."""
    cells = [cell.strip() for cell in (SAMPLES / name).read_text().replace("\n", " ").split("|")]
    numbers = [cell for cell in cells if re.fullmatch(r"\d+(\.\d+)?", cell)]
    after = cells[cells.index("16G") + 1 :]
    figures = [float(cell) for cell in after if re.fullmatch(r"\d+\.\d+", cell)]
    return [int(cell) for cell in numbers if "." not in cell], figures


def judged(tmp_path, text, platform=None, **stated):
    """Return the explained verdict on a log of this text."""
    log = tmp_path / "all_reduce.log"
    log.write_text(text)
    return judge_results((str(log),), platform_name=platform, stated=stated_facts(**stated))


def codes(explained):
    return {finding.code for finding in explained.findings}


def largest(explained):
    return explained.series[0].sizes[-1]
