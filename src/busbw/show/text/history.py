"""Runs and the like as a list for a terminal: plain lines, since there may be ten thousand of them."""

from collections.abc import Iterator, Sequence

from busbw.model.listing import Row
from busbw.show.plain import printable

# Whole: a name that is cut off cannot be pasted. What comes last is left to --json where there is no room.
_WHOLE = ("run", "ranks", "points", "verdict")
_OTHERS = ("collectives", "host", "tags")
# Before those, where there is something else than runs.
_KIND = "kind"
_GAP = "  "
_LEAST_ROOM = 12


def listing_lines(rows: Sequence[Row], width: int) -> Iterator[str]:
    """Yield a heading and a line for each row, none longer than `width` unless its first columns are."""
    is_mixed = any(row.kind != "run" for row in rows)
    headings = (*_WHOLE, *((_KIND,) if is_mixed else ()), *_OTHERS)
    cells = [_cells(row, with_kind=is_mixed) for row in rows]
    wanted = [_longest(heading, [each[index] for each in cells]) for index, heading in enumerate(headings)]
    whole = wanted[: len(_WHOLE)]
    others = _shared(wanted[len(_WHOLE) :], width - sum(whole) - len(_GAP) * len(whole))
    widths = [*whole, *others]
    for line in (headings, *cells):
        yield _GAP.join(_cut(cell, each) for cell, each in zip(line, widths, strict=False)).rstrip()


def _shared(wanted: Sequence[int], room: int) -> list[int]:
    """Return the widths of as many columns as have room: what is left of one's share goes to those after it."""
    widths: list[int] = []
    for index, each in enumerate(wanted):
        least = [min(other, _LEAST_ROOM) + len(_GAP) for other in wanted[index + 1 :]]
        # The later ones are kept narrow for this one, and left out where even that does not do.
        kept = max(room - sum(least), min(room, _LEAST_ROOM))
        if kept < min(each, _LEAST_ROOM):
            break
        widths.append(min(each, kept))
        room -= widths[-1] + len(_GAP)
    return widths


def _longest(heading: str, cells: Sequence[str]) -> int:
    return max(len(heading), *(len(cell) for cell in cells))


def _cut(cell: str, width: int) -> str:
    return cell.ljust(width) if len(cell) <= width else cell[: width - 1] + "…"


def _cells(row: Row, *, with_kind: bool) -> tuple[str, ...]:
    of_import = row.kind == "import"
    ranks = "" if of_import else str(row.ranks) if row.ranks is not None else "?"
    points = str(row.measured) if of_import else f"{row.measured}/{row.planned}"
    kind = (row.kind,) if with_kind else ()
    cells = (row.run_id, ranks, points, verdict_word(row), *kind, _about(row), row.host or "", " ".join(row.tags))
    return tuple(printable(cell).replace("\n", " ") for cell in cells)


def verdict_word(row: Row) -> str:
    """Return the verdict; of a run that did not come to its end that it is unfinished says more."""
    if row.kind == "comparison" and row.outcome == "none":
        return "not shown"
    return "unfinished" if row.ended == "unfinished" and row.outcome == "cannot_tell" else row.outcome.replace("_", " ")


def _about(row: Row) -> str:
    if row.outcome == "unreadable":
        return row.sentence
    return ", ".join(row.collectives) + (f", {row.sentence}" if row.kind != "run" else "")
