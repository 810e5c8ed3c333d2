"""Launches and sides made for tests."""

from busbw.judge.comparing.launch import Launch, PointKey, TimedPoint
from busbw.model.comparison import Side


def key(size_bytes=1024, collective="all_reduce", **fields):
    return PointKey(
        **{"dtype": "float32", "op": "sum", "root": 0, "in_place": False, **fields},
        collective=collective,
        size_bytes=size_bytes,
    )


def point(time_s, wrong=False, choices=(), **fields):
    own = key(**fields)
    rate_Bps = own.size_bytes / time_s if time_s else 0.0
    return TimedPoint(key=own, time_s=time_s, busbw_Bps=rate_Bps, ranks=2, wrong=wrong, choices=choices)


def launch(side, block, *points, **fields):
    return Launch(side=side, block=block, name=f"launch-{block}-{side}", points=points, **fields)


def sides(*names, kind="settings"):
    return tuple(
        Side(letter=chr(ord("A") + number), name=name, kind=kind, launches=()) for number, name in enumerate(names)
    )


def steady(times_s, blocks=18, jitter=0.001):
    """Return launches of sides with these times at 1 KiB, which differ a little from block to block."""
    return [
        launch(side, block, point(time_s * (1 + jitter * ((block * 7 + side * 3) % 5 - 2))))
        for block in range(blocks)
        for side, time_s in enumerate(times_s)
    ]
