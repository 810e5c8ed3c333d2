"""A run, an import, a comparison or a bisection in a list of them."""

from typing import Literal

from busbw.base.value import Integer, Value


class Row(Value, kw_only=True, frozen=True):
    """One run, import, comparison or bisection in a list.

    Of an import the points are readings, and nothing is planned; of a comparison they are those that both of two sides
    have; of a bisection those of the comparison of its ends.
    """

    kind: Literal["run", "import", "comparison", "bisection"] = "run"
    run_id: str
    path: str
    created: str | None
    # The host that it was planned on; all hosts that took part.
    host: str | None
    hosts: tuple[str, ...] = ()
    ranks: Integer | None
    # The platform of the planning host where it was recognised, else its GPUs (`8x NVIDIA H200`) or its processor.
    platform: str | None = None
    backend: str | None = None
    # Versions of NCCL in use; more than one when ranks loaded different ones.
    nccl: tuple[str, ...] = ()
    busbw_version: str | None = None
    # What was measured; of an import the tools that it is from.
    collectives: tuple[str, ...]
    measured: Integer
    planned: Integer
    # The tag it was made with, and all: that one first, then those it was given later.
    tag: str | None
    tags: tuple[str, ...] = ()
    # How the execution ended (model.run.Outcome); "unfinished": under way, or cut off before that could be written.
    ended: str | None = None
    # The verdict's outcome, as in model.run, model.comparison or model.bisection, "imported" for an import, or
    # "unreadable".
    outcome: str
    sentence: str
