"""NCCL's own settings file. It knows no quotes, trims nothing, and takes every line with `=` in it for a setting.

Only since 2.26 a `#` begins a comment, so that comments here hold no `=`.
"""

from collections.abc import Iterator

from busbw.base.errors import InputError
from busbw.env.export.page import Entry, SettingsPage, Written, comment_lines, head_lines, tail_lines

# NCCL copies at most so much of a name and of a value.
_LONGEST_BYTES = 1023
# What is read after NCCL has read the file: by itself, and by plug-ins that it loads.
_READ_LATER = ("NCCL_", "RCCL_", "OFI_NCCL_", "SHARP_")
_WITHOUT_EQUALS = {">=": "at least", "<=": "at most", "==": "is", "=": "is"}
_NOT_FROM_ITSELF = ("NCCL_CONF_FILE",)
_USE = (
    "Use: as /etc/nccl.conf or .nccl.conf in the home folder, on every node; what the environment sets goes before it"
)
_WHY = "a settings file can only set, and only what the environment does not: unset it where jobs start"


def write(page: SettingsPage) -> Written:
    """Return `NAME=value` lines; what would be read too early is left out, and said.

    Raises InputError for a value that is longer than NCCL takes, or begins or ends with a space.
    """
    unset = [entry for entry in page.entries if entry.value is None]
    early = [entry for entry in page.entries if entry.value is not None and not _is_read_later(entry.name)]
    lines = head_lines(page, _USE)
    for entry in page.entries:
        lines += ["", *comment_lines(entry.comments), *_lines(entry)]
    lines += tail_lines(page)
    return Written(
        text="".join(f"{_without_equals(line) if line.startswith('#') else line}\n" for line in lines),
        notes=tuple(_notes(unset, early)),
    )


def _lines(entry: Entry) -> Iterator[str]:
    if entry.value is None:
        yield from comment_lines((f"not here: {entry.name} should be unset, and {_WHY}",))
    elif not _is_read_later(entry.name):
        yield from comment_lines((f"not here: {entry.name} may be read before NCCL reads this file",))
    else:
        _check(entry.name, entry.value)
        yield f"{entry.name}={entry.value}"


def _check(name: str, value: str) -> None:
    if len(value.encode()) > _LONGEST_BYTES:
        raise InputError(
            f"{name} has {len(value.encode())} bytes, and NCCL reads {_LONGEST_BYTES} of a value", hint="--format sh"
        )
    if value != value.strip():
        raise InputError(
            f'{name} = "{value}" begins or ends with a space, which nobody sees in a file without quotes',
            hint="--format sh",
        )


def _notes(unset: list[Entry], early: list[Entry]) -> Iterator[str]:
    if unset:
        yield f"{', '.join(entry.name for entry in unset)} should be unset, and {_WHY}"
    if early:
        names = ", ".join(entry.name for entry in early)
        yield f"left out, as NCCL may read this file too late for it: {names}; set it in the job itself: --format sh"


def _is_read_later(name: str) -> bool:
    return name.startswith(_READ_LATER) and name not in _NOT_FROM_ITSELF


def _without_equals(text: str) -> str:
    for sign, words in _WITHOUT_EQUALS.items():
        text = text.replace(f" {sign} ", f" {words} ").replace(sign, ":" if sign == "=" else f" {words} ")
    return text
