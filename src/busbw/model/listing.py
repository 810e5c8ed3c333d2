"""A run in a list of runs."""

from busbw.model.value import Integer, Value


class Row(Value, kw_only=True, frozen=True):
    """One run in a list."""

    run_id: str
    path: str
    created: str | None
    host: str | None
    ranks: Integer | None
    collectives: tuple[str, ...]
    measured: Integer
    planned: Integer
    tag: str | None
    # The verdict's outcome, or "unreadable".
    outcome: str
    sentence: str
