"""Points in time as text, and as seconds since 1970."""

import datetime as dt

# How the names of runs and imports begin.
_NAME_FORMAT = "%Y%m%dT%H%M%S"
_NAME_LENGTH = 15


def unix_s(text: str | None) -> float | None:
    """Return the seconds since 1970 that an ISO 8601 text with a time zone names; None for any other text."""
    if text is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
        return moment.timestamp() if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def unix_s_of_name(name: str) -> float | None:
    """Return the seconds since 1970 that the name of a run begins with, in UTC; None where it does not."""
    try:
        return dt.datetime.strptime(name[:_NAME_LENGTH], _NAME_FORMAT).replace(tzinfo=dt.UTC).timestamp()
    except ValueError:
        return None


def day_and_time(moment_s: float) -> str:
    """Return seconds since 1970 as `2026-11-22 07:41`, in UTC."""
    return dt.datetime.fromtimestamp(moment_s, dt.UTC).strftime("%Y-%m-%d %H:%M")
