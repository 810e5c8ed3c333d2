"""Results that somebody published lie below the bound of their algorithm."""

from math import ceil, floor, inf

import pytest

from busbw.api.machine import limit_of_platform
from busbw.base.collectives import COLLECTIVES
from busbw.limits.ceiling import ceiling
from busbw.limits.rates import rates_of_platform
from busbw.machine.named import platforms
from busbw.model.limit import Limit
from busbw.model.platform import PublishedSweep


def ceiling_of(limit: Limit, algorithm: str | None = None) -> float:
    found = [bound.busbw_Bps for bound in limit.bounds if algorithm in (None, bound.algorithm) and bound.busbw_Bps]
    return max(found) / 1e9


def ranks_of_ratio(
    collective: str, *, busbw_Bps: float, algbw_Bps: float, half_digit_Bps: float = 5e6
) -> tuple[int, int | None] | None:
    # The fewest and the most ranks that two printed rates of one row fit.
    per_rank = COLLECTIVES[collective].factor
    if per_rank(2) == per_rank(3) or algbw_Bps <= half_digit_Bps:
        return None
    # The factor is c (n-1)/n, and c its limit for many ranks: n = c / (c - ratio).
    limit = 2 * per_rank(2)
    low = max(0.0, (busbw_Bps - half_digit_Bps) / (algbw_Bps + half_digit_Bps))
    high = (busbw_Bps + half_digit_Bps) / (algbw_Bps - half_digit_Bps)
    if low >= limit:
        return None
    fewest = max(2, ceil(limit / (limit - low) - 1e-9))
    most = inf if high >= limit else floor(limit / (limit - high) + 1e-9)
    if most < fewest:
        return None
    return fewest, None if most == inf else int(most)


# Platform, nodes, collective, algorithm, printed busbw and algbw, and whether it exceeds the sum of the NICs.
PRINTED = [
    ("isambard-ai-phase2", 2, "all_reduce", "tree", 162.69, 92.96, True),
    ("aws-p4de", 2, "all_reduce", "tree", 78.33, 41.78, True),
    ("aws-p5", 2, "all_reduce", "nvlstree", 487.09, 259.78, True),
    ("oci-bm-gpu-h100-8", 2, "all_reduce", "nvlstree", 471.22, 251.32, True),
    ("gcp-a3-mega", 2, "all_reduce", "tree", 338.82, 180.71, True),
    ("oci-bm-gpu-b4-8", 2, "all_reduce", "ring", 189.60, 101.12, False),
    ("alps-gh200", 2, "all_reduce", "tree", 122.57, 70.04, True),
    ("azure-nd-h100-v5", 4, "all_reduce", "tree", 361.06, 186.4, False),
    ("coreweave-h100", 12, "all_reduce", "tree", 386.56, 195.31, False),
    ("gcp-a3-mega", 2, "all_gather", "ring", 188.73, 201.32, False),
    ("gcp-a3-ultra", 2, "all_gather", "ring", 328.85, 350.77, False),
]


@pytest.mark.parametrize(("name", "nodes", "collective", "algorithm", "busbw", "algbw", "above"), PRINTED)
def test_printed_results_fit_the_algorithm_that_explains_them(
    name: str, nodes: int, collective: str, algorithm: str, busbw: float, algbw: float, above: bool
) -> None:
    limit = limit_of_platform(name, nodes=nodes, collective=collective, algorithm=algorithm)
    assert busbw <= ceiling_of(limit)
    assert algbw * 1e9 <= (limit.bounds[0].algbw_Bps or 0)
    (nics,) = (part.rate_Bps or 0 for part in limit.parts if part.name == "nic")
    assert (busbw * 1e9 > nics) is above
    least, most = ranks_of_ratio(collective, busbw_Bps=busbw * 1e9, algbw_Bps=algbw * 1e9, half_digit_Bps=5e7) or (0, 0)
    assert least <= limit.ranks <= (most or limit.ranks)


def published() -> list[tuple[str, str, int, int | None, str, float]]:
    """Return every published bus bandwidth, of a table the highest, with its number of nodes."""
    figures = [
        (
            f"{each.platform.id}-{place}",
            each.platform.id,
            row.nodes,
            row.gpus,
            row.test.removeprefix("rccl "),
            row.value,
        )
        for each in platforms()
        for place, row in enumerate(each.platform.published)
        if "busbw" in row.metric and row.nodes is not None and row.unit == "GB/s"
    ]
    tables = [
        (f"{each.platform.id}-table-{place}", each.platform.id, sweep.nodes, sweep.gpus, sweep.test, highest(sweep))
        for each in platforms()
        for place, sweep in enumerate(each.platform.sweeps)
        # Variants with fewer GPUs are other machines.
        if sweep.gpus // sweep.nodes <= each.platform.gpu.count
    ]
    return figures + tables


def highest(sweep: PublishedSweep) -> float:
    return max(rate for _, rate in sweep.points)


def test_no_published_result_is_above_its_bound() -> None:
    rows = published()
    assert len(rows) > 190
    above, untold = [], []
    for row, name, nodes, gpus, test, value in rows:
        each = gpus // nodes if gpus is not None else None
        limit = limit_of_platform(name, nodes=nodes, gpus=each, collective=test)
        if all(bound.busbw_Bps is None for bound in limit.bounds):
            untold.append(name)
        elif value > ceiling_of(limit):
            above.append((row, value, ceiling_of(limit)))
    assert above == []
    # Two GPUs with an NVLink bridge whose rate nobody publishes.
    assert sorted(set(untold)) == ["azure-nc-a100-v4", "azure-nc-h100-v5"]


@pytest.mark.parametrize(
    ("name", "figures", "expected"),
    [
        ("oci-bm-gpu4-8", "16 x 100 Gb/s", 200),
        ("azure-nd-h100-v5", "8 x 400 Gb/s", 400),
        ("isambard-ai-phase2", "4 x 200 Gb/s", 100),
        ("aws-p5", "32 x 100 Gb/s", 400),
        ("gb200-nvl72", "72 x 400 Gb/s", 3600),
    ],
)
def test_the_nics_of_a_node_add_up(name: str, figures: str, expected: float) -> None:
    nodes = 36 if name == "gb200-nvl72" else 2
    (nics,) = (part for part in limit_of_platform(name, nodes=nodes).parts if part.name == "nic")
    assert (nics.figures, nics.rate_Bps) == (figures, expected * 1e9)


def test_nvlink_of_h100_carries_450_and_of_a_gh200_pair_150() -> None:
    (links,) = (part for part in limit_of_platform("azure-nd-h100-v5").parts if part.name == "nvlink")
    (pair,) = (part for part in limit_of_platform("isambard-ai-phase2").parts if part.name == "pair")
    assert (links.rate_Bps, pair.rate_Bps) == (450e9, 150e9)


def test_every_platform_has_a_limit_or_says_what_is_missing() -> None:
    for each in platforms():
        for nodes in (1, 2, 64):
            gpus = 8 if each.platform.kind == "gpu" and not each.platform.gpu.count else None
            limit = ceiling(rates_of_platform(each.platform, gpus=gpus), nodes=nodes)
            for bound in limit.bounds:
                assert (bound.busbw_Bps is None) is bool(bound.missing), (each.platform.id, nodes, bound.algorithm)


@pytest.mark.parametrize(
    ("collective", "busbw", "algbw", "ranks"),
    [
        # A table that is headed "64 GPUs", and one that ends with "rank 143".
        ("all_reduce", 386.56, 195.31, (96, 96)),
        ("all_reduce", 810.41, 408.40, (128, 128)),
        ("all_gather", 188.73, 201.32, (16, 16)),
        # A sample of 72 GPUs that no number of ranks prints: 2(n-1)/n is 1 or more.
        ("all_reduce", 936.93, 939.58, None),
        ("broadcast", 10.0, 10.0, None),
        ("all_reduce", 0.0, 0.0, None),
        ("all_reduce", 30.0, 10.0, None),
        ("all_reduce", 2.0, 1.0, (134, None)),
    ],
)
def test_the_two_rates_of_a_row_give_its_ranks_away(
    collective: str, busbw: float, algbw: float, ranks: tuple[int, int | None] | None
) -> None:
    assert ranks_of_ratio(collective, busbw_Bps=busbw * 1e9, algbw_Bps=algbw * 1e9) == ranks
