"""A run in a list of runs."""

from busbw.model.value import Value


class Row(Value, kw_only=True, frozen=True):
    """One run in a list."""

    run_id: str
    path: str
    created: str | None
    host: str | None
    ranks: int | None
    collectives: tuple[str, ...]
    measured: int
    planned: int
    tag: str | None
    # The verdict's outcome, or "unreadable".
    outcome: str
    sentence: str
