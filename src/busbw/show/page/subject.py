"""What a report is about: runs, each with what is known besides of where it was made."""

from collections.abc import Mapping
from dataclasses import dataclass

from busbw.model.imported import Imported, Reading
from busbw.model.run import Run
from busbw.model.settings import Settings
from busbw.model.topology import NodeView
from busbw.model.verdict import ExplainedVerdict
from busbw.show.text.imported import Digest, Listing


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A node to draw, and whose it is, in words: the published platform or the captured host."""

    view: NodeView
    whose: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSubject:
    """One run of a report. `label` tells it from the others in tables and legends."""

    run: Run
    label: str
    # Every choice of every layer; None: the run stored none.
    settings: Settings | None = None
    # What could not be looked at and may set something, a line each.
    unseen: tuple[str, ...] = ()
    picture: Picture | None = None
    # Each size with what was expected and what is possible there; None: nobody explained it.
    explained: ExplainedVerdict | None = None


def labels_of(runs: tuple[Run, ...]) -> tuple[str, ...]:
    """Return a name for each run: its tag where no other has it, else its id; a number where ids are alike too."""
    tags = [run.plan.tag or "" for run in runs]
    ids = [run.plan.run_id for run in runs]
    names = [tag if tag and tags.count(tag) == 1 else run_id for tag, run_id in zip(tags, ids, strict=True)]
    return tuple(name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, start=1))


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportSubject:
    """One import of a report. `label` tells it from the others."""

    label: str
    imported: Imported
    # By the number of the table.
    digests: Mapping[int, Digest]
    unread: Listing
    # The first readings, in the order of their tables, and how many more the import has.
    readings: tuple[Reading, ...]
    left_out: int = 0
    explained: ExplainedVerdict
