"""A bash script around a launcher of MPI: an array that grows by an option for each variable, and one command."""

from collections.abc import Callable

from busbw.env.export.page import Page, comment_lines, head_lines, tail_lines


def script(page: Page, uses: tuple[str, ...], option: Callable[[str, str], str], launcher: str) -> str:
    """Return the script; `option` makes one of a name and a value, quoted for bash."""
    lines = ["#!/bin/bash", *head_lines(page, *uses)]
    for entry in page.entries:
        if entry.value is None:
            lines += ["", *comment_lines(entry.comments), f"unset {entry.name}"]
    lines += ["", "settings=()"]
    for entry in page.entries:
        if entry.value is not None:
            lines += ["", *comment_lines(entry.comments), f"settings+=({option(entry.name, entry.value)})"]
    lines += ["", f'{launcher} "${{settings[@]}}" "$@"', *tail_lines(page)]
    return "\n".join(lines) + "\n"


def apart(page: Page, foreign: tuple[str, ...]) -> tuple[Page, tuple[str, ...]]:
    """Return a page without the variables of other MPIs, and the note that names those; prefixes tell them."""
    names = [entry.name for entry in page.entries if entry.name.startswith(foreign)]
    kept = tuple(entry for entry in page.entries if entry.name not in names)
    notes = (f"left out, as this MPI does not read it: {', '.join(names)}",) if names else ()
    return Page(title=page.title, entries=kept, launch=page.launch, sources=page.sources, nodes=page.nodes), notes
