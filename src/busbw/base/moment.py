"""Points in time: as seconds since 1970, as text, and as people write them."""

import datetime as dt
import re

from busbw.base.errors import InputError

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


_AGO = re.compile(r"(\d{1,5})([hdw])", re.ASCII)
_UNITS = {"h": dt.timedelta(hours=1), "d": dt.timedelta(days=1), "w": dt.timedelta(weeks=1)}


def parse_moment(text: str, *, where: str, now: dt.datetime | None = None) -> float:
    """Return the seconds since 1970 that `text` means: `36h`, `7d`, `2w` ago, or an ISO 8601 date with or without time.

    Without a time zone it is UTC, as the names of runs are. Raises InputError for anything else.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            moment = (now if now is not None else dt.datetime.now(dt.UTC)) - int(ago[1]) * _UNITS[ago[2]]
        else:
            moment = dt.datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{text[:60]!r} is not a date", where=where, hint="2026-11-22, 2026-11-22T07:00, 36h, 7d or 2w (ago)"
        ) from error
