"""A run or an import in a list of them."""

from typing import Literal

from busbw.model.value import Integer, Value


class Row(Value, kw_only=True, frozen=True):
    """One run or import in a list. Of an import the points are readings, and nothing is planned."""

    kind: Literal["run", "import"] = "run"
    run_id: str
    path: str
    created: str | None
    host: str | None
    ranks: Integer | None
    # What was measured; of an import the tools that it is from.
    collectives: tuple[str, ...]
    measured: Integer
    planned: Integer
    tag: str | None
    # The verdict's outcome, "imported" for an import, or "unreadable".
    outcome: str
    sentence: str
