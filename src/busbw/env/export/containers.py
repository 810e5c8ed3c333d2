"""A Dockerfile that lays the settings over an image."""

import re

from busbw.env.export.page import Page, Written, cannot_unset, comment_lines, head_lines, tail_lines

_USE = "Use: docker build --build-arg BASE=IMAGE -f THIS_FILE ."
_IN_QUOTES = re.compile(r'[\\"$]')
_WHY = "a Dockerfile cannot do that: start the container with `docker run -e NAME` from a shell without NAME"


def write(page: Page) -> Written:
    """Return `ENV` instructions; the first line is no directive of the parser, whatever it says."""
    lines = [*head_lines(page, _USE), "ARG BASE", "FROM ${BASE}"]
    unset = [entry.name for entry in page.entries if entry.value is None]
    for entry in page.entries:
        lines += ["", *comment_lines(entry.comments)]
        if entry.value is None:
            lines += comment_lines((f"not here: {entry.name} should be unset, and {_WHY}",))
        else:
            lines.append(f'ENV {entry.name}="{_IN_QUOTES.sub(_escaped, entry.value)}"')
    lines += tail_lines(page)
    return Written(text="\n".join(lines) + "\n", notes=tuple(cannot_unset(unset, _WHY)))


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[0]}"
