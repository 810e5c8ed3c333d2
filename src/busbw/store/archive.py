"""The members of a tar from anywhere: regular files only, bounded in number, size and name, held in memory.

Python's own reader is made for archives that somebody trusts: it follows extensions without bound.
"""

import re

from busbw.base.errors import InputError

# A host with 512 CPUs and 600 PCI functions has 12,000 members in 20 MiB.
MOST_BYTES = 128 * 2**20
_MOST_MEMBERS = 65_536
_LONGEST_NAME = 512
_BLOCK_BYTES = 512
_HINT = "a snapshot is what `busbw probe -o host.tar` writes"
_REGULAR = {b"0", b"\0"}
_FOLDER = b"5"
_LONG_NAME = b"L"
_EXTENSION = b"x"
_FOR_ALL = b"g"
_KINDS = {b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"6": "a pipe"}
_RECORD = re.compile(rb"(\d{1,6}) ([A-Za-z.]{1,40})=")


def members(raw: bytes, *, where: str) -> dict[str, bytes]:
    """Return the content of each file in a tar, by name. Raises InputError for anything but plain files and folders."""
    if not raw:
        raise InputError("empty, not a tar", where=where, hint=_HINT)
    found: dict[str, bytes] = {}
    place = 0
    longer: str | None = None
    count = 0
    while place < len(raw):
        header = raw[place : place + _BLOCK_BYTES]
        if len(header) == _BLOCK_BYTES and not header.strip(b"\0"):
            return found
        size_bytes, kind = _header(header, where, first=place == 0)
        content = raw[place + _BLOCK_BYTES : place + _BLOCK_BYTES + size_bytes]
        if len(content) < size_bytes:
            raise InputError(f"cut off: {place + _BLOCK_BYTES + size_bytes - len(raw)} bytes are missing", where=where)
        place += _BLOCK_BYTES + -(-size_bytes // _BLOCK_BYTES) * _BLOCK_BYTES
        count += 1
        if count > _MOST_MEMBERS:
            raise InputError(f"more than {_MOST_MEMBERS} members", where=where)
        if kind in (_LONG_NAME, _EXTENSION):
            longer = _longer_name(content, where) if kind == _LONG_NAME else _extended_name(content) or longer
            continue
        if kind not in (_FOLDER, _FOR_ALL):
            name = _name(longer or _short_name(header), where)
            if kind not in _REGULAR:
                raise InputError(f"{name} in it is {_KINDS.get(kind, 'no plain file')}, and is not read", where=where)
            if name in found:
                raise InputError(f"{name} is in it twice", where=where)
            found[name] = content
        longer = None
    raise InputError("cut off: the tar has no end", where=where)


def _header(header: bytes, where: str, *, first: bool) -> tuple[int, bytes]:
    """Return size and kind of the member that a header begins."""
    is_tar = (
        len(header) == _BLOCK_BYTES and header[257:262] == b"ustar" and _checksum(header) == _octal(header[148:156])
    )
    if not is_tar:
        cause = "not a tar" if first else "cut off or damaged: a header in it is none"
        raise InputError(cause, where=where, hint=_HINT)
    size_bytes = _octal(header[124:136])
    if size_bytes is None:
        raise InputError("damaged: the size of a member is no number", where=where)
    return size_bytes, header[156:157]


def _octal(field: bytes) -> int | None:
    text = field.strip(b" \0")
    return int(text, 8) if re.fullmatch(rb"[0-7]{1,12}", text) else None


def _checksum(header: bytes) -> int:
    return sum(header[:148]) + 8 * 0x20 + sum(header[156:])


def _short_name(header: bytes) -> str:
    name, prefix = (field.split(b"\0", 1)[0].decode("utf-8", "replace") for field in (header[:100], header[345:500]))
    # What GNU tar writes has other fields in place of a prefix.
    return f"{prefix}/{name}" if prefix and header[257:263] == b"ustar\0" else name


def _longer_name(content: bytes, where: str) -> str:
    if len(content) > _LONGEST_NAME:
        raise InputError(f"a name in it has {len(content)} characters", where=where)
    return content.split(b"\0", 1)[0].decode("utf-8", "replace")


def _extended_name(content: bytes) -> str | None:
    """Return the path among the records of an extended header: `LENGTH path=...` and a line end."""
    place = 0
    while match := _RECORD.match(content, place):
        length_bytes = int(match[1])
        if length_bytes <= match.end() - place or place + length_bytes > len(content):
            return None
        if match[2] == b"path":
            return content[match.end() : place + length_bytes - 1].decode("utf-8", "replace")
        place += length_bytes
    return None


def _name(name: str, where: str) -> str:
    parts = name.removeprefix("./").split("/")
    if len(name) > _LONGEST_NAME or any(part in ("", ".", "..") for part in parts) or "\0" in name:
        raise InputError(f"{name[:100]!r} is no name that a snapshot holds", where=where)
    return "/".join(parts)
