"""A metric of stored runs over time."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from busbw.api.history import opened
from busbw.judge.trend import trend
from busbw.judge.trend_metrics import metric_called
from busbw.model.history import PointSelection, Selection
from busbw.model.trend import GroupedBy, Trend
from busbw.store.selecting import strands


def trend_of(
    base: Path,
    metric: str,
    selection: Selection,
    wanted: PointSelection,
    *,
    by: GroupedBy,
    false_alarms: float,
    least_change: float,
    say: Callable[[str], None],
) -> Trend:
    """Return the trend of a metric over the selected runs under `base`. `say` takes a line for who waits.

    Raises InputError for a metric that there is not, RunError where what was read cannot be kept.
    """
    chosen = metric_called(metric)
    with opened(base, say) as history:
        # The points say what was measured; the runs need not be asked the same.
        found = strands(history, replace(selection, collective=None), wanted, chosen.field)
    return trend(found, chosen, by=by, false_alarms=false_alarms, least_change=least_change)
