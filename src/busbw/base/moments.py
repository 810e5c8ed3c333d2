"""A moment as people write it: a date, a date with a time, or how long ago."""

import datetime as dt
import re

from busbw.base.errors import InputError

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
            f"{text[:60]!r} is no date", where=where, hint="2026-11-22, 2026-11-22T07:00, 36h, 7d or 2w (ago)"
        ) from error
