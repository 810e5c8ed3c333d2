"""An import as a report is about it: what was read, and what it was held against."""

from collections.abc import Mapping
from dataclasses import dataclass

from busbw.model.imported import Imported, Reading
from busbw.model.verdict import ExplainedVerdict
from busbw.show.text.import_digest import Digest, Listing


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
