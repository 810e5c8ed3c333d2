"""Words from outside in GitHub's Markdown: shown as they are, never taken for markup."""

import re

from busbw.show.exports.plain import shown

# What begins or ends markup: emphasis, links, images, code, tables, HTML, headings, mentions, references, emoji,
# addresses.
_MARKUP = re.compile(r"[\\`*{}\[\]()#!|<>&~$@]|:(?=\S)|(?<=www)\.|(?<![^\W_])_|_(?![^\W_])", re.IGNORECASE)


def escaped(text: str) -> str:
    """Return `text` on one line, every character that could be markup written as a character reference.

    Backslashes are not enough: mentions, references to issues and bare addresses are found after them.
    """
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", shown(text.replace("\n", " ")))


def table(headings: tuple[str, ...], lines: list[tuple[str, ...]], *, right: frozenset[int] = frozenset()) -> str:
    """Return a table; `right` are the columns of numbers. Cells are Markdown already."""
    rule = ["---:" if column in right else "---" for column in range(len(headings))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (headings, tuple(rule), *lines))
