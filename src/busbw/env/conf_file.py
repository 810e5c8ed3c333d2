"""A settings file of NCCL, read as NCCL reads it: no quotes, no trimming, nothing but lines with `=`."""

from collections.abc import Iterator

from busbw.base.value import Integer, Value
from busbw.env.versions import reaches

# What came with which version of NCCL; see src/misc/param.cc of its tags.
COMMENTS_SINCE = (2, 26, 2)
RETURNS_STRIPPED_SINCE = (2, 30, 3)
# Bytes of a name and of a value; what is beyond is cut.
LONGEST_BYTES = 1023
# Since RETURNS_STRIPPED_SINCE a line is read in pieces of so many bytes, and each piece counts as a line.
_PIECE_BYTES = 4095


class ConfLine(Value, kw_only=True, frozen=True):
    """One line that sets something, as NCCL understands it."""

    # Counts from 1.
    line: Integer
    name: str
    value: str
    # Whether name or value was longer than NCCL takes.
    cut: bool = False


def conf_lines(text: str, nccl: tuple[int, ...]) -> Iterator[ConfLine]:
    """Yield what a settings file sets in a version of NCCL, in the order of its lines.

    Of two lines for one name the first counts. Lines without `=` or without a name do nothing.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.startswith("#") or not reaches(nccl, COMMENTS_SINCE):
            for piece in _pieces(line, nccl):
                found = split_line(piece)
                if found is not None:
                    name, value = found
                    yield ConfLine(
                        line=number,
                        name=_cut(name),
                        value=_cut(value),
                        cut=max(_size(name), _size(value)) > LONGEST_BYTES,
                    )


def split_line(line: str) -> tuple[str, str] | None:
    """Return name and value of a line, None where it sets nothing; a remark counts as any line does."""
    name, equals, value = line.split("\0", maxsplit=1)[0].partition("=")
    return (name, value) if equals and name else None


def _pieces(line: str, nccl: tuple[int, ...]) -> Iterator[str]:
    if not reaches(nccl, RETURNS_STRIPPED_SINCE):
        yield line
        return
    raw = _raw(line)
    for start in range(0, max(len(raw), 1), _PIECE_BYTES):
        piece = _text(raw[start : start + _PIECE_BYTES])
        if start == 0 or not piece.startswith("#"):
            yield piece.removesuffix("\r")


def _cut(text: str) -> str:
    return text if _size(text) <= LONGEST_BYTES else _text(_raw(text)[:LONGEST_BYTES])


def _size(text: str) -> int:
    return len(_raw(text))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
