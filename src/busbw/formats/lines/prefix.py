"""What launchers write in front of a line: whose it is, and when. The rest is the line as the program wrote it."""

import re
from collections.abc import Mapping
from typing import cast

import msgspec

from busbw.model.settings import WITHHELD, is_allowed, plain

_DATE = (
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d "
    # No size in bytes is taken for a year.
    r"\d\d:\d\d:\d\d(?: 20[0-3]\d(?=[ <\[])|(?= )) ?"
    r"|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]? "
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]? "
)
_TAG = (
    # mpirun --tag-output: [1,0]<stdout>: and, since Open MPI 5, [prterun-host-77@1,0]<stdout>:
    r"\[(?:[\w.@-]{1,80}@)?\d+,\d+\](?:<std(?:out|err|diag)>)?:"
    r"|<std(?:out|err|diag)>:"
    # mpiexec -prepend-rank: [0]; torchrun: [rank0]: or [default0]:
    r"|\[\d+\]:? |\[(?:rank|default)\d+\]: ?"
    # srun -l: the number, padded to the width of the largest
    r"|[ ]{0,6}\d{1,7}:(?: |$)"
    # kubectl logs --prefix, docker compose
    r"|\[pod/[\w./-]{1,250}\] "
    r"|[\w.-]{1,80} +\| "
    # A text that a mail or a comment quotes.
    r"|(?:> ?){1,5}"
    # pdsh, where a line of a table follows
    r"|[A-Za-z][\w.-]{0,80}: (?=#| *\d+ +\d+ +[a-z])"
)
# A line may have a date, a tag, and a date again.
_MOST = 3
PREFIXES = rf"(?:{_DATE}|{_TAG}){{0,{_MOST}}}"
_ONE = re.compile(rf"(?:(?P<date>{_DATE})|(?P<tag>{_TAG}))", re.ASCII)
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\(B)")
# What pages on the web have for a blank, and marks without a width.
_BLANKS = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " ") | dict.fromkeys("\u200b\ufeff", ""))
# Below an indentation only these are tags; a row of a table is none.
_INDENTED_TAG = re.compile(r"\s+(?=\[\d{1,7}[,\]]|\d{1,7}:(?: |$))", re.ASCII)


def split(line: str) -> tuple[str, str]:
    """Return the tag in front of a line, "" when there is none, and the line without tag, dates and colour."""
    text = uncoloured(line.rstrip("\r\n"))
    if not text.isascii():
        text = text.translate(_BLANKS)
    marks, end = _marks(text)
    rest = text[end:]
    for match in marks:
        # mpirun writes its tag again before each piece that a process wrote without ending the line.
        if match["tag"] and match["tag"].startswith("[") and match["tag"].endswith(":") and match["tag"] in rest:
            rest = rest.replace(match["tag"], "")
    return "".join((match["tag"] or "").strip() for match in marks), rest


def tag_spans(text: str) -> list[tuple[int, int]]:
    """Return where the tags in front of a line of ASCII without colours stand."""
    return [match.span("tag") for match in _marks(text)[0] if match["tag"]]


def _marks(text: str) -> tuple[list[re.Match[str]], int]:
    """Return the dates and tags in front of a line, and where the rest begins."""
    marks: list[re.Match[str]] = []
    if text.startswith("#"):
        return marks, 0
    indentation = _INDENTED_TAG.match(text) if text.startswith((" ", "\t")) else None
    end = indentation.end() if indentation is not None else 0
    for _ in range(_MOST):
        match = _ONE.match(text, end)
        if match is None:
            break
        marks.append(match)
        end = match.end()
    return marks, end


def uncoloured(text: str) -> str:
    """Return a line without the escapes that colour it."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


# A line that is one variable of an environment, as env, export, declare and a shell's trace print it.
_WHOLE_LINE = re.compile(
    r"(?P<before>\s*(?:\++ )?(?:export |declare -x |setenv )?)"
    r"(?P<name>[A-Z_][A-Z0-9_]{1,200}|(?:https?|ftp|all)_proxy)=(?P<value>.*)",
    re.DOTALL,
)
_INSIDE = re.compile(
    r"""(?<![\w$.-])(?P<name>[A-Z_][A-Z0-9_]{2,200}+)=(?P<value>"(?:[^"\\]|\\.)*+"?|'[^']*+'?|[^\s"',;]++)"""
)
_QUOTED = re.compile(r'"(?P<name>[A-Za-z_]\w{0,200}+)=(?P<value>(?:[^"\\]|\\.)*+)(?P<end>"?)')


def scrub(text: str) -> str:
    """Return a line with the values of all variables outside the allow-list, and of other secrets, withheld."""
    if "=" in text:
        tag, line = split(text)
        whole = _WHOLE_LINE.fullmatch(line)
        if whole is not None and not is_allowed(whole["name"]):
            before = text.removesuffix(line) if text.endswith(line) else tag
            return f"{before}{whole['before']}{whole['name']}={WITHHELD}"
        text = _INSIDE.sub(_assigned, _QUOTED.sub(_quoted, text))
    return plain(text)


def _assigned(match: re.Match[str]) -> str:
    return match[0] if is_allowed(match["name"]) else f"{match['name']}={WITHHELD}"


def _quoted(match: re.Match[str]) -> str:
    return match[0] if is_allowed(match["name"]) else f'"{match["name"]}={WITHHELD}{match["end"]}'


# Docker and Fluentd; Elastic, Kubernetes and structured loggers; journalctl -o json; Loki; Google's and AWS's.
_TEXTS = ("log", "message", "MESSAGE", "line", "msg", "textPayload", "Message", "@message")
_TIMES = ("time", "@timestamp", "timestamp", "ts", "Timestamp")
# Where a record keeps what it is about.
_INSIDE_STRING = ("_source", "jsonPayload", "fields", "record", "result", "kubernetes")
# One member of a record that was written over several lines.
_MEMBER = re.compile(rb'\s*"(?:log|message|MESSAGE|line|msg|textPayload)"\s*:\s*("(?:[^"\\]|\\.)*")\s*,?\s*')
_DATED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", re.ASCII)
_decode = msgspec.json.Decoder(type=dict[str, msgspec.Raw]).decode


def as_written(line: bytes) -> bytes:
    """Return what a program wrote in one line, after its time; the line itself where that is not to be found."""
    start = line.lstrip()[:1]
    if start == b'"':
        member = _MEMBER.fullmatch(line)
        found = _string(member[1]) if member is not None else None
        return _on_one_line(found) if found is not None else line
    if start != b"{":
        return line
    try:
        record = _decode(line.strip().rstrip(b","))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return line
    found, time = _first(record, _TEXTS), _first(record, _TIMES)
    if found is None:
        for name in _INSIDE_STRING:
            inner = _record(record.get(name))
            found = _first(inner, _TEXTS)
            time = time or _first(inner, _TIMES)
            if found is not None:
                break
    if found is None:
        return line
    return _on_one_line(f"{time} {found}" if time is not None and _DATED.match(time) else found)


def _first(record: Mapping[str, msgspec.Raw], names: tuple[str, ...]) -> str | None:
    return next((text for name in names if name in record and (text := _string(record[name])) is not None), None)


def _string(raw: bytes | msgspec.Raw) -> str | None:
    try:
        value: object = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    # journalctl writes a line with colours as the numbers of its bytes.
    if isinstance(value, list) and value and all(isinstance(each, int) and 0 <= each < 256 for each in value):
        return bytes(cast("list[int]", value)).decode("utf-8", "replace")
    return value if isinstance(value, str) else None


def _record(raw: msgspec.Raw | None) -> Mapping[str, msgspec.Raw]:
    if raw is None or not bytes(raw).startswith(b"{"):
        return {}
    try:
        return _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _on_one_line(text: str) -> bytes:
    return text.strip("\r\n").replace("\n", " ").encode("utf-8", "replace")


_STARTS = re.compile(rb"\s*(?:\{|\[\s*(?:\{|\n|\r))")
_UNDECIDED = re.compile(rb"\s*\[?[ \t]*")
_MOST_PENDING = 2**20


class CollectedLines:
    """Gives back each block of a source as the program wrote it; a source that holds no JSON unchanged."""

    def __init__(self) -> None:
        # None: nothing but white space has come yet.
        self._is_json: bool | None = None
        self._pending = b""

    def feed(self, block: bytes) -> bytes:
        """Return what can be said of a block so far; line numbers stay as they are."""
        if self._is_json is None:
            block, self._pending = self._pending + block, b""
            if _UNDECIDED.fullmatch(block) and len(block) < _MOST_PENDING:
                self._pending = block
                return b""
            self._is_json = _STARTS.match(block) is not None
        if not self._is_json:
            return block
        *lines, self._pending = (self._pending + block).split(b"\n")
        if len(self._pending) > _MOST_PENDING:
            lines.append(self._pending)
            self._pending = b""
            return b"\n".join(map(as_written, lines))
        return b"".join(as_written(line) + b"\n" for line in lines)

    def end(self) -> bytes:
        """Return what is left, and be ready for another source."""
        left = as_written(self._pending) if self._is_json else self._pending
        self._is_json, self._pending = None, b""
        return left
