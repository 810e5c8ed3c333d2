"""A modulefile for Lmod, in Lua."""

from busbw.env.export.page import Page, Written, comment_lines, head_lines, tail_lines

_USE = "Use: put it into a folder of MODULEPATH as NAME.lua, and: module load NAME"


def write(page: Page) -> Written:
    """Return `setenv` and `unsetenv` calls."""
    lines = [*head_lines(page, _USE, mark="--"), f"whatis({_quoted(page.title[0])})"]
    for entry in page.entries:
        name = _quoted(entry.name)
        call = f"unsetenv({name})" if entry.value is None else f"setenv({name}, {_quoted(entry.value)})"
        lines += ["", *comment_lines(entry.comments, "--"), call]
    lines += tail_lines(page, "--")
    return Written(text="\n".join(lines) + "\n")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
