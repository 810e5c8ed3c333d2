"""Observations with what a test changes as arguments."""

from typing import Any

from busbw.model.scaling import Observation, ScalingEstimate

GiB = 2**30


def measured(nodes: int | None, busbw: float, **changes: Any) -> Observation:
    """Return an all_reduce of 1 GiB on nodes of eight ranks, with bus bandwidth in GB/s."""
    conditions = {"collective": "all_reduce", "type": "float32"} | changes.pop("conditions", {})
    settings = changes.pop("settings", {})
    values: dict[str, Any] = {
        "source": f"run-{nodes}",
        "nodes": nodes,
        "ranks": 8 * nodes if nodes is not None else None,
        "size_bytes": GiB,
        "busbw_Bps": ScalingEstimate(value=busbw * 1e9),
    }
    return Observation(**(values | changes), conditions=tuple(conditions.items()), settings=tuple(settings.items()))


def timed(nodes: int, time_s: float, **changes: Any) -> Observation:
    """Return the time of an application."""
    settings = changes.pop("settings", {})
    return Observation(
        source=f"times.csv:{nodes}",
        nodes=nodes,
        time_s=ScalingEstimate(value=time_s),
        settings=tuple(settings.items()),
        **changes,
    )
