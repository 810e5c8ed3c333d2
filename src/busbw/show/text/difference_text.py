"""How two topologies differ, as text for a terminal."""

from collections.abc import Sequence
from itertools import groupby
from typing import get_args

from rich.table import Table
from rich.text import Text

from busbw.model.difference import Comparison, Difference, Group
from busbw.show.plain import printable
from busbw.show.text.terminal import console

_ORDER = get_args(Group)


def difference_text(comparison: Comparison) -> None:
    """Print a table for each kind of difference, and what does not count as one."""
    out = console()
    out.print(Text(printable(f"A: {comparison.first}\nB: {comparison.second}")), soft_wrap=not out.is_terminal)
    ordered = sorted(comparison.differences, key=lambda difference: _ORDER.index(difference.group))
    for group, differences in groupby(ordered, key=lambda difference: difference.group):
        out.print()
        out.print(Text(group, style="bold"))
        out.print(_table(list(differences)))
    out.print()
    count = len(comparison.differences)
    if count:
        out.print(Text(f"{count} difference{'s' if count > 1 else ''} that NCCL would see", style="yellow"))
    else:
        out.print(Text("equal: NCCL would see the same", style="green"))
    for words, left in (
        ("said by one side, left to detection by the other", comparison.detected),
        ("different, and not used by NCCL", comparison.unused),
    ):
        if left:
            out.print(Text(f"{words}: {_kinds(left)} (--json lists them)"), soft_wrap=not out.is_terminal)


def _table(differences: Sequence[Difference]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", "", "A", "B"):
        table.add_column(heading, overflow="fold")
    folded: dict[tuple[str | None, str | None, str | None], list[str]] = {}
    for each in differences:
        folded.setdefault((each.what, each.first, each.second), []).append(each.subject)
    for (what, first, second), subjects in folded.items():
        more = f" and {len(subjects) - 1} more" if len(subjects) > 1 else ""
        absent = "" if differences[0].group == "files" else "absent"
        cells = (f"{subjects[0]}{more}", what or "", first or absent, second or absent)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _kinds(differences: Sequence[Difference]) -> str:
    """Return which values these are, each kind once: `CPU masks, GPUs (compute capability, number)`."""
    kinds: dict[str, set[str]] = {}
    for each in differences:
        kinds.setdefault(each.group, set()).update({each.what} if each.what is not None else set())
    return ", ".join(
        f"{group} ({', '.join(sorted(printable(what) for what in whats))})" if whats else group
        for group, whats in sorted(kinds.items())
    )
