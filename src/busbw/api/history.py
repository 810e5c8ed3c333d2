"""The history of a folder of runs: what is new or has changed is read, the rest is known from before."""

from collections.abc import Callable, Iterator
from pathlib import Path

from busbw.model.history import HistoryRun
from busbw.store.history import History
from busbw.store.scan import Stored

# From here on reading takes long enough that somebody who waits wants to know why.
_MANY = 500


def opened(base: Path, say: Callable[[str], None]) -> History:
    """Return the history of a folder of runs, up to date; it is to be closed. `say` takes a line for who waits.

    Raises RunError where what was read cannot be kept.
    """
    history = History(base)
    try:
        stale = history.stale()
        if len(stale) >= _MANY:
            say(f"reading {len(stale)} runs in {base} that are new or have changed")
        history.renew(_read(base, stale))
    except BaseException:
        history.close()
        raise
    return history


def _read(base: Path, stale: tuple[Stored, ...]) -> Iterator[tuple[str, HistoryRun]]:
    if not stale:
        return
    # What reads runs, imports and comparisons takes a tenth of a second to import, and mostly nothing is stale.
    from busbw.api.listing import remnant_of, run_of  # noqa: PLC0415

    for stored in stale:
        yield stored.name, remnant_of(base / stored.name) if stored.kind == "remnant" else run_of(base / stored.name)
