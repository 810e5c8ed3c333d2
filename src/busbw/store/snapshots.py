"""Snapshots as files: a tar of what was captured, readable with any tar, read here as something from a stranger."""

import gzip
import io
import re
import stat
import tarfile
import zlib
from pathlib import Path

from busbw.base.errors import InputError
from busbw.base.value import Integer, Value
from busbw.model import codec
from busbw.model.host import SNAPSHOT_SCHEMA, Answer, CapturedFile, CapturedLink, FoundLibrary, Snapshot
from busbw.store.files import write_whole

# A host with 512 CPUs and 600 PCI functions has 12,000 members in 20 MiB.
MOST_BYTES = 128 * 2**20
_MOST_MEMBERS = 65_536
_LONGEST_NAME = 512
_BLOCK_BYTES = 512
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
        cause = "not a tar" if first else "cut off or damaged: a header in it is not valid"
        raise InputError(cause, where=where, hint=_HINT)
    size_bytes = _octal(header[124:136])
    if size_bytes is None:
        raise InputError("damaged: the size of a member is not a number", where=where)
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
        raise InputError(f"{name[:100]!r} is not a name that a snapshot holds", where=where)
    return "/".join(parts)


_MANIFEST = "manifest.json"
_FILES = "files"
_COMMANDS = "commands"
_HINT = "a snapshot is what `busbw probe -o host.tar` writes"
_OTHERS = {
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"BZh": "compressed with bzip2",
}


class _Manifest(Value, kw_only=True, frozen=True):
    """All of a snapshot but the texts, which are members of their own: files/PATH, commands/NAME.out and .err."""

    schema: Integer
    busbw_version: str
    captured: str
    hostname: str
    root: bool
    anonymous: bool
    container: str | None
    environment: dict[str, str]
    libraries: tuple[FoundLibrary, ...]
    # Files that were there and could not be read.
    unread: tuple[CapturedFile, ...]
    links: tuple[CapturedLink, ...]
    answers: tuple[Answer, ...]


def is_snapshot(raw: bytes) -> bool:
    """Whether the beginning of a file, 512 bytes of it, can be one of a snapshot: a tar or compressed with gzip."""
    return raw[:2] == b"\x1f\x8b" or raw[257:262] == b"ustar"


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot, compressed where the name ends in `.gz` or `.tgz`; the same one gives the same bytes.

    Raises InputError when something else than a file is there, RunError when the disk is full or refuses.
    """
    content = _tar(snapshot)
    write_whole(path, gzip.compress(content, mtime=0) if path.suffix in (".gz", ".tgz") else content)


def read_snapshot(path: Path) -> Snapshot:
    """Return the snapshot in a file. Nothing is unpacked to disk, no link followed, and memory is bounded.

    Raises InputError for a file that is not one, is damaged, or written by a newer busbw.
    """
    where = str(path)
    texts = members(_content(path), where=where)
    raw = texts.get(_MANIFEST)
    if raw is None:
        raise InputError(f"a tar, but not a snapshot: there is no {_MANIFEST} in it", where=where, hint=_HINT)
    codec.check_schema(raw, SNAPSHOT_SCHEMA, where=where)
    manifest = codec.decode(raw, _Manifest, where=f"{where}: {_MANIFEST}")
    _check(manifest, where)
    return Snapshot(
        busbw_version=manifest.busbw_version,
        captured=manifest.captured,
        hostname=manifest.hostname,
        root=manifest.root,
        anonymous=manifest.anonymous,
        container=manifest.container,
        files=_files(manifest, texts, where),
        links=manifest.links,
        answers=tuple(_answer(answer, texts) for answer in manifest.answers),
        environment=manifest.environment,
        libraries=manifest.libraries,
    )


def _check(manifest: _Manifest, where: str) -> None:
    """Raise InputError when the list names something twice."""
    answers = [answer.name for answer in manifest.answers]
    for names in (answers, [link.path for link in manifest.links], [file.path for file in manifest.unread]):
        known: set[str] = set()
        for name in names:
            if name in known:
                raise InputError(f"{_MANIFEST} lists {name[:200]} twice", where=where)
            known.add(name)


def _tar(snapshot: Snapshot) -> bytes:
    manifest = _Manifest(
        schema=snapshot.schema,
        busbw_version=snapshot.busbw_version,
        captured=snapshot.captured,
        hostname=snapshot.hostname,
        root=snapshot.root,
        anonymous=snapshot.anonymous,
        container=snapshot.container,
        environment=snapshot.environment,
        libraries=snapshot.libraries,
        unread=tuple(file for file in snapshot.files if file.text is None),
        links=snapshot.links,
        answers=tuple(
            Answer(name=answer.name, argv=answer.argv, ended=answer.ended, exit_code=answer.exit_code)
            for answer in snapshot.answers
        ),
    )
    texts = {f"{_FILES}{file.path}": file.text for file in snapshot.files if file.text is not None}
    for answer in snapshot.answers:
        texts |= {
            name: text for name, text in zip(_output_names(answer), (answer.output, answer.error), strict=True) if text
        }
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        _add(archive, _MANIFEST, codec.encode_pretty(manifest))
        for name in sorted(texts):
            _add(archive, name, texts[name].encode())
    return made.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _output_names(answer: Answer) -> tuple[str, str]:
    return f"{_COMMANDS}/{answer.name}.out", f"{_COMMANDS}/{answer.name}.err"


def _files(manifest: _Manifest, texts: dict[str, bytes], where: str) -> tuple[CapturedFile, ...]:
    """Return the files that are in the tar and those that could not be read, by path."""
    found = {file.path: CapturedFile(path=file.path, text=None, reason=file.reason) for file in manifest.unread}
    for name, raw in texts.items():
        if name.startswith(f"{_FILES}/"):
            path = name.removeprefix(_FILES)
            if path in found:
                raise InputError(f"{_MANIFEST} says that {path[:200]} could not be read, and it is there", where=where)
            found[path] = CapturedFile(path=path, text=raw.decode("utf-8", "replace"))
    return tuple(found[path] for path in sorted(found))


def _answer(answer: Answer, texts: dict[str, bytes]) -> Answer:
    output, error = (texts.get(name, b"").decode("utf-8", "replace") for name in _output_names(answer))
    return Answer(
        name=answer.name, argv=answer.argv, ended=answer.ended, exit_code=answer.exit_code, output=output, error=error
    )


def _content(path: Path) -> bytes:
    """Return the tar in a file, unpacked where it is compressed."""
    where = str(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("not a file", where=where, hint=_HINT)
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror or error}", where=where, hint=_HINT) from error
    if raw[:2] == b"\x1f\x8b":
        raw = _unpacked(raw, where)
    if len(raw) > MOST_BYTES:
        raise InputError(f"larger than {MOST_BYTES >> 20} MiB, and no snapshot is", where=where, hint=_HINT)
    other = next((name for magic, name in _OTHERS.items() if raw.startswith(magic)), None)
    if other is not None:
        raise InputError(f"{other}; only tar and tar.gz are read", where=where, hint=_HINT)
    return raw


def _unpacked(raw: bytes, where: str) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            return file.read(MOST_BYTES + 1)
    except EOFError as error:
        raise InputError("cut off: the compressed data has no end", where=where) from error
    except (OSError, zlib.error) as error:
        raise InputError(f"damaged: {error}", where=where) from error
