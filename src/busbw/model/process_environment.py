"""What Linux and shells let a process have in its environment."""

import re

from busbw.base.errors import InputError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# No longer string goes into an environment or a command line (MAX_ARG_STRLEN, 32 pages), its end included.
_LONGEST_BYTES = 131_071


def check_name(name: str) -> None:
    """Raise InputError for what cannot be the name of an environment variable that a shell can set."""
    if _NAME.fullmatch(name) is None:
        raise InputError(f"{name[:80]!r} cannot be the name of an environment variable")


def check_variable(name: str, value: str, *, prefix: str = "") -> None:
    """Raise InputError for a name and a value that no process can have; `prefix` is put before the name on the way."""
    check_name(name)
    if "\0" in value:
        raise InputError("a value cannot contain NUL", where=name)
    try:
        size_bytes = len(f"{prefix}{name}={value}".encode(errors="surrogateescape"))
    except UnicodeEncodeError:
        raise InputError("no bytes stand for this text", where=name) from None
    if size_bytes > _LONGEST_BYTES:
        raise InputError(f"longer than the {_LONGEST_BYTES} bytes that Linux hands to a process", where=name)
