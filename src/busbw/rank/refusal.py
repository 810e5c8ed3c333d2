"""Telling the launching side why nothing is measured."""

import sys

from busbw.model import codec
from busbw.model.event import EVENT_PREFIX, Refused


def refuse(why: str) -> None:
    """Say why these ranks do not measure together: an event for the launching side, a line for readers of its log."""
    sys.stdout.write(EVENT_PREFIX + codec.encode(Refused(why=why)).decode() + "\n")
    sys.stdout.flush()
    sys.stderr.write(f"busbw does not measure: {why}\n")
    sys.stderr.flush()
