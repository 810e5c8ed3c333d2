"""Questions to a folder of runs, as the verbs ask them."""

from pathlib import Path

from busbw.api.history import opened
from busbw.model.history import ListRow, Selection
from busbw.store.selecting import rows


def listed(base: Path, *, order: str = "time", limit: int | None = None, **selected: object) -> tuple[ListRow, ...]:
    """Return the rows of the selected runs."""
    with opened(base, print) as history:
        return rows(history, Selection(**selected), order=order, limit=limit)  # type: ignore[arg-type]


def names(base: Path, **selected: object) -> list[str]:
    """Return the last four characters of the selected runs' names: their numbers."""
    return [row.run_id[-4:] for row in listed(base, **selected)]


def read_again(base: Path) -> list[str]:
    """Return the names of the runs that a question would have to read."""
    from busbw.store.history import History

    with History(base) as history:
        return [stored.name for stored in history.stale()]
