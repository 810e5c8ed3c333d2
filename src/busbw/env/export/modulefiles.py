"""Modulefiles with settings, in Tcl and in Lua."""

import re

from busbw.env.export.page import SettingsPage, Written, comment_lines, head_lines, tail_lines

_USE = "Use: put it into a folder of MODULEPATH, and: module load NAME"
_BARE = re.compile(r"[\w./:,+@%=^][\w./:,+@%=^-]*", re.ASCII)
# Between braces Tcl changes nothing but these.
_NOT_IN_BRACES = re.compile(r"[{}\\]")
_IN_QUOTES = re.compile(r'[\\"$\[\]]')


def write_tcl(page: SettingsPage) -> Written:
    """Return `setenv` and `unsetenv` commands below the line that makes a file a modulefile."""
    lines = ["#%Module1.0", *_comments(head_lines(page, _USE)), f"module-whatis {_word(page.title[0])}"]
    for entry in page.entries:
        command = f"unsetenv {entry.name}" if entry.value is None else f"setenv {entry.name} {_word(entry.value)}"
        lines += ["", *_comments(comment_lines(entry.comments)), command]
    lines += _comments(tail_lines(page))
    return Written(text="\n".join(lines) + "\n")


def _word(text: str) -> str:
    if _BARE.fullmatch(text) is not None:
        return text
    if _NOT_IN_BRACES.search(text) is None:
        return "{" + text + "}"
    return '"' + _IN_QUOTES.sub(r"\\\g<0>", text) + '"'


def _comments(lines: list[str]) -> list[str]:
    """Return comments that end where their line does: a backslash there would take the next line in."""
    return [f"{line} ." if line.endswith("\\") else line for line in lines]


_LUA_USE = "Use: put it into a folder of MODULEPATH as NAME.lua, and: module load NAME"


def write_lua(page: SettingsPage) -> Written:
    """Return `setenv` and `unsetenv` calls."""
    lines = [*head_lines(page, _LUA_USE, mark="--"), f"whatis({_quoted(page.title[0])})"]
    for entry in page.entries:
        name = _quoted(entry.name)
        call = f"unsetenv({name})" if entry.value is None else f"setenv({name}, {_quoted(entry.value)})"
        lines += ["", *comment_lines(entry.comments, "--"), call]
    lines += tail_lines(page, "--")
    return Written(text="\n".join(lines) + "\n")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
