"""The numbers of a point that a trend can follow."""

from busbw.base.errors import InputError
from busbw.model.trend import Metric

_TIMES = (
    ("time", "time_s", "median time of one exchange"),
    ("min", "min_s", "shortest sample"),
    ("max", "max_s", "longest sample"),
    ("mean", "mean_s", "mean of the samples"),
    ("p50", "p50_s", "50th percentile of the samples"),
    ("p95", "p95_s", "95th percentile of the samples"),
    ("p99", "p99_s", "99th percentile of the samples"),
)
_RATES = (
    ("busbw", "busbw_Bps", "bus bandwidth"),
    ("algbw", "algbw_Bps", "algorithm bandwidth"),
    ("bandwidth", "bandwidth_Bps", "bandwidth as an imported tool counts it"),
)
METRICS = {
    metric.name: metric
    for metric in (
        *(Metric(name=n, field=f, unit="B/s", more_is_better=True, meaning=m) for n, f, m in _RATES),
        *(Metric(name=n, field=f, unit="s", more_is_better=False, meaning=m) for n, f, m in _TIMES),
        Metric(
            name="messages",
            field="messages_per_s",
            unit="messages/s",
            more_is_better=True,
            meaning="messages a second, all pairs together",
        ),
    )
}


def metric_called(name: str) -> Metric:
    """Return the metric of that name. Raises InputError when there is none."""
    if name not in METRICS:
        raise InputError(f"{name[:40]!r} is no metric", hint="one of: " + ", ".join(METRICS))
    return METRICS[name]
