"""The environment of the ranks: what a launcher is given, and what none of them can hand on."""

import re
from collections.abc import Mapping

from busbw.base.errors import InputError
from busbw.model.launch import Start
from busbw.model.process_environment import check_name, check_variable

# Characters that mean something within the double quotes of a shell.
_OF_SHELLS = re.compile(r"[\"$`\\!\n\r]")
# Launchers put folders of their own before these.
_EXTENDED = ("PATH", "LD_LIBRARY_PATH")


def environment(start: Start) -> dict[str, str]:
    """Return what the program needs, by name, in its order.

    Raises InputError for names and values that no process can have, and for names that shall be set and unset.
    """
    found = dict(start.program.env)
    for name in (*start.forward, *start.unset, *(name for name, _folder in start.prepend)):
        check_name(name)
    for name, value in found.items():
        check_variable(name, value)
    for name in start.unset:
        if name in found or name in start.forward:
            raise InputError("to be set and to be unset", where=name)
    return found


def check_passes_a_shell(values: Mapping[str, str], launcher: str) -> None:
    """Raise InputError for values that a launcher hands to another host's shell without quoting them."""
    for name, value in values.items():
        found = _OF_SHELLS.search(value)
        if found is not None:
            raise InputError(
                f"{launcher} writes this value into a command of the other hosts' shells, which would read its "
                f"{found[0]!r}",
                where=name,
                hint="use another value, or a file of settings on every host",
            )


def adjusting(start: Start, *, extended: bool) -> tuple[str, ...]:
    """Return what ranks' command lines begin with so that variables are there, or not, whatever came on the way.

    Names are unset that logins of other hosts may set. `extended`: the launcher puts folders of its own first in
    lists of folders, which are set once more.
    """
    unset = start.unset if start.placement.is_spread else ()
    longer = {name for name, _folder in start.prepend}
    again = [
        f"{name}={value}" for name, value in start.program.env if extended and name in _EXTENDED and name not in longer
    ]
    if not unset and not again:
        return ()
    return ("env", *(word for name in unset for word in ("-u", name)), *again)
