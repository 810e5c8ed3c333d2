"""What a run is called."""

import datetime as dt

from busbw.measure.plan.request import Request


def run_id(request: Request, created: dt.datetime, token: str, ranks: int) -> str:
    """Return the name of a run: when, what, over how many ranks, and a token for runs of the same second."""
    return f"{created:%Y%m%dT%H%M%S}-{run_words(request)}-x{ranks}-{token}"


def run_words(request: Request) -> str:
    """Return what a request measures, for the name of a folder."""
    return request.suite or "+".join(request.collectives[:3]) or "six"
