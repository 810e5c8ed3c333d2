"""A series to judge, made of sizes and what was reached at each."""

from busbw.base.collectives import COLLECTIVES
from busbw.judge.explaining.series import Series, SizeSample, rates_of


def make_series(points, *, collective="all_reduce", ranks=8, nodes=1, library="nccl", **said):
    """Return a series of (size in bytes, bus bandwidth in bytes per second)."""
    samples = []
    for size_bytes, rate_Bps in points:
        time_s = COLLECTIVES[collective].factor(ranks) * size_bytes / rate_Bps
        busbw_Bps, algbw_Bps = rates_of(collective, ranks, size_bytes, time_s)
        samples.append(SizeSample(size_bytes=size_bytes, time_s=time_s, busbw_Bps=busbw_Bps, algbw_Bps=algbw_Bps))
    return Series(
        title="t",
        collective=collective,
        dtype="float32",
        op="sum",
        in_place=False,
        ranks=ranks,
        nodes=nodes,
        gpus_per_node=ranks // nodes,
        gpu_name=None,
        library=library,
        statistic="s",
        samples=tuple(samples),
        **said,
    )
